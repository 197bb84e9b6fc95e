"""A lock is written the same way twice, and read with distrust."""

from __future__ import annotations

from pathlib import Path

import pytest

from envcheck.errors import LockError
from envcheck.model.plan import Pin
from envcheck.planner.lock import lock_text, parse_lock

EXAMPLE = (Path(__file__).parent / "example.lock").read_text(encoding="utf-8")


def test_a_lock_comes_back_as_it_was_written() -> None:
    lock = parse_lock(EXAMPLE, "example.lock")
    assert lock.stack.pins[0] == Pin(
        name="torch", version="2.8.0+cu128", index="https://download.pytorch.org/whl/cu128"
    )
    assert lock_text(lock) == EXAMPLE


def replaced(old: str, new: str) -> str:
    assert EXAMPLE.count(old) >= 1
    return EXAMPLE.replace(old, new, 1)


HOSTILE = {
    "pin name": (
        replaced('"transformers"\nversion', '"x; rm -rf /"\nversion'),
        "stack.pins[2].name",
    ),
    "version": (replaced("4.57.1", "4.57.1 --index-url x"), "stack.pins[2].version"),
    "newline": (replaced("4.57.1", "4.57.1\\nRUN id"), "stack.pins[2].version"),
    "trailing newline": (replaced("4.57.1", "4.57.1\\n"), "stack.pins[2].version"),
    "local tag": (replaced("2.8.0+cu128", "2.8.0+$(id)"), "stack.pins[0].version"),
    "index scheme": (replaced("https://download", "http://download"), "stack.pins[0].index"),
    "index user": (replaced("https://download", "https://me@download"), "stack.pins[0].index"),
    "index path": (replaced("whl/cu128", "whl/../../cu128"), "stack.pins[0].index"),
    "index query": (replaced("whl/cu128", "whl/cu128?x=1"), "stack.pins[0].index"),
    "index file": (
        replaced("https://download.pytorch.org/whl/cu128", "file:///etc"),
        "stack.pins[0].index",
    ),
    "index number": (
        replaced("https://download.pytorch.org/whl/cu128", "https://127.0.0.1/whl"),
        "stack.pins[0].index",
    ),
    "python": (replaced('python = "3.12"', 'python = "3.12`id`"'), "target.python"),
    "stack python": (
        replaced('[stack]\npython = "3.12"', '[stack]\npython = "../3.12"'),
        "stack.python",
    ),
    "os": (replaced("ubuntu24.04", "ubuntu:24.04"), "target.os"),
    "os path": (replaced("ubuntu24.04", "../../x"), "target.os"),
    "platform": (replaced("linux_x86_64", "win_amd64"), "target.platform"),
    "gpu": (replaced("GeForce RTX 5090", "x' && id '"), "target.gpus[0]"),
    "arch": (replaced('"12.0"', '"12.0;"'), "target.arches[0]"),
    "driver": (replaced('driver = "570"', 'driver = "570\'"'), "target.driver"),
    "min driver": (replaced("570.26", "$HOME"), "stack.min_driver"),
    "want": (replaced("torch>=2.6", "torch @ https://example.org/x.whl"), "want[0]"),
    "variant": (
        replaced('variant = "cu128"', 'variant = "cu128/.."'),
        "stack.frameworks[0].variant",
    ),
    "framework": (replaced('name = "torch"', 'name = "torch2"'), "stack.frameworks[0].name"),
    "module": (replaced('"open"', '"closed"'), "stack.driver_module"),
    "envcheck": (replaced('envcheck = "0.1.0"', 'envcheck = "0.1.0 "'), "envcheck"),
    "table name": (replaced('"cuda" =', '"cuda\\nRUN" ='), "tables[0][0]"),
    "table date": (replaced('"cuda" = "2026-12-01"', '"cuda" = "today"'), "tables[0][1]"),
    "other digits": (replaced("4.57.1", "4.57.\\u0661"), "stack.pins[2].version"),
}


@pytest.mark.parametrize(("text", "field"), HOSTILE.values(), ids=HOSTILE)
def test_text_that_a_shell_would_read_never_gets_through(text: str, field: str) -> None:
    with pytest.raises(LockError) as caught:
        parse_lock(text, "example.lock")
    assert str(caught.value).startswith(f"example.lock: {field}: ")
    assert str(caught.value).isprintable()


DAMAGED = {
    "no TOML": ("schema = ", "example.lock: not TOML: "),
    "other schema": (replaced("schema = 1", "schema = 2"), "example.lock: schema: expected 1"),
    "schema as truth": (replaced("schema = 1", "schema = true"), "example.lock: schema: "),
    "empty": ("", "example.lock: schema: expected 1, found None"),
    "unknown field": (
        replaced("[stack]", '[stack]\n"a\\nb" = 1'),
        "example.lock: stack.a?b: unknown",
    ),
    "wrong type": (replaced('"570.26"', "570.26"), "example.lock: stack.min_driver: expected str"),
    "no stack": (EXAMPLE.partition("[stack]")[0], "example.lock: stack: missing"),
    "pinned twice": (
        replaced('name = "torchvision"', 'name = "torch"'),
        "example.lock: stack.pins: a package is pinned twice",
    ),
    "not pinned": (
        replaced('[[stack.pins]]\nname = "torch"', '[[stack.pins]]\nname = "torch-x"'),
        "example.lock: stack.pins: torch is not pinned",
    ),
    "pinned otherwise": (
        replaced('version = "2.8.0+cu128"', 'version = "2.8.1+cu128"'),
        "example.lock: stack.frameworks[0].version: 2.8.0, but pinned as 2.8.1+cu128",
    ),
    "huge": (EXAMPLE + "#" * (1 << 18), "example.lock: too large"),
    "deep": ("a = " + "[" * 5000, "example.lock: not TOML: "),
}


@pytest.mark.parametrize(("text", "message"), DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_lock_names_the_field(text: str, message: str) -> None:
    with pytest.raises(LockError) as caught:
        parse_lock(text, "example.lock")
    assert str(caught.value).startswith(message)
    assert str(caught.value).isprintable()
    assert caught.value.exit_code == 4


def test_nothing_is_written_that_could_not_be_read() -> None:
    import dataclasses

    lock = parse_lock(EXAMPLE, "example.lock")
    with pytest.raises(LockError, match=r"want\[0\]"):
        lock_text(dataclasses.replace(lock, want=('torch"\n',)))
