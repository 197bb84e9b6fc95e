"""What every reader of wheels shares: which releases to read, and the rows that follow."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from packaging.version import Version

    from envcheck.refresh.client import AbsentError
    from envcheck.refresh.page import Wheel

PLATFORMS = ("linux_aarch64", "linux_x86_64")


@dataclasses.dataclass(frozen=True, slots=True)
class DerivedRow:
    """A row as the wheels have it.

    Attributes:
        section: section of the table.
        values: fields that were looked for; None is a field that does not apply.
        source: id of the source, and its title for a table that does not have it yet.
        title: the source in words.
        measured: whether something was opened rather than read.
        note: for a row that is new.
    """

    section: str
    values: Mapping[str, Any]
    source: str
    title: str
    measured: bool = False
    note: str | None = None


@dataclasses.dataclass(slots=True)
class Derived:
    """All that was read for one table.

    Attributes:
        rows: in any order.
        notes: what a person should know or do.
        unread: releases of which something could not be read, with what.
        reason: why the first of them could not be read.
    """

    rows: list[DerivedRow] = dataclasses.field(default_factory=list)
    notes: list[str] = dataclasses.field(default_factory=list)
    unread: dict[str, list[str]] = dataclasses.field(default_factory=dict)
    reason: str = ""

    def leave_out(self, release: str, what: str, error: AbsentError) -> None:
        """Remember that something could not be read."""
        self.unread.setdefault(release, []).append(what)
        self.reason = self.reason or str(error)


@dataclasses.dataclass(frozen=True, slots=True)
class Scope:
    """What to read.

    Attributes:
        table: the table as it is, plain.
        cuda_majors: CUDA majors that the tables know.
        releases: only these; all when empty.
        arches: whether to search libraries for what they were compiled for.
    """

    table: Mapping[str, Any]
    cuda_majors: tuple[str, ...] = ()
    releases: tuple[str, ...] = ()
    arches: bool = False

    def rows(self, section: str) -> list[dict[str, Any]]:
        """Rows of the table as it is."""
        found: list[dict[str, Any]] = self.table.get(section, [])
        return found

    def wants(self, release: str) -> bool:
        """Whether a release is among those asked for."""
        return not self.releases or release in self.releases

    def of_interest(
        self, wheels: Iterable[Wheel], section: str, field: str = "version"
    ) -> Iterator[tuple[str, list[Wheel]]]:
        """Releases with their wheels, oldest first: finished ones, from the table's oldest on."""
        known = [version(row[field]) for row in self.rows(section)]
        oldest = min(known, default=None)
        for release, files in by_release(wheels):
            key = version(release)
            if key.is_prerelease or not self.wants(release):
                continue
            if oldest is None or key >= oldest:
                yield release, files


def version(text: str) -> Version:
    """A version that orders as pip orders it."""
    from packaging.version import InvalidVersion, Version

    try:
        return Version(text)
    except InvalidVersion:
        return Version("0.dev0")


def by_release(wheels: Iterable[Wheel]) -> list[tuple[str, list[Wheel]]]:
    """Wheels of each release, oldest first."""
    found: dict[str, list[Wheel]] = {}
    for wheel in wheels:
        found.setdefault(wheel.version, []).append(wheel)
    return sorted(found.items(), key=lambda each: version(each[0]))


def python_tags(wheels: Iterable[Wheel]) -> list[str]:
    """Interpreter tags, the ordinary ones first, each by number."""
    return sorted({wheel.python for wheel in wheels}, key=_tag_order)


def platforms(wheels: Iterable[Wheel]) -> list[str]:
    """Linux platforms."""
    return sorted({wheel.platform for wheel in wheels} & set(PLATFORMS))


def typical(wheels: Sequence[Wheel]) -> Wheel:
    """One wheel to stand for those of a release and platform: that of the middle interpreter.

    Of several builds for that interpreter, it is the one that pip would take.
    """
    ordinary = [wheel for wheel in wheels if not wheel.python.endswith("t")] or list(wheels)
    tags = python_tags(ordinary)
    middle = tags[len(tags) // 2]
    alike = (wheel for wheel in ordinary if wheel.python == middle)
    return max(alike, key=lambda wheel: (wheel.build, wheel.platform, wheel.filename))


def withdrawn(wheels: Sequence[Wheel]) -> bool:
    """Whether the release was withdrawn as a whole."""
    return all(wheel.yanked for wheel in wheels)


def _tag_order(tag: str) -> tuple[bool, int, int]:
    match = re.match(r"[a-z]+(\d)(\d*)", tag)
    numbers = (int(match[1]), int(match[2] or 0)) if match else (0, 0)
    return (tag.endswith("t"), *numbers)
