"""Finds and ends what a stopped program left running outside its process group.

A program may start others in sessions of their own, and those may outlive their parents: neither
the process group nor the tree of parents leads to them. Each program is therefore started with a
mark in its environment, which all that descends from it inherits.
"""

from __future__ import annotations

import os

MARK = "ENVCHECK_CHILD"
"""Variable that holds the mark."""

_PASSES = 5
"""How often is looked anew: a process may start another while it is being ended."""


def new_mark() -> str:
    """A mark that no other process has."""
    return os.urandom(12).hex()


def end_marked(marks: tuple[str, ...]) -> None:
    """Kill every process that has one of these marks, as far as this user may.

    Args:
        marks: of programs whose own groups have been ended.
    """
    import contextlib
    import signal

    wanted = tuple(f"{MARK}={mark}".encode() for mark in marks)
    for _ in range(_PASSES):
        found = _marked(wanted)
        for pid in found:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        if not found:
            return


def _marked(wanted: tuple[bytes, ...]) -> list[int]:
    try:
        names = os.listdir("/proc")  # noqa: PTH208 - names, not paths
    except OSError:
        return []
    own = os.getpid()
    return [
        int(name) for name in names if name.isdigit() and int(name) != own and _has(name, wanted)
    ]


def _has(name: str, wanted: tuple[bytes, ...]) -> bool:
    """Whether a process has one of the marks; one that has ended has no environment any more."""
    try:
        with open(f"/proc/{name}/environ", "rb") as stream:  # noqa: PTH123 - pathlib takes longer
            variables = stream.read().split(b"\0")
    except OSError:
        return False
    return any(each in variables for each in wanted)
