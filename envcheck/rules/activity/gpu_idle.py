"""gpu-idle."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.rules.activity import figures
from envcheck.rules.activity.classify import cases
from envcheck.rules.base import cite, finding, rule

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.model.snapshot import Snapshot
    from envcheck.rules.base import Answer


@rule("gpu-idle", component="activity", when=lambda s: s.activity is not None)
def gpu_idle(snapshot: Snapshot, matrix: Matrix) -> Answer:
    """Information: a GPU on which nothing runs.

    Why: nobody uses it, or its program waits for something that this machine does not show: a
    request, a person, another machine.

    Fix: none is needed; a program that should use it may have been given other GPUs.
    """
    activity = snapshot.activity
    if activity is None:
        return
    for case in cases(snapshot, matrix, "gpu-idle"):
        gpu = case.gpus[0]
        name = figures.label(case.gpus)
        held = activity.gpu_context
        yield finding(
            "gpu-idle",
            "info",
            "activity",
            name,
            f"Nothing runs on {name}",
            found=f"utilisation {figures.percent(figures.known(gpu.utilization))} over "
            f"{activity.seconds:.0f} s",
            needed="nothing, unless a program should use it",
            why="A watched program holds a GPU context and waits; nothing on this machine is at "
            "work for it."
            if held
            else "No kernel was running.",
            evidence=(*figures.gpu_evidence(gpu), *figures.host_evidence(activity)),
            sources=cite(matrix, *case.limits.rows("idle-utilization", "idle-sm")),
        )
