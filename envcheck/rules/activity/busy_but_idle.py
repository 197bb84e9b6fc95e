"""busy-but-idle."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.model.finding import Fix
from envcheck.rules.activity import figures
from envcheck.rules.activity.classify import cases, open_questions
from envcheck.rules.activity.profilers import look_further
from envcheck.rules.base import cite, finding, rule, unknown

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.model.snapshot import Snapshot
    from envcheck.rules.base import Answer


@rule("busy-but-idle", component="activity", when=lambda s: s.activity is not None)
def busy_but_idle(snapshot: Snapshot, matrix: Matrix) -> Answer:
    """A GPU that utilisation calls busy has most of its multiprocessors at work.

    Utilisation is the share of time in which some kernel ran; one block on one of a hundred
    multiprocessors counts as much as a full GPU. SM and tensor activity and power tell them apart.

    Why: kernels that fill a part of the GPU take as long as kernels that fill it, so most of what
    the card could do in this time is lost.

    Fix: give each kernel more to do (batch size, sequence packing), fuse small operations, use
    mixed precision so that the tensor cores take part; a profiler names the kernels.
    """
    if snapshot.activity is None:
        return
    for reason in open_questions(snapshot.activity, matrix):
        yield unknown("busy-but-idle", reason)
    for case in cases(snapshot, matrix, "busy-but-idle"):
        gpu, likely = case.gpus[0], "" if case.answer.sure else "likely "
        name = figures.label(case.gpus)
        utilization = figures.percent(figures.known(gpu.utilization))
        power = figures.power_percent(gpu)
        work = (
            f"{figures.percent(gpu.sm.mean)} of its multiprocessors work"
            if gpu.sm is not None
            else f"it draws {power or 0:.0f} % of its power limit"
        )
        yield finding(
            "busy-but-idle",
            "warning",
            "activity",
            name,
            f"{name} shows {utilization} utilisation, but {likely}is mostly idle",
            found=f"utilisation {utilization}, while {work}",
            needed=f"SM activity of {case.limits('low-sm'):.0f} % or more while it is busy"
            if gpu.sm is not None
            else f"{case.limits('cautious-power'):.0f} % of the power limit or more meanwhile",
            why="Some kernel is always running, which is all that utilisation says, but the "
            "kernels are too small to fill the GPU.",
            fix=(
                Fix(title="Give each kernel more to do: a larger batch, packed sequences"),
                Fix(title="Fuse small operations: torch.compile, fused optimizers and attention"),
                Fix(title="Use bf16 or fp16 autocast, so that the tensor cores take part"),
                *look_further(snapshot, what="long rows of short or narrow kernels"),
            ),
            evidence=(*figures.gpu_evidence(gpu), *figures.host_evidence(snapshot.activity)),
            sources=cite(matrix, *case.limits.rows("busy-utilization", "low-sm", "low-power")),
        )
