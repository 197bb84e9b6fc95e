"""launch-bound."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.model.finding import Fix
from envcheck.rules.activity import figures
from envcheck.rules.activity.classify import cases
from envcheck.rules.activity.profilers import look_further
from envcheck.rules.base import cite, finding, rule

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.model.snapshot import Snapshot
    from envcheck.rules.base import Answer


@rule("launch-bound", component="activity", when=lambda s: s.activity is not None)
def launch_bound(snapshot: Snapshot, matrix: Matrix) -> Answer:
    """The CPU launches kernels faster than the GPU works them off.

    Likely not, where kernels are small, pauses between them are too short to see and a thread uses
    up its core. NVML does not say how many kernels ran, so this is concluded. Programs that wait
    for the GPU at every step (`.item()`, `print(loss)`, `.cpu()`) look the same.

    Why: launching takes some microseconds of the CPU; kernels that are done sooner leave the GPU
    waiting for the next one.

    Fix: fewer and larger kernels (compile, CUDA graphs, fused optimizers, larger batches) and fewer
    places that wait for the GPU.
    """
    activity = snapshot.activity
    if activity is None:
        return
    for case in cases(snapshot, matrix, "launch-bound"):
        gpu = case.gpus[0]
        name = figures.label(case.gpus)
        utilization = figures.percent(figures.known(gpu.utilization))
        fill = figures.fill_percent(gpu)
        hot = activity.host.busiest if activity.host is not None else None
        yield finding(
            "launch-bound",
            "warning",
            "activity",
            name,
            f"{name} likely waits for kernels to be launched: {utilization} utilisation",
            found=f"utilisation {utilization}"
            + (f" and SM activity {figures.percent(gpu.sm.mean)}" if gpu.sm is not None else "")
            + (
                f", while thread {hot.name} uses {100 * hot.cpu.mean:.0f} % of a core"
                if hot
                else ""
            ),
            needed=f"kernels that fill {case.limits('filled-kernels'):.0f} % of the GPU or more"
            if fill is not None
            else f"{case.limits('cautious-power'):.0f} % of the power limit or more",
            why="Kernels are so small that the GPU is done with each before the CPU has launched "
            "the next, or the program waits for each result before it goes on.",
            fix=(
                Fix(
                    title="Launch fewer, larger kernels: compile the model into fused kernels and "
                    "CUDA graphs, use a fused optimizer, a larger batch",
                    commands=(
                        'model = torch.compile(model, mode="reduce-overhead")',
                        "torch.optim.AdamW(..., fused=True)",
                    ),
                ),
                Fix(
                    title="Wait for the GPU less often: no .item(), .cpu(), print(loss) or assert "
                    "on values in each step; this names the places",
                    commands=('torch.cuda.set_sync_debug_mode("warn")',),
                ),
                *look_further(snapshot, what="short kernels with spaces, cudaStreamSynchronize"),
            ),
            evidence=(*figures.gpu_evidence(gpu), *figures.host_evidence(activity)),
            sources=cite(matrix, *case.limits.rows("filled-kernels", "hot-thread")),
        )
