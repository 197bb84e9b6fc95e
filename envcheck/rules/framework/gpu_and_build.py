"""gpu-newer-than-build and gpu-older-than-build: a build without machine code for a GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.matrix import query
from envcheck.model.finding import Evidence, Fix
from envcheck.rules import arch, builds, facts, install
from envcheck.rules.base import cite, finding, rule, unknown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from envcheck.matrix.loader import Matrix
    from envcheck.model.environment import Framework
    from envcheck.model.finding import Finding
    from envcheck.model.host import Gpu
    from envcheck.model.snapshot import Snapshot
    from envcheck.rules.arch import Coverage
    from envcheck.rules.base import Answer

    Judged = tuple[Gpu, Coverage]


def _gpus_expected(snapshot: Snapshot) -> bool:
    """A CUDA build is installed, and a driver that can tell the GPUs."""
    return facts.needs_gpu(snapshot) and (
        bool(facts.gpus(snapshot)) or facts.driver_works(snapshot)
    )


@rule(
    "gpu-newer-than-build",
    component="framework",
    when=_gpus_expected,
    needs=("host.gpus",),
)
def gpu_newer_than_build(snapshot: Snapshot, matrix: Matrix) -> Answer:
    """Each framework's build has code for GPUs as new as the ones here.

    An error when no GPU here can run the build, a warning when another one can. Builds that no
    table row describes and whose architecture list was not read are unknown.

    Why: machine code runs on its own major capability at the same or a higher minor. A build that
    predates a GPU's architecture ends with "no kernel image is available for execution".

    Fix: a newer build, or the same version for a newer CUDA release.
    """
    for framework in facts.cuda_frameworks(snapshot):
        listed = _arches(matrix, snapshot, framework)
        if listed is None:
            if framework.name == "torch":
                yield unknown("gpu-newer-than-build", _no_list(framework), "newer-than-table")
            continue
        judged = _judge(matrix, snapshot, listed)
        for gpu, answer in judged:
            if answer.verdict == "unknown":
                yield unknown(
                    "gpu-newer-than-build",
                    f"{install.label(framework)} on {facts.gpu_label(gpu)}: {answer.reason}",
                    "missing" if gpu.arch is None else "newer-than-table",
                )
        yield from _findings(
            snapshot, matrix, framework, listed, judged, ("no-build-too-old", "no-skipped")
        )


@rule(
    "gpu-older-than-build",
    component="framework",
    when=_gpus_expected,
    needs=("host.gpus",),
)
def gpu_older_than_build(snapshot: Snapshot, matrix: Matrix) -> Answer:
    """Each framework's build still has code for GPUs as old as the ones here.

    An error when no GPU here can run the build, a warning when another one can.

    Why: newer CUDA releases and newer variants of a framework leave old architectures out, and
    machine code never runs on an older GPU.

    Fix: the variant of the same version for an older CUDA release, else an older version.
    """
    for framework in facts.cuda_frameworks(snapshot):
        listed = _arches(matrix, snapshot, framework)
        if listed is not None:
            judged = _judge(matrix, snapshot, listed)
            yield from _findings(snapshot, matrix, framework, listed, judged, ("no-build-too-new",))


def _arches(matrix: Matrix, snapshot: Snapshot, framework: Framework) -> tuple[str, ...] | None:
    if framework.name == "torch":
        return builds.arches(matrix, snapshot, framework)
    return framework.arches or None


def _no_list(framework: Framework) -> str:
    return (
        f"the architectures of {install.label(framework)} ({framework.origin} build) were not "
        "read, and no table row describes this build"
    )


def _judge(matrix: Matrix, snapshot: Snapshot, listed: tuple[str, ...]) -> list[Judged]:
    chips = builds.tegra(matrix)
    return [
        (gpu, arch.coverage(listed, gpu.arch or "", tegra=chips))
        for gpu in facts.gpus(snapshot)
        if gpu.error is None
    ]


def _findings(
    snapshot: Snapshot,
    matrix: Matrix,
    framework: Framework,
    listed: tuple[str, ...],
    judged: list[Judged],
    verdicts: tuple[str, ...],
) -> Iterator[Finding]:
    """One finding per architecture that the build leaves out in one direction."""
    elsewhere = any(answer.runs for _gpu, answer in judged)
    seen: set[str] = set()
    for gpu, answer in judged:
        if answer.verdict not in verdicts or gpu.arch is None or gpu.arch in seen:
            continue
        seen.add(gpu.arch)
        older = answer.verdict == "no-build-too-new"
        same = [each for each, _answer in judged if each.arch == gpu.arch]
        row = builds.identify(matrix, snapshot, framework) if framework.name == "torch" else None
        yield finding(
            "gpu-older-than-build" if older else "gpu-newer-than-build",
            "warning" if elsewhere else "error",
            "framework",
            ", ".join(facts.gpu_label(each) for each in same),
            f"{install.label(framework)} has no code for this GPU"
            + (", which it no longer supports" if older else ""),
            found=f"{gpu.name or 'GPU'} (compute capability {gpu.arch}); {framework.name} is built "
            f"for {' '.join(listed)}",
            needed=f"a build with code for compute capability {gpu.arch}",
            why=f"{answer.reason[0].upper()}{answer.reason[1:]}, and machine code runs only on its "
            "own major capability, at the same or a higher minor.",
            fix=_fix(snapshot, matrix, framework, gpu, older=older),
            evidence=(
                Evidence(
                    label="architectures", value=" ".join(listed), via=framework.location or "table"
                ),
                *(
                    Evidence(
                        label=facts.gpu_label(each),
                        value=f"compute capability {each.arch}",
                        via="driver",
                    )
                    for each in same
                ),
            ),
            sources=cite(matrix, row, query.capability(matrix, gpu.arch)),
        )


def _fix(
    snapshot: Snapshot, matrix: Matrix, framework: Framework, gpu: Gpu, *, older: bool
) -> tuple[Fix, ...]:
    if framework.name != "torch":
        return (
            Fix(
                title=f"Install {'an older' if older else 'a newer'} build of {framework.name}, or "
                f"build it for compute capability {gpu.arch}"
            ),
        )
    build = builds.choose(matrix, snapshot, framework, "older" if older else "newer")
    if build is not None:
        return (
            builds.install_fix(
                matrix,
                snapshot,
                framework,
                build,
                f"Install torch {build.version} for CUDA {build.cuda}, which has code for this GPU",
            ),
        )
    row = query.capability(matrix, gpu.arch or "")
    bound = ""
    if row is not None and older and row.last_cuda:
        bound = f" (the last CUDA release for this GPU is {row.last_cuda})"
    elif row is not None and not older and row.first_cuda:
        bound = f" (the first CUDA release for this GPU is {row.first_cuda})"
    return (
        Fix(
            title=f"Install {'an older' if older else 'a newer'} torch{bound}; this driver runs "
            "none of the builds in the tables that have code for it"
            + ("" if older else ", so a newer driver may be needed first")
        ),
    )
