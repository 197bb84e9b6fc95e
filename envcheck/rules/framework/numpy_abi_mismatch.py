"""numpy-abi-mismatch."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from envcheck.model.finding import Evidence, Fix
from envcheck.rules import install
from envcheck.rules.base import finding, rule
from envcheck.rules.requirements import required
from envcheck.versions import Release

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.model.environment import Package
    from envcheck.model.snapshot import Snapshot
    from envcheck.rules.base import Answer

_SAID = re.compile(
    r"compiled using NumPy 1\.x cannot be run in|Numpy is not available", re.IGNORECASE
)


def _has_numpy(snapshot: Snapshot) -> bool:
    return snapshot.env.package("numpy") is not None


@rule("numpy-abi-mismatch", component="framework", when=_has_numpy)
def numpy_abi_mismatch(snapshot: Snapshot, _matrix: Matrix) -> Answer:
    """Frameworks run with a NumPy of the major version that they were compiled for.

    Fires on the error itself, or when a framework's own requirement ends below the installed major.

    Why: NumPy 2 changed its binary interface; a module compiled for NumPy 1 does not work with it.

    Fix: an older NumPy, or a newer framework.
    """
    numpy = snapshot.env.package("numpy")
    have = Release.maybe(numpy.version) if numpy else None
    if numpy is None or have is None:
        return
    for framework in snapshot.env.frameworks or ():
        package = snapshot.env.package(framework.name)
        said = _SAID.search(framework.error or "")
        bound = _bound(snapshot, package, have) if package is not None else None
        if said is None and bound is None:
            continue
        older = f"numpy{bound}" if bound else f"numpy<{have.major}"
        yield finding(
            "numpy-abi-mismatch",
            "error",
            "framework",
            install.label(framework),
            f"{framework.name} was compiled for another major version of NumPy",
            found=f"{install.label(numpy)} with {install.label(framework)}",
            needed=older,
            why="NumPy's binary interface changed between these majors.",
            fix=(
                Fix(
                    title="Install a NumPy that it was compiled for",
                    commands=install.install(snapshot, (older,)),
                ),
                Fix(title=f"Or a newer release of {framework.name}"),
            ),
            evidence=(
                Evidence(label="numpy", value=numpy.version, via=numpy.location or "metadata"),
                Evidence(
                    label=framework.name,
                    value=(framework.error or "") if said else f"requires {older}",
                    via="import" if said else "metadata",
                ),
            ),
        )


def _bound(snapshot: Snapshot, package: Package, have: Release) -> str | None:
    """Bounds of a requirement that stops below the installed major; None when it allows it."""
    for requirement in required(snapshot, package):
        if requirement.name != "numpy" or requirement.allows(have.text) is not False:
            continue
        for sign, text in requirement.bounds:
            limit = Release.maybe(text)
            if sign == "<" and limit is not None and limit <= Release.parse(str(have.major)):
                return ",".join(f"{s}{t}" for s, t in requirement.bounds)
    return None
