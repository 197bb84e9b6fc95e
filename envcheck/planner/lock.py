"""The lock file: a plan as TOML, written the same way twice and read with distrust.

What is read here ends in commands that a shell runs as root, so every string must match the pattern
of its field: no pattern admits a quote, a newline, a dollar sign or a blank where a shell would
care.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any

from envcheck.errors import LockError
from envcheck.model.codec import CodecError, decode, encode
from envcheck.model.plan import LOCK_SCHEMA, Lock

if TYPE_CHECKING:
    from collections.abc import Iterator

LARGEST = 1 << 18
"""Characters of a lock; what is larger is none."""

_NUMBER = r"[0-9]{1,6}(?:\.[0-9]{1,6}){0,5}"
VERSION = (
    rf"{_NUMBER}(?:(?:a|b|rc)[0-9]{{1,6}})?(?:\.post[0-9]{{1,6}})?(?:\.dev[0-9]{{1,9}})?"
    r"(?:\+[a-z0-9]{1,40}(?:\.[a-z0-9]{1,40}){0,5})?"
)
"""A version of the package index, with its local tag where it has one."""
NAME = r"[a-z0-9](?:[a-z0-9-]{0,60}[a-z0-9])?"
"""A normalised distribution name."""
EXTRA = r"[a-z0-9](?:[a-z0-9_-]{0,40}[a-z0-9])?"
_CLAUSE = rf"(?:===|==|~=|!=|<=|>=|<|>){VERSION}(?:\.\*)?"
REQUIREMENT = rf"{NAME}(?:\[{EXTRA}(?:,{EXTRA}){{0,9}}\])?(?:{_CLAUSE}(?:,{_CLAUSE}){{0,9}})?"
"""A requirement without blanks, markers or addresses."""
INDEX = (
    r"https://[a-z0-9](?:[a-z0-9-]{0,60}\.){1,6}[a-z]{2,20}(?::[0-9]{1,5})?"
    r"(?:/(?!\.)[A-Za-z0-9._-]{1,60}){0,8}/?"
)
"""An index: https, a host by its name, a plain path without query or user."""
OS = r"[a-z](?:[a-z0-9_-]{0,30}[a-z0-9])?(?:\.[0-9]{1,4}){0,2}"
DRIVER = r"[0-9]{3,4}(?:\.[0-9]{1,4}){0,2}"
PYTHON = r"3\.[0-9]{1,2}"
GPU = r"[A-Za-z0-9](?:[A-Za-z0-9 ._+-]{0,78}[A-Za-z0-9])?"
CUDA = r"[0-9]{1,2}(?:\.[0-9]{1,2})?"
"""`12.8`, or `12` where a build runs on any release of a major."""

_FIELDS = {
    "envcheck": (VERSION, "a version"),
    "want[]": (REQUIREMENT, "a requirement such as torch>=2.6"),
    "tables[][0]": (r"[a-z0-9]+(?:[/_-][a-z0-9]+){0,5}", "the name of a table"),
    "tables[][1]": (r"[0-9]{4}-[0-9]{2}-[0-9]{2}", "a date such as 2026-12-01"),
    "target.gpus[]": (GPU, "the name of a GPU"),
    "target.arches[]": (r"[0-9]{1,2}\.[0-9]", "a compute capability such as 9.0"),
    "target.driver": (DRIVER, "a driver release such as 580.95.05"),
    "target.platform": (r"linux_x86_64|linux_aarch64", "linux_x86_64 or linux_aarch64"),
    "target.os": (OS, "an operating system such as ubuntu24.04"),
    "target.python": (PYTHON, "a Python such as 3.12"),
    "stack.python": (PYTHON, "a Python such as 3.12"),
    "stack.platform": (r"linux_x86_64|linux_aarch64", "linux_x86_64 or linux_aarch64"),
    "stack.os": (OS, "an operating system such as ubuntu24.04"),
    "stack.min_driver": (DRIVER, "a driver release such as 580.95.05"),
    "stack.driver_branch": (r"[0-9]{3,4}", "a driver branch such as 580"),
    "stack.driver_module": (r"open|proprietary", "open or proprietary"),
    "stack.frameworks[].name": (r"torch|tensorflow|jax", "torch, tensorflow or jax"),
    "stack.frameworks[].version": (VERSION, "a version"),
    "stack.frameworks[].variant": (r"cpu|cu[0-9]{2,4}", "a variant such as cu128 or cpu"),
    "stack.frameworks[].cuda": (CUDA, "a CUDA release such as 12.8, or its major"),
    "stack.frameworks[].cudnn": (VERSION, "a version"),
    "stack.frameworks[].nccl": (VERSION, "a version"),
    "stack.frameworks[].triton": (rf"(?:~=)?{VERSION}", "a version"),
    "stack.pins[].name": (NAME, "a normalised package name"),
    "stack.pins[].version": (VERSION, "a version"),
    "stack.pins[].index": (INDEX, "an https address of plain characters"),
    "stack.pins[].extras[]": (EXTRA, "the name of an extra"),
}
"""Field -> what its text must match as a whole, and what that is in words."""

_PATTERNS = {field: re.compile(pattern) for field, (pattern, _) in _FIELDS.items()}

_HEAD = """\
# Made by envcheck plan. What it pins was judged to fit the target; it is read by
# envcheck emit and by envcheck doctor --against.
"""


def lock_text(lock: Lock) -> str:
    """A lock as TOML: the same text for the same lock, at any time and on any machine.

    Raises:
        LockError: a field holds what a lock may not hold.
    """
    _check(lock, "the lock")
    data = encode(lock)
    stack = data["stack"]
    parts = [
        _HEAD.rstrip("\n"),
        _pairs({name: data[name] for name in ("schema", "envcheck", "want")}),
        "[target]\n" + _pairs(data["target"]),
        "[stack]\n" + _pairs({k: v for k, v in stack.items() if k not in ("frameworks", "pins")}),
        *(
            f"[[stack.{each}]]\n" + _pairs(row)
            for each in ("frameworks", "pins")
            for row in stack[each]
        ),
        "[tables]\n" + "\n".join(f'"{name}" = "{date}"' for name, date in sorted(lock.tables)),
    ]
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def _pairs(values: dict[str, Any]) -> str:
    return "\n".join(
        f"{name} = {_value(value)}" for name, value in values.items() if value not in (None, [])
    )


def _value(value: object) -> str:
    # No pattern of a lock admits a character that TOML escapes.
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    return f'"{value}"'


def parse_lock(text: str, name: str) -> Lock:
    """Read a lock.

    Args:
        text: the TOML.
        name: of the file, for messages.

    Raises:
        LockError: it is no TOML, of another schema, or a field is absent, unknown or not of its
            form; one line that names the field.
    """
    if len(text) > LARGEST:
        raise _error(name, "too large for a lock")
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # numbers of thousands of digits, too
        raise _error(name, f"not TOML: {error}") from error
    schema = data.get("schema")
    if schema != LOCK_SCHEMA or isinstance(schema, bool):
        raise _error(name, f"schema: expected {LOCK_SCHEMA}, found {schema!r}")
    tables = data.pop("tables", {})
    if not isinstance(tables, dict):
        raise _error(name, "tables: expected a table of names and dates")
    data["tables"] = [[key, value] for key, value in sorted(tables.items())]
    data.setdefault("want", [])
    for part in ("target", "stack"):
        if not isinstance(data.get(part), dict):
            raise _error(name, f"{part}: missing")
    data["stack"].setdefault("frameworks", [])
    data["stack"].setdefault("pins", [])
    try:
        lock = decode(Lock, data)
    except CodecError as error:
        raise _error(name, str(error).removeprefix("$.")) from error
    _check(lock, name)
    return lock


def _check(lock: Lock, name: str) -> None:
    for path, text in _texts(encode(lock), ""):
        field = re.sub(r"\[[0-9]+\]", "[]", path)
        if field.startswith("tables[]"):
            field = "tables[]" + path[path.rindex("[") :]
        if not _PATTERNS[field].fullmatch(text):
            raise _error(name, f"{path}: {text[:80]!r} is not {_FIELDS[field][1]}")
    _check_pins(lock, name)


def _texts(value: object, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _texts(item, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from _texts(item, f"{path}[{at}]")


def _check_pins(lock: Lock, name: str) -> None:
    stack = lock.stack
    pins = {pin.name: pin for pin in stack.pins}
    if len(pins) < len(stack.pins):
        raise _error(name, "stack.pins: a package is pinned twice")
    if not stack.frameworks:
        raise _error(name, "stack.frameworks: missing")
    for at, each in enumerate(stack.frameworks):
        pin = pins.get(each.name)
        if pin is None:
            raise _error(name, f"stack.pins: {each.name} is not pinned")
        if pin.version.partition("+")[0] != each.version:
            raise _error(
                name,
                f"stack.frameworks[{at}].version: {each.version}, but pinned as {pin.version}",
            )


def _error(name: str, what: str) -> LockError:
    """One line, whatever the file or its name holds."""
    line = f"{name}: {what}"
    return LockError("".join(char if char.isprintable() else "?" for char in line))
