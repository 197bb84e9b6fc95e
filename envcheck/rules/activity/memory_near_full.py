"""memory-near-full."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.model.finding import Evidence, Fix
from envcheck.rules.activity import figures
from envcheck.rules.activity.figures import Limits
from envcheck.rules.base import cite, finding, rule

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.model.snapshot import Snapshot
    from envcheck.rules.base import Answer

GIB = 1 << 30


@rule("memory-near-full", component="activity", when=lambda s: s.activity is not None)
def memory_near_full(snapshot: Snapshot, matrix: Matrix) -> Answer:
    """Information: a GPU whose memory is nearly used up.

    Why: the next larger batch or longer sequence may fail, and an allocator that has to search and
    free for each allocation is slow.

    Fix: a smaller batch, mixed precision, gradient checkpointing, or nothing: full is no fault.
    """
    for gpu in snapshot.activity.gpus if snapshot.activity is not None else ():
        limits = Limits(matrix)
        used, total = gpu.memory_used_bytes, gpu.memory_total_bytes
        if used is None or not total or 100.0 * used / total < limits("memory-full"):
            continue
        name = figures.label((gpu,))
        yield finding(
            "memory-near-full",
            "info",
            "activity",
            name,
            f"The memory of {name} is nearly full",
            found=f"{used / GIB:.1f} of {total / GIB:.1f} GiB in use at the most",
            needed=f"less than {limits('memory-full'):.0f} %, to have room for larger batches",
            why="What is left may not take the next larger batch or longer sequence.",
            fix=(
                Fix(title="Use bf16 or fp16 autocast, checkpoint activations, or a smaller batch"),
                Fix(
                    title="If it fails with free memory in pieces, let the allocator join them",
                    commands=("export PYTORCH_ALLOC_CONF=expandable_segments:True",),
                ),
            ),
            evidence=(Evidence(label="most in use", value=f"{used / total:.0%}", via="NVML"),),
            sources=cite(matrix, *limits.rows("memory-full")),
        )
