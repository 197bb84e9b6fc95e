"""What is wanted: requirement lines, read and sorted into frameworks and what lies on top."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from envcheck.errors import UsageError
from envcheck.matrix.schema import LibraryRequirement
from envcheck.model.base import model
from envcheck.planner.lock import REQUIREMENT
from envcheck.rules import install
from envcheck.rules.framework.declared import FRAMEWORKS
from envcheck.rules.requirements import Requirement, normal, parse
from envcheck.spelling import suggestion

if TYPE_CHECKING:
    from collections.abc import Iterable

    from envcheck.matrix.loader import Matrix

COMPANIONS = ("torchvision", "torchaudio")
DEFAULT = "torch"
"""Framework that is planned where nothing else is asked for."""
KERAS = "keras"
BROUGHT = ("jaxlib",)
"""Packages that come with a framework and have no version of their own."""


@model
class Wants:
    """Wanted requirements by what they are.

    Attributes:
        frameworks: those to plan, in the order asked for, implied ones last.
        bounds: distribution name -> what was asked of it.
        companions: of torch, to pin beside it.
        libraries: names that the table of libraries knows.
        exact: other packages, of a version that was named; carried along without a judgement.
    """

    frameworks: tuple[str, ...]
    bounds: dict[str, Requirement]
    companions: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    exact: tuple[str, ...] = ()

    def asked(self, name: str) -> Requirement:
        """What was asked of a distribution; nothing when it was not named."""
        return self.bounds.get(name) or Requirement(name=name)

    def allows(self, name: str, version: str) -> bool:
        """Whether a version, with its local tag where it has one, is what was asked for."""
        return meets(self.asked(name), version)


def meets(asked: Requirement, version: str) -> bool:
    """Whether a version is within bounds.

    A bound that names a local tag asks for that build, and one that names a release exactly for
    that one, not for the repair (`.post1`) of it.
    """
    exact = [text for sign, text in asked.bounds if sign in {"==", "==="}]
    tags = {install.local_tag(text) for text in exact} - {""}
    repairs = {_repair(text) for text in exact if not text.endswith(".*")}
    return (
        asked.allows(version) is not False
        and (not tags or install.local_tag(version) in tags)
        and (not repairs or _repair(version) in repairs)
    )


def _repair(version: str) -> str:
    return install.public_version(version).partition(".post")[2]


def normalised(line: str) -> str:
    """A requirement in the one spelling that locks hold: `torch>=2.6`.

    Raises:
        UsageError: it is no plain requirement (markers and addresses are not understood).
    """
    bare = re.sub(r"\s+", "", line)
    match = re.match(r"[A-Za-z0-9][A-Za-z0-9._-]*", bare)
    text = normal(match[0]) + bare[match.end() :].lower() if match else bare
    if not re.fullmatch(REQUIREMENT, text):
        shown = "".join(char if char.isprintable() else "?" for char in line[:80])
        msg = f"--want: '{shown}' is no requirement such as 'torch>=2.6' or 'jax[cuda12]'"
        raise UsageError(msg)
    return text


def read_wants(lines: Iterable[str], matrix: Matrix) -> Wants:
    """Sort requirement lines.

    Raises:
        UsageError: a line cannot be read, a package is unknown and of no exact version, or is named
            twice.
    """
    bounds: dict[str, Requirement] = {}
    for line in lines:
        parsed = parse(normalised(line))
        if parsed is None:  # normalised() lets nothing through that is not understood
            continue
        requirement = parsed[0]
        if requirement.name in bounds:
            msg = f"--want: {requirement.name} is named twice: join its bounds with commas"
            raise UsageError(msg)
        bounds[requirement.name] = requirement
    libraries = set(matrix.values(LibraryRequirement, "library"))
    brought = {*BROUGHT, KERAS} if "tensorflow" in bounds else {*BROUGHT}
    known = {*FRAMEWORKS, *COMPANIONS, *libraries, *brought}
    for name, requirement in bounds.items():
        if name not in known and (requirement.exact is None or "*" in requirement.exact):
            hint = suggestion(name, known)
            msg = f"--want: no table knows '{name}': {hint or f'name its version, {name}==N.N'}"
            raise UsageError(msg)
    chosen = [name for name in bounds if name in FRAMEWORKS]
    for name in bounds:
        for implied in _implied(name, matrix):
            if implied not in chosen:
                chosen.append(implied)
    if not chosen:
        chosen = [DEFAULT]
    return Wants(
        frameworks=tuple(chosen),
        bounds=bounds,
        companions=tuple(name for name in COMPANIONS if name in bounds),
        libraries=tuple(name for name in bounds if name in libraries),
        exact=tuple(
            name
            for name in bounds
            if name not in libraries and name not in (*FRAMEWORKS, *COMPANIONS, *BROUGHT)
        ),
    )


def _implied(name: str, matrix: Matrix) -> tuple[str, ...]:
    """Frameworks that a package cannot do without: asked for by its newest release, no extra."""
    if name in COMPANIONS:
        return ("torch",)
    if name in BROUGHT:
        return ("jax",)
    rows = matrix.find(LibraryRequirement, library=name)
    return tuple(
        dict.fromkeys(
            row.requires_framework
            for row in rows
            if row.version == rows[-1].version
            and row.extra is None
            and row.requires_framework in FRAMEWORKS
        )
    )
