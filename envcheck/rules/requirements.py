"""Reads the requirement lines of installed distributions: name, extras, bounds, marker.

Small on purpose: `packaging.requirements` takes longer to import than all rules take to run, and
the lines that matter here (exact pins of NVIDIA's wheels and of frameworks) are simple. What is not
understood counts as not required, so that it never becomes an alarm.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING

from envcheck.markers import holds, within
from envcheck.model.base import model
from envcheck.versions import Release

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from envcheck.model.environment import Package
    from envcheck.model.snapshot import Snapshot

_LINE = re.compile(
    r"\s*(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[(?P<extras>[^\]]*)\])?\s*"
    r"\(?\s*(?P<bounds>[^;()]*?)\s*\)?\s*(?:;\s*(?P<marker>.*))?"
)
_BOUND = re.compile(r"(===|==|~=|!=|<=|>=|<|>)\s*([^\s,]+)")


@model
class Requirement:
    """One line of a distribution's metadata.

    Attributes:
        name: normalised name of the required distribution.
        extras: its extras that are asked for.
        bounds: (operator, version) pairs.
        line: as it was read.
    """

    name: str
    extras: tuple[str, ...] = ()
    bounds: tuple[tuple[str, str], ...] = ()
    line: str = ""

    @property
    def exact(self) -> str | None:
        """The one version that is allowed, `9.10.2.21` or `13.0.96.*`; None for a range."""
        return next((text for sign, text in self.bounds if sign in {"==", "==="}), None)

    def allows(self, version: str) -> bool | None:
        """Whether an installed version is within the bounds; local tags do not count."""
        have = Release.maybe(version)
        if have is None:
            return None
        verdicts = [within(have, sign, text) for sign, text in self.bounds]
        if False in verdicts:
            return False
        return None if None in verdicts else True


def normal(name: str) -> str:
    """A distribution's name in the one spelling that all sides share."""
    return re.sub(r"[-_.]+", "-", name).lower()


@functools.lru_cache(maxsize=512)
def parse(line: str) -> tuple[Requirement, str] | None:
    """Split a requirement line into the requirement and the text of its marker."""
    match = _LINE.fullmatch(line)
    if match is None:
        return None
    extras = tuple(part.strip() for part in (match["extras"] or "").split(",") if part.strip())
    bounds = tuple(_BOUND.findall(match["bounds"] or ""))
    required = Requirement(name=normal(match["name"]), extras=extras, bounds=bounds, line=line)
    return required, match["marker"] or ""


def required(
    snapshot: Snapshot, package: Package, *, extras: tuple[str, ...] = ()
) -> Iterator[Requirement]:
    """Requirements of an installed distribution that apply to this interpreter and system.

    Args:
        snapshot: says which interpreter and system that is.
        package: the distribution.
        extras: its own extras that count as asked for.

    Yields:
        The requirements whose marker is true; a marker that cannot be decided counts as false.
    """
    yield from _applying(package.requires, extras, tuple(_facts(snapshot).items()))


@functools.lru_cache(maxsize=4096)
def _applying(
    lines: tuple[str, ...], extras: tuple[str, ...], facts: tuple[tuple[str, str], ...]
) -> tuple[Requirement, ...]:
    """The requirements among lines that apply; a dozen rules ask for those of one package."""
    found = []
    for line in lines:
        parsed = parse(line)
        if parsed is None:
            continue
        requirement, marker = parsed
        if not marker or any(holds(marker, facts, extra) is True for extra in ("", *extras)):
            found.append(requirement)
    return tuple(found)


def _facts(snapshot: Snapshot) -> Mapping[str, str]:
    """Marker variables, as far as the snapshot knows them."""
    python = snapshot.env.python
    platform = python.platform or ""
    system = next(
        (
            name
            for prefix, name in (("linux", "Linux"), ("win", "Windows"), ("macosx", "Darwin"))
            if platform.startswith(prefix)
        ),
        "Linux" if snapshot.host.os.kernel else "",
    )
    machine = next(
        (
            name
            for suffix, name in (("x86_64", "x86_64"), ("aarch64", "aarch64"), ("amd64", "AMD64"))
            if platform.endswith(suffix)
        ),
        snapshot.host.os.machine or "",
    )
    release = Release.maybe(python.version)
    known = {
        "platform_system": system,
        "sys_platform": {"Linux": "linux", "Windows": "win32", "Darwin": "darwin"}.get(system, ""),
        "os_name": "nt" if system == "Windows" else "posix" if system else "",
        "platform_machine": machine,
        "python_version": release.series if release else "",
        "python_full_version": release.text if release else "",
        "implementation_name": python.implementation or "cpython",
        "platform_python_implementation": "CPython",
    }
    return {name: value for name, value in known.items() if value}
