"""Nothing that a shell would act on gets from a lock or an option into a file."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envcheck.emit import TARGETS
from envcheck.emit.options import Options
from envcheck.errors import LockError, UsageError
from envcheck.model.codec import decode, encode
from envcheck.model.plan import Lock
from tests.emit.locks import MATRIX, example

IMAGES = [name for name in TARGETS if name in ("dockerfile", "compose", "devcontainer")]
OWN = ("dockerfile", "compose", "devcontainer", "requirements", "conda")

HOSTILE = [
    "x\nRUN id",
    "x; id",
    "$(id)",
    "`id`",
    'x" && id "',
    "x' || id '",
    "../../etc/passwd",
    "/etc/passwd",
    "x \\",
    "x  y;",
    "x\r",
    "x\x00",
    "{{ 7 * 7 }}",
    "${HOME}",
    "--index-url=https://example.org",
    "x\u2028RUN id",
    "",
    "٣.١٢",
]


def _strings(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Where in plain data there is text."""
    if isinstance(value, str):
        return [path]
    if isinstance(value, dict):
        return [each for key, item in value.items() for each in _strings(item, (*path, key))]
    if isinstance(value, list):
        return [each for at, item in enumerate(value) for each in _strings(item, (*path, at))]
    return []


PLAIN = encode(example())
# The flavour of the module is one of two words, which the decoder knows.
FIELDS = [path for path in _strings(PLAIN) if path[-1] != "driver_module"]


def _written(path: tuple[str | int, ...]) -> str:
    """A path as messages write it: `stack.pins[0].version`."""
    text = "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in path)
    return text.removeprefix(".")


def with_text(path: tuple[str | int, ...], text: str) -> Lock:
    """The example's lock with other text in one place, as no file could hold it."""
    data = encode(example())
    inner = data
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = text
    return decode(Lock, data)


def runs(dockerfile: str) -> list[str]:
    """RUN instructions, and the instructions that shells read as well."""
    joined = dockerfile.replace("\\\n", " ")
    return [line for line in joined.splitlines() if re.match(r"(?:RUN|CMD|ADD|ENV|FROM)\b", line)]


PLAIN_RUNS = {
    profile: runs(
        import_module(TARGETS["dockerfile"]).files(example(), MATRIX, Options(profile=profile))[
            "Dockerfile"
        ]
    )
    for profile in ("runtime", "devel")
}


@pytest.mark.parametrize("path", FIELDS, ids=_written)
def test_hostile_text_in_a_lock_is_refused_with_its_field(path: tuple[str | int, ...]) -> None:
    for text in HOSTILE:
        lock = with_text(path, text)
        for target in OWN:
            with pytest.raises(LockError) as caught:
                import_module(TARGETS[target]).files(lock, MATRIX, Options())
            assert f" {_written(path)}: " in str(caught.value)
            assert str(caught.value).isprintable()


@given(
    path=st.sampled_from(FIELDS),
    text=st.one_of(
        st.text(max_size=30),
        st.from_regex(r"[a-z0-9.+-]{1,12}", fullmatch=True),
        st.tuples(
            st.sampled_from(["3.12", "torch", "2.8.0", "12.8"]), st.sampled_from(HOSTILE)
        ).map("".join),
    ),
    profile=st.sampled_from(["runtime", "devel"]),
)
@settings(max_examples=300, deadline=None)
def test_whatever_a_lock_holds_run_lines_stay_as_they_are(
    path: tuple[str | int, ...], text: str, profile: Any
) -> None:
    """Either the field is refused, or what shells read differs in versions and names of images."""
    try:
        lock = with_text(path, text)
        made = import_module(TARGETS["dockerfile"]).files(lock, MATRIX, Options(profile=profile))
    except (LockError, UsageError) as error:
        assert str(error).isprintable()
        return
    except ValueError as error:  # the decoder, of a word that is none of those it knows
        assert _written(path) in str(error)
        return

    def shape(lines: list[str]) -> set[str]:
        return {re.sub(r"[0-9]+(?:\.[0-9]+)*|bookworm|trixie", "N", line) for line in lines}

    known = shape(PLAIN_RUNS[profile])
    for line in runs(made["Dockerfile"]):
        short = re.sub(r"[0-9]+(?:\.[0-9]+)*|bookworm|trixie", "N", line)
        # Other Pythons start from other images; the rest of such a line is still the template's.
        assert short in known or re.fullmatch(
            r"FROM python:N-slim-N AS base|ENV CUDA_HOME=/usr/local/cuda"
            r"(?: +TORCH_CUDA_ARCH_LIST=\"(?:N;?)*\")?|ENV NVIDIA_DISABLE_REQUIRE=true",
            short,
        ), line


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize(
    ("field", "flag"),
    [
        ("base", "--base"),
        ("profile", "--profile"),
        ("tools", "--with"),
        ("extensions", "--build-extensions"),
        ("shm_size", "--shm-size"),
        ("ipc", "--ipc"),
        ("gpus", "--gpus"),
    ],
)
@pytest.mark.parametrize("target", IMAGES)
def test_hostile_options_are_refused_with_their_flag(
    target: str, field: str, flag: str, text: str
) -> None:
    value: Any = (text,) if field in ("tools", "extensions") else text
    with pytest.raises(UsageError) as caught:
        import_module(TARGETS[target]).files(example(), MATRIX, Options(**{field: value}))
    assert str(caught.value).startswith(f"{flag}: ")
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    "text",
    [
        "ubuntu",
        "ubuntu:latest",
        "Ubuntu:24.04",
        "ubuntu:24.04@sha256:abc",
        "-ubuntu:24.04",
        "ubuntu:24.04 AS x",
        "a" * 300 + ":1",
        "http://example.org/ubuntu:1",
    ],
)
def test_a_base_must_be_a_pinned_image(text: str) -> None:
    with pytest.raises(UsageError, match="^--base: "):
        import_module(TARGETS["dockerfile"]).files(example(), MATRIX, Options(base=text))
