"""cuda-runtime-mismatch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.model.finding import Evidence, Fix
from envcheck.rules import facts, install, pins
from envcheck.rules.base import finding, rule
from envcheck.versions import Release

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.model.environment import Framework, Package
    from envcheck.model.finding import Finding, Severity
    from envcheck.model.snapshot import Snapshot
    from envcheck.rules.base import Answer
    from envcheck.rules.pins import Pin

_BY_TOOLKIT = {"cuda-runtime": "the CUDA runtime", "nvjitlink": "nvJitLink", "cuda-nvrtc": "NVRTC"}
"""Wheels whose version is the CUDA release's, so that pins compare by major and minor."""


@rule("cuda-runtime-mismatch", component="cuda", when=(facts.needs_gpu, pins.packages_known))
def cuda_runtime_mismatch(snapshot: Snapshot, _matrix: Matrix) -> Answer:
    """The CUDA runtime wheels are of the release that the framework pins.

    A higher minor version and another patch are compatible and say nothing. An older minor version
    of the runtime or NVRTC is a warning; an older nvJitLink is an error, because cuSPARSE and
    cuSOLVER ask it for symbols that carry the release in their name; another major is an error.

    Why: another package, or an upgrade by hand, replaced the wheel that the framework pins.

    Fix: put the pinned version back.
    """
    for framework in facts.cuda_frameworks(snapshot):
        for pin in pins.pins(snapshot, framework):
            package = snapshot.env.package(pin.name)
            if pin.stem not in _BY_TOOLKIT or package is None or pin.requirement.exact is None:
                continue
            severity = _severity(pin, package)
            if severity is not None:
                yield _finding(snapshot, framework, pin, package, severity)


def _severity(pin: Pin, package: Package) -> Severity | None:
    have, want = Release.maybe(package.version), Release.maybe(pin.requirement.exact)
    if have is None or want is None or have.series == want.series:
        return None
    if have.major != want.major:
        return "error"
    if have > want:
        return None
    return "error" if pin.stem == "nvjitlink" else "warning"


def _finding(
    snapshot: Snapshot, framework: Framework, pin: Pin, package: Package, severity: Severity
) -> Finding:
    exact = pin.requirement.exact or ""
    what = _BY_TOOLKIT[pin.stem]
    return finding(
        "cuda-runtime-mismatch",
        severity,
        "cuda",
        install.label(package),
        f"{what[0].upper()}{what[1:]} is not of the release that {framework.name} was built for",
        found=install.label(package),
        needed=f"{pin.name} {exact}, which {pin.by} requires",
        why="Within a CUDA major, libraries of a later release may stand in for earlier ones, not "
        "the reverse; between majors neither works.",
        fix=(
            Fix(
                title="Put the required version back",
                commands=install.install(
                    snapshot, (f"{pin.name}=={exact}",), reinstall=True, dependencies=False
                ),
            ),
        ),
        evidence=(
            Evidence(
                label="installed", value=install.label(package), via=package.location or "metadata"
            ),
            pin.evidence,
        ),
    )
