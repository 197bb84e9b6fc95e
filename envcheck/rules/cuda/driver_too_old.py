"""driver-too-old."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING

from envcheck.matrix import query
from envcheck.model.finding import Evidence, Fix
from envcheck.rules import builds, compat, drivers, facts, install
from envcheck.rules.base import cite, finding, rule, unknown
from envcheck.versions import Release

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.model.environment import Framework
    from envcheck.model.finding import Finding
    from envcheck.model.snapshot import Snapshot
    from envcheck.rules.base import Answer
    from envcheck.rules.compat import DriverAnswer

_CLAUSE = re.compile(r"cuda\s*>=\s*(\d+\.\d+)")


def _driver_known(snapshot: Snapshot) -> bool:
    """There is a driver to judge; one that is missing or not loaded is another finding."""
    return facts.driver_version(snapshot) is not None or snapshot.host.driver.cuda is not None


@rule(
    "driver-too-old",
    component="driver",
    when=_driver_known,
    explains=("ptx-newer-than-driver", "driver-branch-ended"),
)
def driver_too_old(snapshot: Snapshot, matrix: Matrix) -> Answer:
    """The driver runs the CUDA release that each framework, or the image, was built for.

    Three roads are tried and kept apart: the driver's own CUDA interface is new enough (backward
    compatibility); the driver is at or above the floor of that CUDA major (minor-version
    compatibility, which does not cover PTX); cuda-compat is in front of an older driver, on a GPU
    and a driver branch that the tables name (forward compatibility).

    A framework that says itself that it has a GPU needs no table.

    Why: a CUDA build asks the driver for an interface version. An older driver answers "CUDA driver
    version is insufficient", and frameworks then see no GPU.

    Fix: install a build for an older CUDA that this driver and GPU run (no restart), or a newer
    driver.
    """
    known = compat.driver_facts(snapshot)
    judged = facts.cuda_frameworks(snapshot)
    refused: list[tuple[Framework, DriverAnswer]] = []
    for framework in judged:
        if framework.gpu_available:
            continue
        answer = compat.driver_runs(matrix, known, framework.cuda or "")
        if answer.verdict == "unknown":
            yield unknown(
                "driver-too-old", f"{install.label(framework)}: {answer.reason}", answer.kind
            )
        elif answer.verdict == "no":
            refused.append((framework, answer))
    if refused:
        yield _finding(snapshot, matrix, refused)
    elif not judged:
        yield from _image(snapshot, matrix)


def _found(snapshot: Snapshot) -> str:
    cuda = snapshot.host.driver.cuda
    return facts.driver_subject(snapshot) + (f", which offers CUDA {cuda}" if cuda else "")


def _finding(
    snapshot: Snapshot, matrix: Matrix, refused: list[tuple[Framework, DriverAnswer]]
) -> Finding:
    """One finding for all builds that the driver does not run: torch speaks for the others."""
    refused = sorted(refused, key=lambda each: each[0].name != "torch")
    framework, answer = refused[0]
    names = ", ".join(install.label(each) for each, _answer in refused)
    needed = f"driver {answer.needed} or newer" if answer.needed else "a newer driver"
    roads: list[Fix] = []
    if framework.name == "torch":
        build = builds.choose(matrix, snapshot, framework, "older")
        if build is not None:
            roads.append(
                builds.install_fix(
                    matrix,
                    snapshot,
                    framework,
                    build,
                    f"Install torch {build.version} for CUDA {build.cuda}, which this driver "
                    f"{'and GPU run' if facts.gpus(snapshot) else 'runs'}",
                )
            )
    roads += _newer_driver(snapshot, matrix, answer, first=not roads)
    return finding(
        "driver-too-old",
        "error",
        "driver",
        facts.driver_subject(snapshot),
        f"The driver is too old for {names}",
        found=_found(snapshot),
        needed=f"{needed}, for CUDA {framework.cuda}",
        why=f"{framework.name} was built with CUDA {framework.cuda}, but {answer.reason}.",
        fix=roads,
        evidence=_evidence(snapshot, tuple(each for each, _answer in refused)),
        sources=cite(matrix, *answer.rows),
    )


def _evidence(snapshot: Snapshot, frameworks: tuple[Framework, ...] = ()) -> tuple[Evidence, ...]:
    driver = snapshot.host.driver
    found = [Evidence(label="driver", value=r.value, via=r.via) for r in driver.readings[:1]]
    found += [
        Evidence(label="CUDA interface", value=r.value, via=r.via) for r in driver.cuda_readings[:1]
    ]
    found += [
        Evidence(
            label=each.name,
            value=f"{each.version}, CUDA {each.cuda}",
            via=each.location or "metadata",
        )
        for each in frameworks
    ]
    if driver.compat_path is not None:
        found.append(
            Evidence(
                label="cuda-compat",
                value=f"{driver.compat_version or 'version unknown'} at {driver.compat_path}",
                via="loader",
            )
        )
    return tuple(found)


def _newer_driver(
    snapshot: Snapshot, matrix: Matrix, answer: DriverAnswer, *, first: bool
) -> tuple[Fix, ...]:
    """The road of a newer driver, where one supports these GPUs."""
    needed = Release.maybe(answer.needed)
    lead = "Update" if first else "Or update"
    bound = f" to {needed} or newer" if needed else ""
    if snapshot.host.wsl or snapshot.host.os.id == "windows":
        return (Fix(title=f"{lead} the NVIDIA driver of Windows{bound}, then restart"),)
    if facts.in_container(snapshot):
        return (Fix(title=f"{lead} the driver of the container's host{bound}"),)
    last = [
        int(row.last_driver_branch)
        for gpu in facts.gpus(snapshot)
        if gpu.arch and (row := query.capability(matrix, gpu.arch)) and row.last_driver_branch
    ]
    if needed is not None and last and min(last) < needed.major:
        return ()
    ways = drivers.install_driver(snapshot, matrix, drivers.choose(snapshot, matrix))
    return ways if first else alternatives(ways)


def alternatives(ways: tuple[Fix, ...]) -> tuple[Fix, ...]:
    """The same ways, worded as alternatives to one that was named before."""
    return tuple(
        dataclasses.replace(way, title=f"Or {way.title[0].lower()}{way.title[1:]}")
        if not way.title.startswith("Or ")
        else way
        for way in ways
    )


def _image(snapshot: Snapshot, matrix: Matrix) -> Answer:
    """What the image itself requires, where no framework says it more precisely."""
    text = snapshot.host.container.require_cuda or ""
    wanted = _CLAUSE.search(text)
    judged = facts.in_container(snapshot) or snapshot.source.startswith("image:")
    if wanted is None or not judged:
        return
    answer = compat.driver_runs(matrix, compat.driver_facts(snapshot), wanted.group(1))
    if answer.verdict != "no":
        return
    yield finding(
        "driver-too-old",
        "error",
        "driver",
        facts.driver_subject(snapshot),
        f"The driver is too old for this image, which was made for CUDA {wanted.group(1)}",
        found=_found(snapshot),
        needed=f"driver {answer.needed} or newer" if answer.needed else "a newer driver",
        why=f"{answer.reason[0].upper()}{answer.reason[1:]}.",
        fix=(
            Fix(title="Use an image for an older CUDA release that this driver runs"),
            *_newer_driver(snapshot, matrix, answer, first=False),
        ),
        evidence=(
            Evidence(label="NVIDIA_REQUIRE_CUDA", value=text, via="environment"),
            *_evidence(snapshot),
        ),
        sources=cite(matrix, *answer.rows),
    )
