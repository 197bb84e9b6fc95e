"""Reads the requirement lines of installed distributions: name, extras, bounds, marker.

Small on purpose: `packaging.requirements` takes longer to import than all rules take to run, and
the lines that matter here (exact pins of NVIDIA's wheels and of frameworks) are simple. What is not
understood counts as not required, so that it never becomes an alarm.
"""

from __future__ import annotations

import functools
import operator
import re
from typing import TYPE_CHECKING

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
_TOKEN = re.compile(
    r"\s*(?:(?P<op>===|==|~=|!=|<=|>=|<|>|\(|\)|\bnot\s+in\b|\bin\b|\band\b|\bor\b)"
    r"|(?P<quoted>'[^']*'|\"[^\"]*\")|(?P<name>[a-z_.]+))"
)
_ORDER = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_DOTTED = frozenset({"python_version", "python_full_version", "platform_release"})


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
        verdicts = [_within(have, sign, text) for sign, text in self.bounds]
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
    facts = _facts(snapshot)
    for line in package.requires:
        parsed = parse(line)
        if parsed is None:
            continue
        requirement, marker = parsed
        if not marker or any(
            _holds(marker, {**facts, "extra": extra}) is True for extra in ("", *extras)
        ):
            yield requirement


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


def _within(have: Release, sign: str, text: str) -> bool | None:
    wanted = Release.maybe(text)
    if wanted is None:
        return None
    if sign in {"==", "===", "!="}:
        same = (
            have.parts[: len(wanted.parts)] == wanted.parts
            if text.endswith(".*")
            else have == wanted
        )
        return same if sign != "!=" else not same
    if sign == "~=":
        prefix = wanted.parts[:-1]
        return have >= wanted and have.parts[: len(prefix)] == prefix
    compare = _ORDER.get(sign)
    return bool(compare(have, wanted)) if compare else None


class _Undecided(Exception):
    """A marker that this reader does not understand."""


def _holds(marker: str, facts: Mapping[str, str]) -> bool | None:
    """Evaluate a marker; None when it cannot be decided."""
    tokens: list[str] = []
    at = 0
    text = marker.strip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            return None
        tokens.append(re.sub(r"\s+", " ", match.group().strip()))
        at = match.end()
    try:
        value = _either(tokens, facts)
    except (_Undecided, IndexError):
        return None
    return value if not tokens else None


def _either(tokens: list[str], facts: Mapping[str, str]) -> bool | None:
    values = [_both(tokens, facts)]
    while tokens and tokens[0] == "or":
        tokens.pop(0)
        values.append(_both(tokens, facts))
    return True if True in values else None if None in values else False


def _both(tokens: list[str], facts: Mapping[str, str]) -> bool | None:
    values = [_one(tokens, facts)]
    while tokens and tokens[0] == "and":
        tokens.pop(0)
        values.append(_one(tokens, facts))
    return False if False in values else None if None in values else True


def _one(tokens: list[str], facts: Mapping[str, str]) -> bool | None:
    if tokens[0] == "(":
        tokens.pop(0)
        value = _either(tokens, facts)
        if tokens.pop(0) != ")":
            raise _Undecided
        return value
    left, sign, right = tokens.pop(0), tokens.pop(0), tokens.pop(0)
    one, other = _value(left, facts), _value(right, facts)
    if one is None or other is None:
        return None
    if left in _DOTTED or right in _DOTTED:
        have, wanted = Release.maybe(one), Release.maybe(other)
        if have is not None and wanted is not None:
            return _within(have, sign, other)
    answers = {
        "==": one == other,
        "!=": one != other,
        "in": one in other,
        "not in": one not in other,
    }
    if sign not in answers:
        raise _Undecided
    return answers[sign]


def _value(token: str, facts: Mapping[str, str]) -> str | None:
    return token[1:-1] if token[:1] in {"'", '"'} else facts.get(token)
