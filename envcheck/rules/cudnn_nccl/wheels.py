"""Compares an installed NVIDIA wheel with the version that a framework pins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.model.finding import Evidence, Fix
from envcheck.rules import facts, install, pins
from envcheck.rules.base import finding
from envcheck.versions import Release

if TYPE_CHECKING:
    from envcheck.model.environment import Framework, Package
    from envcheck.model.finding import Severity
    from envcheck.model.snapshot import Snapshot
    from envcheck.rules.base import Answer
    from envcheck.rules.pins import Pin


def judge_pin(snapshot: Snapshot, id: str, stem: str, product: str) -> Answer:
    """Judge one wheel for every framework.

    Args:
        snapshot: the facts.
        id: of the finding; its component is the stem.
        stem: `cudnn` or `nccl`.
        product: its name in sentences.

    Yields:
        A finding per framework whose pin is not met.
    """
    for framework in facts.cuda_frameworks(snapshot):
        pin = pins.pin(snapshot, framework, stem)
        package = snapshot.env.package(pin.name) if pin is not None else None
        if pin is None or package is None:
            continue
        severity = _severity(pin, package)
        if severity is None or not _loads_wheel(snapshot, framework, stem):
            continue
        bound = pin.requirement.exact
        text = f"=={bound}" if bound else "".join(f"{s}{v}" for s, v in pin.requirement.bounds)
        yield finding(
            id,
            severity,
            stem,
            install.label(package),
            f"The installed {product} is not the one that {framework.name} was built for",
            found=install.label(package),
            needed=f"{pin.name}{text}, which {pin.by} requires",
            why=f"{product} stays compatible with programs built for earlier versions of one "
            "major; an older library, or another major, does not fit.",
            fix=(
                Fix(
                    title=f"Put the {product} that {framework.name} requires back",
                    commands=install.install(
                        snapshot, (f"{pin.name}{text}",), reinstall=True, dependencies=False
                    ),
                ),
            ),
            evidence=(
                Evidence(
                    label="installed",
                    value=install.label(package),
                    via=package.location or "metadata",
                ),
                pin.evidence,
            ),
        )


def _severity(pin: Pin, package: Package) -> Severity | None:
    """Error for another major, warning for an older version, None for a fit or when unknown."""
    have = Release.maybe(package.version)
    lowest = pin.requirement.exact or next(
        (text for sign, text in pin.requirement.bounds if sign in {">=", "~="}), None
    )
    want = Release.maybe(lowest)
    if have is None or want is None:
        return None
    if have.major != want.major:
        newer_allowed = pin.requirement.exact is None and have > want
        return None if newer_allowed else "error"
    return "warning" if have.parts[:3] < want.parts[:3] else None


def _loads_wheel(snapshot: Snapshot, framework: Framework, stem: str) -> bool:
    """False when it is known that a copy from elsewhere is loaded, which other checks judge."""
    winning = pins.winners(snapshot, framework.name, stem)
    return not winning or any(pins.own(each) for each in winning)
