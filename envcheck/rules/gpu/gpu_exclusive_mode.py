"""gpu-exclusive-mode."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.model.finding import Evidence, Fix
from envcheck.rules import facts
from envcheck.rules.base import finding, rule

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.model.host import Gpu
    from envcheck.model.snapshot import Snapshot
    from envcheck.rules.base import Answer


def _mode_matters(snapshot: Snapshot) -> bool:
    return any(gpu.compute_mode not in {None, "default"} for gpu in facts.gpus(snapshot))


def _holders(gpu: Gpu) -> tuple[str, ...]:
    """Processes that hold an exclusive GPU; none when they share it through CUDA's MPS."""
    names = tuple(f"{each.name or 'process'} ({each.pid})" for each in gpu.processes or ())
    return () if any("nvidia-cuda-mps" in name for name in names) else names


@rule(
    "gpu-exclusive-mode",
    component="gpu",
    when=_mode_matters,
    explains=("driver-state-stale",),
)
def gpu_exclusive_mode(snapshot: Snapshot, _matrix: Matrix) -> Answer:
    """The compute mode lets a program get a context on the GPU.

    Prohibited mode refuses every program (error). Exclusive mode is a site's choice and fine until
    a process holds the GPU; then a second one, worker processes of a data loader included, gets
    none (warning). Behind MPS, exclusive mode is normal.

    Why: the mode was set with nvidia-smi and holds until it is changed or the driver is unloaded.

    Fix: set the default mode.
    """
    seen = facts.gpus(snapshot)
    closed = sum(gpu.compute_mode == "prohibited" for gpu in seen)
    for gpu in seen:
        mode = gpu.compute_mode
        holders = _holders(gpu)
        if mode in {None, "default"} or (mode != "prohibited" and not holders):
            continue
        yield finding(
            "gpu-exclusive-mode",
            "error" if mode == "prohibited" and closed == len(seen) else "warning",
            "gpu",
            facts.gpu_label(gpu),
            f"Compute mode {mode} refuses contexts on {facts.gpu_label(gpu)}",
            found=f"compute mode {mode}"
            + (f", held by {', '.join(holders)}" if mode != "prohibited" else ""),
            needed="compute mode default, for several processes on one GPU",
            why="In prohibited mode no program gets a CUDA context."
            if mode == "prohibited"
            else "In exclusive mode one process holds the GPU, and every other one is refused.",
            fix=(
                *(
                    ()
                    if mode == "prohibited"
                    else (Fix(title="Wait for the process that holds it, or end it"),)
                ),
                Fix(
                    title="Allow several processes (needs root, on the host)",
                    commands=(f"sudo nvidia-smi -i {gpu.index} -c DEFAULT",),
                ),
            ),
            evidence=(
                Evidence(label="compute mode", value=str(mode), via="NVML"),
                *(Evidence(label="process", value=name, via="NVML") for name in holders),
            ),
        )
