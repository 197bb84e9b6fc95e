"""input-bound."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.model.finding import Fix
from envcheck.rules.activity import figures
from envcheck.rules.activity.classify import cases
from envcheck.rules.activity.profilers import look_further
from envcheck.rules.base import cite, finding, rule

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.model.activity import HostActivity
    from envcheck.model.snapshot import Snapshot
    from envcheck.rules.base import Answer

_WHY = {
    "workers": "While the GPU has nothing to do, processes beside the one on the GPU are at work: "
    "they prepare the data that it waits for.",
    "storage": "While the GPU has nothing to do, the program waits for storage.",
    "main": "While the GPU has nothing to do, a thread of the very process that feeds it uses up "
    "its core: data that is prepared there, or other work between steps (logging, metrics, "
    "checkpoints).",
}


@rule("input-bound", component="activity", when=lambda s: s.activity is not None)
def input_bound(snapshot: Snapshot, matrix: Matrix) -> Answer:
    """The GPU does not wait for data.

    It waits for data when it has gaps while data loaders, storage or the feeding process are at
    work. A GPU whose whole machine is quiet waits for something else (requests, a person, another
    machine) and is no finding.

    Why: every second that the GPU waits is lost; a faster GPU would only wait longer.

    Fix: more and persistent workers, prefetching, pinned memory, faster decoding or decoding on the
    GPU, data on local disk in few large files; work in the main loop moved out of it.
    """
    activity = snapshot.activity
    if activity is None:
        return
    for case in cases(snapshot, matrix, "input-bound"):
        gpu, cause = case.gpus[0], case.answer.cause
        name = figures.label(case.gpus)
        utilization = figures.percent(figures.known(gpu.utilization))
        likely = "" if case.answer.sure else "likely "
        yield finding(
            "input-bound",
            "warning",
            "activity",
            name,
            f"{name} {likely}waits for data: {utilization} utilisation",
            found=f"utilisation {utilization}; "
            + (
                f"no work in {gpu.gaps.share:.0%} of the samples, {gpu.gaps.longest_seconds:.1f} s "
                "at the longest"
                if gpu.gaps is not None and gpu.gaps.count
                else "pauses between kernels, each shorter than a sample"
            ),
            needed="the next batch ready when the GPU has finished one",
            why=_WHY[cause],
            fix=(
                *_habits(cause, activity.host),
                *look_further(snapshot, what="gaps in the row of kernels, and what the CPU does"),
            ),
            evidence=(*figures.gpu_evidence(gpu), *figures.host_evidence(activity)),
            sources=cite(matrix, *case.limits.rows("starved-utilization", "worker-cores")),
        )


def _habits(cause: str, host: HostActivity | None) -> tuple[Fix, ...]:
    cores = host.cores if host is not None else 1
    if cause == "storage":
        return (
            Fix(
                title="Move the data to a local disk, in few large files instead of many small ones"
            ),
            Fix(
                title="Read ahead: more workers and a longer prefetch",
                commands=("DataLoader(..., num_workers=8, prefetch_factor=4)",),
            ),
        )
    workers = max(2, min(cores - 1, 16))
    loader = (
        f"DataLoader(..., num_workers={workers}, pin_memory=True, persistent_workers=True, "
        "prefetch_factor=4)"
    )
    if cause == "main":
        return (
            Fix(
                title="If it is the data: prepare it in workers instead of in the loop, and copy "
                "it from pinned memory",
                commands=(loader, 'batch.to("cuda", non_blocking=True)'),
            ),
            Fix(title="If it is something else: log, evaluate and save less often, or in a thread"),
        )
    return (
        Fix(
            title=f"Use more workers that live on, while cores are free (there are {cores}), and "
            "copy from pinned memory",
            commands=(loader, 'batch.to("cuda", non_blocking=True)'),
        ),
        Fix(
            title="Do less per sample: decode once and keep the result, use a faster decoder, or "
            "decode and augment on the GPU"
        ),
    )
