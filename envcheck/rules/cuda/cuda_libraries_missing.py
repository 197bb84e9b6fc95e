"""cuda-libraries-missing."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from envcheck.model.finding import Evidence, Fix
from envcheck.rules import builds, facts, install, pins
from envcheck.rules.base import finding, rule, unknown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from envcheck.matrix.loader import Matrix
    from envcheck.model.environment import Framework
    from envcheck.model.finding import Finding
    from envcheck.model.snapshot import Snapshot
    from envcheck.rules.base import Answer
    from envcheck.rules.pins import Pin

_CANNOT_OPEN = re.compile(
    r"lib(?P<name>cudart|cublasLt|cublas|cufft|curand|cusolver|cusparseLt|cusparse|nvrtc|nvJitLink|"
    r"cupti|cufile|nccl|nvshmem_host)[.\w-]*\.so(?P<major>\.\d+)?[^:]*: "
    r"cannot open shared object file",
    re.IGNORECASE,
)


@rule(
    "cuda-libraries-missing",
    component="cuda",
    when=facts.needs_gpu,
    explains=("cudnn-missing", "cuda-runtime-mismatch"),
)
def cuda_libraries_missing(snapshot: Snapshot, matrix: Matrix) -> Answer:
    """Each framework's CUDA libraries are installed.

    Fires when wheels that the framework's own metadata requires are not installed and no other copy
    of their libraries would be loaded instead; when TensorFlow's CUDA build has no CUDA libraries
    anywhere; or when importing the framework said that it could not open one.

    Why: since the libraries moved out of the frameworks into wheels of their own, an installation
    without dependencies imports with an error or falls back to the CPU.

    Fix: install the framework again with its dependencies.
    """
    for framework in facts.cuda_frameworks(snapshot):
        if framework.gpu_available:
            continue
        said = _CANNOT_OPEN.search(framework.error or "")
        if said is not None:
            yield _finding(
                snapshot,
                matrix,
                framework,
                found=said.group().strip(),
                evidence=(
                    Evidence(label="import error", value=framework.error or "", via="import"),
                ),
            )
            continue
        if snapshot.env.packages is None:
            yield unknown(
                "cuda-libraries-missing",
                snapshot.gap("env.packages") or "the installed distributions were not read",
            )
            return
        yield from _by_metadata(snapshot, matrix, framework)
        if framework.name.startswith(("tensorflow", "tf-nightly")):
            yield from _tensorflow(snapshot, matrix, framework)


def _by_metadata(snapshot: Snapshot, matrix: Matrix, framework: Framework) -> Answer:
    absent = [
        pin
        for pin in pins.pins(snapshot, framework)
        if pin.stem in pins.LIBRARIES
        and pin.stem != "cudnn"
        and _needed_always(pin)
        and snapshot.env.package(pin.name) is None
    ]
    if not absent:
        return
    if snapshot.env.libraries is None:
        names = ", ".join(pin.name for pin in absent)
        yield unknown(
            "cuda-libraries-missing",
            f"{names} not installed, and which copies {framework.name} would load was not read",
        )
        return
    missing = [pin for pin in absent if not _elsewhere(snapshot, framework, pin)]
    if missing:
        names = ", ".join(pin.name for pin in missing)
        yield _finding(
            snapshot,
            matrix,
            framework,
            found=f"not installed: {names}",
            evidence=tuple(dict.fromkeys(pin.evidence for pin in missing)),
        )


def _needed_always(pin: Pin) -> bool:
    """A pin of the distribution itself, not one of an extra that nobody may have asked for."""
    return "extra" not in pin.requirement.line or "cuda-toolkit" in pin.requirement.line


def _elsewhere(snapshot: Snapshot, framework: Framework, pin: Pin) -> bool:
    """Whether a copy of the wheel's libraries would be loaded from somewhere else."""
    names = pins.LIBRARIES[pin.stem]
    return any(
        each.name in names
        and (framework.name in each.wins_for or each.origin == "bundled" or not _resolved(snapshot))
        for each in snapshot.env.libraries or ()
    )


def _resolved(snapshot: Snapshot) -> bool:
    return any(each.wins_for for each in snapshot.env.libraries or ())


def _tensorflow(snapshot: Snapshot, matrix: Matrix, framework: Framework) -> Iterator[Finding]:
    """TensorFlow opens its libraries late and goes on without a GPU when there are none."""
    if (
        framework.origin in pins.FOREIGN_ORIGINS
        or snapshot.env.libraries is None
        or not facts.has_gpu(snapshot)
    ):
        return
    names = {each.name for each in snapshot.env.libraries}
    wheels = {split[0] for p in snapshot.env.packages or () if (split := pins.split(p.name))}
    if names & {"cublas", "cudnn"} or wheels & {"cublas", "cudnn"}:
        return
    yield _finding(
        snapshot,
        matrix,
        framework,
        found="no cuBLAS and no cuDNN: neither as wheels nor on the loader's path",
        evidence=(
            Evidence(
                label="built with",
                value=f"CUDA {framework.cuda}",
                via=framework.location or "metadata",
            ),
        ),
        extra="[and-cuda]",
    )


def _finding(
    snapshot: Snapshot,
    matrix: Matrix,
    framework: Framework,
    *,
    found: str,
    evidence: tuple[Evidence, ...],
    extra: str = "",
) -> Finding:
    return finding(
        "cuda-libraries-missing",
        "error",
        "cuda",
        install.label(framework),
        f"CUDA libraries that {framework.name} needs are missing",
        found=found,
        needed=f"the CUDA {framework.cuda} libraries that {framework.name} requires",
        why=f"{framework.name} opens these libraries when it starts; without them it fails to "
        "import, or runs on the CPU.",
        fix=(
            Fix(
                title=f"Install {framework.name} with its dependencies",
                commands=builds.same_again(matrix, snapshot, framework, extra),
            ),
        ),
        evidence=evidence,
    )
