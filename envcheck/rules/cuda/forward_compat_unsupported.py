"""forward-compat-unsupported."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.model.finding import Evidence, Fix
from envcheck.rules import compat, drivers, facts, fixes, install
from envcheck.rules.base import cite, finding, rule, unknown
from envcheck.versions import Release

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.matrix.row import Row
    from envcheck.model.finding import Finding
    from envcheck.model.snapshot import Snapshot
    from envcheck.rules.base import Answer

CUDA_SYSTEM_DRIVER_MISMATCH = 803
CUDA_COMPAT_NOT_SUPPORTED = 804


def _compat_in_front(snapshot: Snapshot) -> bool:
    driver = snapshot.host.driver
    return driver.compat_path is not None or driver.libcuda.code == CUDA_COMPAT_NOT_SUPPORTED


@rule(
    "forward-compat-unsupported",
    component="cuda",
    when=_compat_in_front,
    explains=("driver-too-old", "driver-state-stale"),
)
def forward_compat_unsupported(snapshot: Snapshot, matrix: Matrix) -> Answer:
    """cuda-compat is used only where forward compatibility is offered.

    Fires when CUDA answers 803 or 804 with cuda-compat in front, or, when CUDA was not asked, when
    the tables say that the GPU or the driver branch is not covered. Silent when CUDA initialises.

    Why: cuda-compat puts a newer libcuda in front of an older kernel module. NVIDIA offers that on
    data-center GPUs, some RTX boards and Jetson, and for listed driver branches only.

    Fix: take cuda-compat out of the loader's path, or install a newer driver.
    """
    driver = snapshot.host.driver
    answer = driver.libcuda
    if facts.cuda_ok(snapshot):
        return
    if answer.code == CUDA_COMPAT_NOT_SUPPORTED or (
        answer.code == CUDA_SYSTEM_DRIVER_MISMATCH and driver.compat_path is not None
    ):
        eligible, rows = compat.forward_eligible(
            matrix, tuple(each.name for each in facts.gpus(snapshot))
        )
        reason = (
            "forward compatibility is not offered on this GPU"
            if eligible is False
            else facts.said(answer)
        )
        yield _finding(snapshot, matrix, reason, rows)
        return
    known = compat.driver_facts(snapshot)
    front = compat.interface(matrix, compat.DriverFacts(version=known.compat_version))[0]
    own = compat.interface(matrix, known)[0]
    if answer.outcome != "not-asked" or front is None or (own is not None and own >= front):
        return
    verdict = compat.forward_runs(matrix, known, front.series)
    if verdict.verdict == "no":
        yield _finding(snapshot, matrix, verdict.reason, verdict.rows)
    elif verdict.verdict == "unknown":
        yield unknown("forward-compat-unsupported", verdict.reason, verdict.kind)


def _finding(snapshot: Snapshot, matrix: Matrix, reason: str, rows: tuple[Row, ...]) -> Finding:
    driver = snapshot.host.driver
    path = driver.compat_path
    release = Release.maybe(driver.compat_version)
    names = ", ".join(dict.fromkeys(each.name or "GPU" for each in facts.gpus(snapshot)))
    evidence = [
        *(
            (
                Evidence(
                    label="cuda-compat",
                    value=f"{driver.compat_version or 'version unknown'} at {path}",
                    via="loader",
                ),
            )
            if path
            else ()
        ),
        *facts.answers(snapshot),
        *(
            Evidence(label="GPU", value=facts.gpu_label(g), via="NVML")
            for g in facts.gpus(snapshot)
        ),
    ]
    return finding(
        "forward-compat-unsupported",
        "error",
        "cuda",
        f"cuda-compat {release}" if release else "cuda-compat",
        "cuda-compat is in use where it is not supported",
        found=f"cuda-compat before {facts.driver_subject(snapshot)}"
        + (f" on {names}" if names else ""),
        needed="the driver's own libcuda",
        why=f"{reason[0].upper()}{reason[1:]}.",
        fix=(*_drop(snapshot, path), *_newer(snapshot, matrix)),
        evidence=evidence,
        sources=cite(matrix, *rows),
    )


def _drop(snapshot: Snapshot, path: str | None) -> tuple[Fix, ...]:
    """How to take cuda-compat out of the loader's way: the variable first, then the package."""
    value = snapshot.env.variable("LD_LIBRARY_PATH") or ""
    folders = [part for part in value.split(":") if part]
    folder = path if path in folders else path.rpartition("/")[0] if path else None
    if folder is not None and folder in folders:
        rest = ":".join(part for part in folders if part != folder)
        command = (
            f"export LD_LIBRARY_PATH={install.word(rest)}" if rest else "unset LD_LIBRARY_PATH"
        )
        return (Fix(title="Take cuda-compat out of LD_LIBRARY_PATH", commands=(command,)),)
    packages = tuple(
        each.name
        for each in snapshot.host.driver.packages or ()
        if each.name.startswith("cuda-compat") and each.state == "installed"
    )
    if packages:
        return (
            Fix(
                title="Remove the cuda-compat package",
                commands=(*fixes.remove(snapshot, *packages), "sudo ldconfig"),
            ),
        )
    return (
        Fix(
            title="Take the cuda-compat directory out of LD_LIBRARY_PATH and /etc/ld.so.conf.d, "
            "then refresh the loader's cache",
            commands=("sudo ldconfig",),
        ),
    )


def _newer(snapshot: Snapshot, matrix: Matrix) -> tuple[Fix, ...]:
    if facts.in_container(snapshot):
        return (Fix(title="Or install a newer driver on the container's host"),)
    if not facts.discrete(snapshot):
        return ()
    return drivers.install_driver(snapshot, matrix, drivers.choose(snapshot, matrix))
