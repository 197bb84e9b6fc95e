"""library-requires-other-framework."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.matrix.schema import LibraryRequirement
from envcheck.model.finding import Evidence, Fix
from envcheck.rules import install, pins
from envcheck.rules.base import cite, finding, rule
from envcheck.rules.framework.declared import FRAMEWORKS, Declared, declared
from envcheck.rules.framework.extensions import NATIVE
from envcheck.versions import Release

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.model.environment import Package
    from envcheck.model.finding import Finding, Severity
    from envcheck.model.snapshot import Snapshot
    from envcheck.rules.base import Answer
    from envcheck.rules.requirements import Requirement

_PRERELEASE = ("a", "b", "rc", "dev")


@rule("library-requires-other-framework", component="framework", when=pins.packages_known)
def library_requires_other_framework(snapshot: Snapshot, matrix: Matrix) -> Answer:
    """Lightning, Transformers, NeMo, vLLM and their like accept the installed framework.

    What the installed library's own metadata asks for decides; where that was not read, the table
    of libraries does, for the version at hand or when both of its neighbours ask for the same. A
    framework that is older than asked for, or other than the only one accepted, is an error; one
    that is newer than the range a warning, since such a bound is often cautious.

    Why: these libraries call functions of the framework that came or went with a release; outside
    the range they fail at import, or switch their support for the framework off without a word.

    Fix: install a framework in the range, or a release of the library that accepts this one.
    """
    for package in snapshot.env.packages or ():
        if not matrix.find(LibraryRequirement, library=package.name):
            continue
        for asked in declared(snapshot, matrix, package):
            if package.name in NATIVE and asked.requirement.name == "torch":
                continue  # its machine code is what matters: extension-built-for-other-torch
            other = snapshot.env.package(asked.requirement.name)
            if other is None or asked.requirement.allows(_release(snapshot, other)) is not False:
                continue
            if any(mark in install.public_version(other.version) for mark in _PRERELEASE):
                continue  # a vendor's preview of a release does not sort beside releases
            yield _finding(snapshot, matrix, package, other, asked)


def _release(snapshot: Snapshot, package: Package) -> str:
    framework = snapshot.env.framework(package.name)
    return framework.version if framework is not None else package.version


def _finding(
    snapshot: Snapshot, matrix: Matrix, package: Package, other: Package, asked: Declared
) -> Finding:
    wanted = asked.requirement
    bounds = ",".join(f"{sign}{text}" for sign, text in wanted.bounds)
    fixes = [
        Fix(
            title=f"Install a release of {package.name} that accepts {install.label(other)}",
            commands=install.install(snapshot, (package.name,), upgrade=True),
        )
    ]
    if other.name not in FRAMEWORKS:
        # A framework comes in CUDA variants, so that naming a version alone may bring another one.
        fixes.insert(
            0,
            Fix(
                title=f"Install a {other.name} that {package.name} accepts",
                commands=install.install(snapshot, (f"{other.name}{bounds}",)),
            ),
        )
    else:
        fixes.append(Fix(title=f"Or change to {other.name}{bounds}: 'envcheck plan' finds a build"))
    return finding(
        "library-requires-other-framework",
        _severity(wanted, _release(snapshot, other)),
        "framework",
        install.label(package),
        f"{package.name} does not accept this {other.name}",
        found=f"{install.label(package)} with {install.label(other)}",
        needed=f"{other.name}{bounds}",
        why=f"{package.name} declares which releases of {other.name} it works with, and this one "
        "is outside that range.",
        fix=fixes,
        evidence=(
            Evidence(
                label=f"{package.name} requires",
                value=wanted.line,
                via="distribution metadata" if asked.row is None else "table of libraries",
            ),
            Evidence(label=other.name, value=other.version, via=other.location or "package list"),
        ),
        sources=cite(matrix, asked.row),
    )


def _severity(wanted: Requirement, version: str) -> Severity:
    """Too old, or not the only one accepted: error. Newer than the range: warning."""
    if wanted.exact is not None:
        return "error"
    floors = tuple((sign, text) for sign, text in wanted.bounds if sign in {">", ">=", "~="})
    have = Release.maybe(version)
    below = any(
        (floor := Release.maybe(text)) is not None and have is not None and have < floor
        for _, text in floors
    )
    return "error" if below else "warning"
