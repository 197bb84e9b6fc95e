"""near-limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.rules.activity import figures
from envcheck.rules.activity.classify import cases
from envcheck.rules.base import cite, finding, rule

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.model.snapshot import Snapshot
    from envcheck.rules.base import Answer

_ROWS = {"compute": "roof-compute", "memory": "roof-dram", "power": "roof-power"}


@rule("near-limit", component="activity", when=lambda s: s.activity is not None)
def near_limit(snapshot: Snapshot, matrix: Matrix) -> Answer:
    """Information: a GPU works close to what its arithmetic or its memory can do.

    Why: there is nothing to mend in how it is fed. Only less work makes it faster: smaller types,
    another algorithm, or a larger GPU.

    Fix: none is needed.
    """
    for case in cases(snapshot, matrix, "near-limit"):
        gpu, cause = case.gpus[0], case.answer.cause
        name = figures.label(case.gpus)
        value = {
            "compute": figures.pipes_percent(gpu),
            "memory": gpu.dram.mean if gpu.dram else None,
            "power": figures.power_percent(gpu),
        }[cause]
        words = {
            "compute": "its arithmetic is busy",
            "memory": "its memory bandwidth is used",
            "power": "of its power limit is drawn, likely by dense work",
        }[cause]
        yield finding(
            "near-limit",
            "info",
            "activity",
            name,
            f"{name} works near its limit: {value or 0:.0f} % {words}"
            if cause == "power"
            else f"{name} works near its limit: {words} to {value or 0:.0f} %",
            found=f"{cause} at {value or 0:.0f} %",
            needed=f"nothing; {case.limits(_ROWS[cause]):.0f} % and more is good use",
            why="What feeds the GPU keeps up with it."
            + (
                " What waits here is memory: smaller types and fused operations move less."
                if cause == "memory"
                else ""
            ),
            evidence=figures.gpu_evidence(gpu),
            sources=cite(matrix, *case.limits.rows(_ROWS[cause])),
        )
