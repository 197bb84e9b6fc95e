"""mixed-cuda-majors."""

from __future__ import annotations

import re
from itertools import combinations
from typing import TYPE_CHECKING

from envcheck.matrix import query
from envcheck.model.finding import Evidence, Fix
from envcheck.rules import facts, install, pins
from envcheck.rules.base import cite, finding, rule
from envcheck.rules.requirements import required
from envcheck.versions import Release

if TYPE_CHECKING:
    from collections.abc import Iterator

    from envcheck.matrix.loader import Matrix
    from envcheck.model.environment import Package
    from envcheck.model.finding import Finding
    from envcheck.model.snapshot import Snapshot
    from envcheck.rules.base import Answer

_NATIVE = re.compile(r"\.(so(\.\d+)*|dll|pyd)$", re.IGNORECASE)

SAME_FILES = frozenset({"cudnn", "nccl", "cusparselt", "nvshmem"})
"""Wheels that carry no CUDA major in their library's file name: two majors of one of them, of one
major version of the library, write the same files."""


@rule(
    "mixed-cuda-majors",
    component="cuda",
    when=pins.packages_known,
    explains=(
        "cuda-runtime-mismatch",
        "cudnn-version-mismatch",
        "nccl-version-mismatch",
        "library-path-shadows-nccl",
        "library-path-shadows-cudnn",
    ),
)
def mixed_cuda_majors(snapshot: Snapshot, matrix: Matrix) -> Answer:
    """No two CUDA majors' wheels own one file or load into one process.

    An error when two installed wheels of different CUDA majors own the same library file, or when a
    framework that was asked had loaded both majors. Wheels of another major in folders of their own
    that no installed framework is built for are information.

    Why: `nvidia-nccl-cu12` and `nvidia-nccl-cu13` both install nvidia/nccl/lib/libnccl.so.2. The
    one installed last wins, whichever the framework was built for.

    Fix: uninstall both (uninstalling one deletes the files of the other too), then install the one
    that the framework requires.
    """
    collisions = list(_collisions(snapshot))
    for one, other, path in collisions:
        yield _collision(snapshot, matrix, one, other, path)
    yield from _both_loaded(snapshot)
    if not collisions:
        yield from _leftovers(snapshot)


def _wheels(snapshot: Snapshot) -> tuple[tuple[Package, str, int], ...]:
    """Installed NVIDIA wheels with stem and CUDA major."""
    found = []
    for package in snapshot.env.packages or ():
        parts = pins.split(package.name)
        if parts is None or parts[0] not in pins.LIBRARIES:
            continue
        stem, major = parts
        release = Release.maybe(package.version)
        if major is None and stem == "cuda-runtime" and release is not None:
            major = release.major
        if major is not None:
            found.append((package, stem, major))
    return tuple(found)


def _collisions(snapshot: Snapshot) -> Iterator[tuple[Package, Package, str]]:
    """Pairs of wheels of different CUDA majors that own one library file, and that file."""
    shared = [each for each in snapshot.env.shared_files or () if _NATIVE.search(each.path)]
    for (one, stem, major), (other, stem2, major2) in combinations(_wheels(snapshot), 2):
        if stem != stem2 or major == major2:
            continue
        path = next((f.path for f in shared if {one.name, other.name} <= {*f.packages}), None)
        if path is None and stem in SAME_FILES and one.location == other.location:
            release, release2 = Release.maybe(one.version), Release.maybe(other.version)
            if release is not None and release2 is not None and release.major == release2.major:
                path = f"nvidia/{stem}/lib"
        if path is not None:
            yield one, other, path


def _collision(
    snapshot: Snapshot, matrix: Matrix, one: Package, other: Package, path: str
) -> Finding:
    wanted = [
        pin
        for framework in facts.cuda_frameworks(snapshot)
        for pin in pins.pins(snapshot, framework)
        if pin.name in {one.name, other.name}
    ]
    names = {pin.name for pin in wanted} or _by_build(snapshot, one, other)
    subject = f"{install.label(one)} and {install.label(other)}"
    if len(names) == 1:
        keep = next(iter(names))
        exact = next((p.requirement.exact for p in wanted if p.requirement.exact), None)
        version = exact or (one if one.name == keep else other).version
        fix: tuple[Fix, ...] = (
            install.reinstall_pinned(
                snapshot,
                f"Remove both, then put back {keep}, the one that the framework was built for",
                (one.name, other.name),
                (f"{keep}=={version}",),
            ),
        )
    elif names:
        fix = (
            Fix(
                title="Two frameworks of different CUDA majors need one each: use builds of one "
                "major, or one environment per major"
            ),
        )
    else:
        fix = (
            install.reinstall_pinned(
                snapshot,
                "Remove both; then reinstall the framework, which brings the right one",
                (one.name, other.name),
                (),
            ),
        )
    return finding(
        "mixed-cuda-majors",
        "error",
        "cuda",
        subject,
        "Wheels of two CUDA majors overwrite each other's library",
        found=f"both own {path}",
        needed=f"one of them: {', '.join(sorted(names))}" if names else "one of them",
        why="Both wheels install the same file, so the framework loads whichever was installed "
        "last, and a library of another CUDA major fails to load or misses symbols.",
        fix=fix,
        evidence=(
            Evidence(label="installed", value=install.label(one), via=one.location or "metadata"),
            Evidence(
                label="installed", value=install.label(other), via=other.location or "metadata"
            ),
            *(pin.evidence for pin in wanted),
        ),
        sources=cite(matrix, *query.known_bad(matrix, one.name, "both-majors")),
    )


def _by_build(snapshot: Snapshot, one: Package, other: Package) -> set[str]:
    """Which of two wheels fits the CUDA majors of the installed frameworks."""
    majors = {
        release.major
        for framework in facts.cuda_frameworks(snapshot)
        if (release := Release.maybe(framework.cuda)) is not None
    }
    found = set()
    for package in (one, other):
        parts = pins.split(package.name)
        if parts is not None and parts[1] in majors:
            found.add(package.name)
    return found


def _both_loaded(snapshot: Snapshot) -> Iterator[Finding]:
    """A framework's process that held the CUDA runtimes of two majors."""
    for framework in facts.cuda_frameworks(snapshot):
        runtimes = [each for each in framework.loaded if each.name == "cudart"]
        majors = {
            release.major
            for each in runtimes
            if (release := Release.maybe(each.version)) is not None
        }
        if len(majors) > 1:
            listed = " and ".join(str(each) for each in sorted(majors))
            yield finding(
                "mixed-cuda-majors",
                "error",
                "cuda",
                install.label(framework),
                "One process loads CUDA libraries of two majors",
                found=f"the CUDA runtimes of {listed} in one process",
                needed=f"CUDA {framework.cuda}, which {framework.name} was built for",
                why="Libraries of two CUDA majors do not share memory, streams or handles.",
                fix=(
                    Fix(
                        title="Reinstall the extensions that bring the other major as builds for "
                        f"CUDA {framework.cuda}"
                    ),
                ),
                evidence=tuple(
                    Evidence(
                        label="loaded",
                        value=f"{e.path or e.name} ({e.version})",
                        via="process maps",
                    )
                    for e in runtimes
                ),
            )


def _leftovers(snapshot: Snapshot) -> Iterator[Finding]:
    """Wheels of a major that no installed framework was built for, beside those of one that was."""
    majors = {
        release.major
        for framework in snapshot.env.frameworks or ()
        if (release := Release.maybe(framework.cuda)) is not None
    }
    wheels = _wheels(snapshot)
    present = {major for _package, _stem, major in wheels}
    if not majors or not majors & present:
        return
    unused = [p for p, _stem, major in wheels if major not in majors]
    if unused:
        users = {
            requirement.name
            for package in snapshot.env.packages or ()
            for requirement in required(snapshot, package, extras=pins.CUDA_EXTRAS)
        }
        unused = [each for each in unused if each.name not in users]
    if not unused:
        return
    yield finding(
        "mixed-cuda-majors",
        "info",
        "cuda",
        ", ".join(package.name for package in unused),
        "Wheels of a CUDA major that no framework here was built for",
        found=", ".join(install.label(package) for package in unused),
        needed=f"nothing; the frameworks use CUDA {', '.join(str(m) for m in sorted(majors))}",
        why="They lie in folders of their own, so that they disturb nothing; no framework found "
        "here was built for their CUDA major.",
        fix=(
            Fix(
                title="Remove them if nothing else needs them",
                commands=install.uninstall(snapshot, tuple(package.name for package in unused)),
            ),
        ),
        evidence=tuple(
            Evidence(label="installed", value=install.label(p), via="metadata") for p in unused
        ),
    )
