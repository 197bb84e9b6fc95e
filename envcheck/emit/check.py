"""Distrust: nothing gets into a file that a lock or an option may not hold."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from envcheck.emit.options import IPC, PROFILES, TOOLS
from envcheck.errors import UsageError
from envcheck.planner.lock import NAME, lock_text
from envcheck.spelling import suggestion

if TYPE_CHECKING:
    from collections.abc import Sequence

    from envcheck.emit.options import Options
    from envcheck.model.plan import Lock

_WORD = r"[a-z0-9]+(?:(?:\.|_{1,2}|-{1,3})[a-z0-9]+){0,10}"
_HOST = r"[a-z0-9](?:[a-z0-9-]{0,62}\.){0,6}[a-z0-9-]{0,62}(?::[0-9]{1,5})?"
_TAG = r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}"
IMAGE = re.compile(
    rf"(?P<name>(?:{_HOST}/)?{_WORD}(?:/{_WORD}){{0,6}})(?::(?P<tag>{_TAG}))?"
    r"(?:@(?P<digest>sha256:[0-9a-f]{64}))?"
)
"""A reference to an image, as engines take it."""
LONGEST_IMAGE = 255
_SIZE = re.compile(r"[1-9][0-9]{0,4}[mg]")
_COUNT = re.compile(r"all|[1-9][0-9]?")
MOST = 20
"""Extensions that one image can be asked for."""


def checked(lock: Lock, options: Options) -> None:
    """Check everything that files are made of.

    Raises:
        LockError: a field of the lock holds what a lock may not hold; the message names it.
        UsageError: an option is not of its form; the message names the flag.
    """
    lock_text(lock)
    _one_of("--profile", options.profile, PROFILES)
    _one_of("--ipc", options.ipc, IPC)
    for tool in options.tools:
        _one_of("--with", tool, TOOLS)
    if len(options.extensions) > MOST:
        msg = f"--build-extensions: more than {MOST}"
        raise UsageError(msg)
    for name in options.extensions:
        _fits("--build-extensions", name, re.compile(NAME), "a package such as flash-attn")
    _fits("--shm-size", options.shm_size, _SIZE, "a size such as 8g or 512m")
    _fits("--gpus", options.gpus, _COUNT, "'all' or a number")
    if options.base is not None:
        _check_base(options.base)


def _check_base(text: str) -> None:
    _fits("--base", text[: LONGEST_IMAGE + 1], IMAGE, "an image such as ubuntu:24.04")
    found = IMAGE.fullmatch(text)
    if found is None or len(text) > LONGEST_IMAGE:
        msg = "--base: too long for an image"
        raise UsageError(msg)
    if found["digest"] is None and found["tag"] in (None, "latest"):
        msg = f"--base: {text} names whatever is newest: give a tag or a digest"
        raise UsageError(msg)


def _one_of(flag: str, word: str, known: Sequence[str]) -> None:
    if word not in known:
        hint = suggestion(word[:40], known) or f"choose from {', '.join(known)}"
        msg = f"{flag}: {shown(word)} is not known: {hint}"
        raise UsageError(msg)


def _fits(flag: str, text: str, pattern: re.Pattern[str], what: str) -> None:
    if not pattern.fullmatch(text):
        msg = f"{flag}: {shown(text)} is not {what}"
        raise UsageError(msg)


def shown(text: str) -> str:
    """Foreign text in one line of a message."""
    return "'" + "".join(char if char.isprintable() else "?" for char in text[:60]) + "'"
