"""glibc-too-old."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from envcheck.model.finding import Evidence, Fix
from envcheck.rules import install, pins
from envcheck.rules.base import finding, rule
from envcheck.versions import Release

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.model.environment import Package
    from envcheck.model.snapshot import Snapshot
    from envcheck.rules.base import Answer

_NAMED = {"manylinux1": (2, 5), "manylinux2010": (2, 12), "manylinux2014": (2, 17)}
_NUMBERED = re.compile(r"manylinux_(\d+)_(\d+)")
_SAID = re.compile(r"version `GLIBC_(\d+\.\d+)' not found")


@rule("glibc-too-old", component="framework", when=pins.packages_known)
def glibc_too_old(snapshot: Snapshot, _matrix: Matrix) -> Answer:
    """The C library is as new as the installed wheels were built for.

    Why: a wheel tagged manylinux_2_28 uses functions of glibc 2.28. On an older system it fails to
    load with "version GLIBC_... not found".

    Fix: an older release of the package whose wheel fits, a newer operating system, or a container.
    """
    libc = snapshot.env.python.libc or ""
    have = Release.maybe(
        libc.partition(" ")[2] if libc.startswith("glibc") else snapshot.host.os.glibc
    )
    if libc.startswith("musl") or have is None:
        return
    errors = {each.name: each.error or "" for each in snapshot.env.frameworks or ()}
    for package in snapshot.env.packages or ():
        said = _SAID.search(errors.get(package.name, ""))
        floor = tuple(int(n) for n in said.group(1).split(".")) if said else _floor(package)
        if floor is None or have.parts[:2] >= floor:
            continue
        text = ".".join(str(number) for number in floor)
        yield finding(
            "glibc-too-old",
            "error",
            "framework",
            install.label(package),
            f"{package.name} needs a newer C library",
            found=f"glibc {have}",
            needed=f"glibc {text} or newer",
            why="glibc is part of the operating system; a program that was linked against a newer "
            "one does not load.",
            fix=(
                Fix(
                    title="Let pip choose a release whose wheel fits this system",
                    commands=install.install(
                        snapshot,
                        (f"{package.name}<={install.public_version(package.version)}",),
                        reinstall=True,
                    ),
                ),
                Fix(title="Or use a newer operating system, or a container image of one"),
            ),
            evidence=(
                Evidence(label="wheel", value=package.build or package.version, via="metadata"),
                Evidence(label="libc", value=f"glibc {have}", via="interpreter"),
            ),
        )


def _floor(package: Package) -> tuple[int, ...] | None:
    """Lowest glibc that a wheel's tags accept; None when it names none."""
    tag = package.build or ""
    floors = [(int(major), int(minor)) for major, minor in _NUMBERED.findall(tag)]
    floors += [floor for name, floor in _NAMED.items() if re.search(rf"{name}(?!\d)", tag)]
    return min(floors, default=None)
