"""What a change of the machine or of the request would make possible."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from envcheck.model.base import model
from envcheck.model.plan import Unlock
from envcheck.planner.preference import min_driver
from envcheck.planner.search import search
from envcheck.planner.wants import Wants, read_wants
from envcheck.rules.requirements import parse

if TYPE_CHECKING:
    from collections.abc import Iterator

    from envcheck.matrix.loader import Matrix
    from envcheck.model.plan import Request, Target
    from envcheck.model.snapshot import Snapshot
    from envcheck.planner.search import Found

MOST_CHANGES = 4


@model
class _Asking:
    """A request with all that belongs to it, to ask again with something changed."""

    matrix: Matrix
    request: Request
    wants: Wants
    machine: Snapshot | None

    def again(self, **changes: object) -> Found:
        """Search for a changed target."""
        target = dataclasses.replace(self.request.target, **changes)  # type: ignore[arg-type]
        request = dataclasses.replace(self.request, target=target)
        machine = _without_libc(self.machine) if "os" in changes else self.machine
        return search(self.matrix, request, self.wants, machine)

    def change(self, found: Found, fields: tuple[str, ...]) -> str:
        """A change of the target's fields, in words."""
        words = []
        for field in fields:
            if field == "driver" and found.bundle is not None:
                arches = self.request.target.arches
                needed = min_driver(self.matrix, found.bundle.options, arches)
                words.append(f"driver {needed} or newer")
            elif field == "python":
                words.append(f"Python {found.python}")
            elif field == "os":
                words.append("a newer operating system, or a container image of one")
        return " and ".join(words)


def _without_libc(machine: Snapshot | None) -> Snapshot | None:
    if machine is None:
        return None
    system = dataclasses.replace(machine.host.os, glibc=None)
    return dataclasses.replace(machine, host=dataclasses.replace(machine.host, os=system))


def label(found: Found) -> str:
    """A found stack in words: `torch 2.15.0+cu132, Python 3.13`."""
    if found.bundle is None:
        return ""
    libraries = [f"{p.name} {p.version}" for p in found.bundle.pins]
    names = [each.label for each in found.bundle.options] + libraries
    return ", ".join([*names, f"Python {found.python}"])


def _fields(target: Target) -> tuple[str, ...]:
    """What of a target is given and can be changed, the least disruptive first."""
    fields = ("python", "driver", "os")
    return tuple(name for name in fields if getattr(target, name) is not None)


def _changes(target: Target) -> Iterator[tuple[str, ...]]:
    given = _fields(target)
    yield from ((each,) for each in given)
    for at, first in enumerate(given):
        yield from ((first, second) for second in given[at + 1 :])


def unlocks(
    matrix: Matrix, request: Request, wants: Wants, machine: Snapshot | None, found: Found
) -> tuple[Unlock, ...]:
    """Changes of the machine that make something better possible than what was found.

    A change of two things is named only when it gives more than either alone.
    """
    asking = _Asking(matrix=matrix, request=request, wants=wants, machine=machine)
    best: dict[tuple[str, ...], Found] = {}
    for fields in _changes(request.target):
        other = asking.again(**dict.fromkeys(fields))
        below = [found, *(known for known_for, known in best.items() if {*known_for} < {*fields})]
        if other.bundle is not None and all(other.rank < each.rank for each in below):
            best[fields] = other
    return tuple(
        Unlock(change=asking.change(other, fields), gives=label(other))
        for fields, other in best.items()
    )


def smallest_changes(
    matrix: Matrix, request: Request, wants: Wants, machine: Snapshot | None
) -> tuple[Unlock, ...]:
    """The smallest changes that would give a stack at all, where nothing was found.

    One thing of the machine; else one wanted package less or in any version; else two things of the
    machine; else one environment for each framework.
    """
    asking = _Asking(matrix=matrix, request=request, wants=wants, machine=machine)
    ways: list[Unlock] = []
    changes = list(_changes(request.target))
    for size in (1, 0, 2):
        tried = (
            _of_wants(asking)
            if size == 0
            else _of_target(asking, [each for each in changes if len(each) == size])
        )
        ways += tried
        if ways:
            return tuple(ways[:MOST_CHANGES])
    return tuple(_apart(asking))


def _of_target(asking: _Asking, changes: list[tuple[str, ...]]) -> Iterator[Unlock]:
    for fields in changes:
        other = asking.again(**dict.fromkeys(fields))
        if other.bundle is not None:
            yield Unlock(change=asking.change(other, fields), gives=label(other))


def _of_wants(asking: _Asking) -> Iterator[Unlock]:
    """Any version of one wanted package, or the request without it."""
    lines = asking.request.want
    for at, line in enumerate(lines):
        parsed = parse(line)
        if parsed is None:
            continue
        asked = parsed[0]
        extras = f"[{','.join(asked.extras)}]" if asked.extras else ""
        if asked.bounds and asked.name not in asking.wants.exact:
            loose = (*lines[:at], f"{asked.name}{extras}", *lines[at + 1 :])
            yield from _with(asking, loose, f"any version of {asked.name}")
    if len(lines) > 1:
        for at, line in enumerate(lines):
            yield from _with(asking, (*lines[:at], *lines[at + 1 :]), f"without {line}")


def _with(asking: _Asking, lines: tuple[str, ...], change: str) -> Iterator[Unlock]:
    wants = read_wants(lines, asking.matrix)
    request = dataclasses.replace(asking.request, want=lines)
    other = search(asking.matrix, request, wants, asking.machine)
    if other.bundle is not None:
        yield Unlock(change=change, gives=label(other))


def _apart(asking: _Asking) -> Iterator[Unlock]:
    """One environment per framework."""
    names = asking.wants.frameworks
    if len(names) < 2:
        return
    found = []
    for name in names:
        line = next((each for each in asking.request.want if parse_name(each) == name), name)
        found += list(_with(asking, (line,), ""))
    if len(found) == len(names):
        yield Unlock(
            change="one environment for each framework",
            gives="; ".join(each.gives for each in found),
        )


def parse_name(line: str) -> str:
    """The distribution that a requirement line names."""
    parsed = parse(line)
    return parsed[0].name if parsed is not None else ""
