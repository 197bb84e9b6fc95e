"""What a GPU's time went into: at most one answer per GPU, so that verdicts never contradict.

A GPU in between the thresholds gets no answer: it does reasonably well, or nobody can tell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from envcheck.model.base import model
from envcheck.rules.activity import figures
from envcheck.rules.activity.figures import Limits, known

if TYPE_CHECKING:
    from collections.abc import Iterator

    from envcheck.matrix.loader import Matrix
    from envcheck.model.activity import Activity, GpuActivity
    from envcheck.model.snapshot import Snapshot

Kind = Literal[
    "near-limit",
    "comm-bound",
    "launch-bound",
    "input-bound",
    "busy-but-idle",
    "cpu-training",
    "gpu-idle",
]


@model
class Answer:
    """What a GPU's time went into.

    Attributes:
        kind: the finding's id.
        cause: which form of it: `tensor`, `dram`, `power`; `NVLink`, `PCIe`, `network`; `workers`,
            `storage`, `main`; empty.
        sure: measured by counters that say just this, not concluded from utilisation and power.
    """

    kind: Kind
    cause: str = ""
    sure: bool = True


@model
class Case:
    """GPUs whose time went into the same."""

    answer: Answer
    gpus: tuple[GpuActivity, ...]
    limits: Limits


def enough(activity: Activity, matrix: Matrix) -> bool:
    """Whether it was watched for long enough to judge."""
    return activity.samples >= Limits(matrix)("watch-samples")


def open_questions(activity: Activity, matrix: Matrix) -> Iterator[str]:
    """Why GPUs could not be judged."""
    if not enough(activity, matrix):
        wanted = Limits(matrix)("watch-samples")
        yield f"{activity.samples} samples while a GPU was used; it takes {wanted:.0f} to judge"
        return
    for gpu in activity.gpus:
        if gpu.utilization is None and gpu.sm is None:
            yield f"GPU {gpu.index} gives no utilisation (with MIG, NVML has none)"
        elif gpu.sm is None and figures.power_percent(gpu) is None:
            yield f"GPU {gpu.index} gives neither SM activity nor power, only utilisation"


def cases(snapshot: Snapshot, matrix: Matrix, kind: Kind) -> Iterator[Case]:
    """GPUs that the answer is `kind` for, together where the whole answer is the same."""
    activity = snapshot.activity
    if activity is None or not enough(activity, matrix):
        return
    groups: dict[Answer, list[GpuActivity]] = {}
    limits = Limits(matrix)
    for gpu in activity.gpus:
        answer = classify(activity, gpu, limits)
        if answer is not None and answer.kind == kind:
            groups.setdefault(answer, []).append(gpu)
    for answer, gpus in groups.items():
        yield Case(answer=answer, gpus=tuple(gpus), limits=limits)


def classify(activity: Activity, gpu: GpuActivity, limit: Limits) -> Answer | None:
    """What one GPU's time went into; None when no threshold is passed.

    Args:
        activity: everything that was sampled.
        gpu: one GPU of it.
        limit: the thresholds.
    """
    if gpu.utilization is None and gpu.sm is None:
        return None
    if _trains_on_cpu(activity, limit) and _idle(gpu, limit):
        return Answer(kind="cpu-training")
    if _idle(gpu, limit):
        # Starved rather than idle where somebody is at work for it.
        return _starved(activity, gpu, limit) or Answer(kind="gpu-idle")
    return (
        _near_limit(gpu, limit)
        or _communicates(activity, gpu, limit)
        or _waits(activity, gpu, limit)
        or _narrow(activity, gpu, limit)
    )


def _idle(gpu: GpuActivity, limit: Limits) -> bool:
    return known(gpu.utilization) < limit("idle-utilization") and (
        max(known(gpu.sm), known(gpu.dram)) < limit("idle-sm")
    )


def _trains_on_cpu(activity: Activity, limit: Limits) -> bool:
    host = activity.host
    if activity.gpu_context is not False or not activity.frameworks or host is None:
        return False
    long = (activity.framework_seconds or 0.0) >= limit("context-seconds")
    return long and known(host.worker_cpu) >= limit.share("worker-cores")


def _near_limit(gpu: GpuActivity, limit: Limits) -> Answer | None:
    pipes, power = figures.pipes_percent(gpu), figures.power_percent(gpu)
    if pipes is not None and pipes >= limit("roof-compute"):
        return Answer(kind="near-limit", cause="compute")
    if gpu.dram is not None and gpu.dram.mean >= limit("roof-dram"):
        return Answer(kind="near-limit", cause="memory")
    full = known(gpu.utilization) >= limit("busy-utilization")
    if gpu.sm is None and full and power is not None and power >= limit("roof-power"):
        return Answer(kind="near-limit", cause="power", sure=False)
    return None


def _communicates(activity: Activity, gpu: GpuActivity, limit: Limits) -> Answer | None:
    """Links are busy while the tensor cores are not; NVML does not say which kernels ran."""
    if known(gpu.tensor) >= limit("low-tensor"):
        return None
    links = figures.link_percents(activity, gpu)
    for name, row in (
        ("NVLink", "link-nvlink"),
        ("PCIe", "copy-pcie"),
        ("network", "link-network"),
    ):
        if name in links and links[name] >= limit(row):
            return Answer(kind="comm-bound", cause=name, sure=False)
    return None


def _waits(activity: Activity, gpu: GpuActivity, limit: Limits) -> Answer | None:
    """The GPU is not always busy: for whom does it wait?"""
    visible = gpu.gaps is not None and gpu.gaps.share >= limit.share("visible-gaps")
    if known(gpu.utilization) >= limit("starved-utilization") and not visible:
        return _launched(activity, gpu, limit)
    starved = _starved(activity, gpu, limit)
    if starved is not None and starved.cause != "main":
        return starved
    return _launched(activity, gpu, limit) or starved


def _starved(activity: Activity, gpu: GpuActivity, limit: Limits) -> Answer | None:
    """It waits while helpers, storage or the program's own thread are at work."""
    host = activity.host
    if host is None or activity.gpu_context is False:
        return None
    tiny = _tiny(gpu, limit)
    visible = gpu.gaps is not None and gpu.gaps.share >= limit.share("visible-gaps")
    if known(host.worker_cpu) >= limit.share("worker-cores") and (visible or not tiny):
        return Answer(kind="input-bound", cause="workers", sure=gpu.sm is not None)
    if known(host.blocked) >= limit.share("blocked-processes") and (visible or not tiny):
        return Answer(kind="input-bound", cause="storage", sure=gpu.sm is not None)
    if _hot(activity, limit) and (visible or tiny is False):
        return Answer(kind="input-bound", cause="main", sure=False)
    return None


def _launched(activity: Activity, gpu: GpuActivity, limit: Limits) -> Answer | None:
    """Small kernels, and a thread that launches them as fast as it can."""
    utilization = known(gpu.utilization)
    if not _hot(activity, limit) or utilization >= limit("flat-utilization"):
        return None
    visible = gpu.gaps is not None and gpu.gaps.share >= limit.share("visible-gaps")
    if visible or known(gpu.dram) >= limit("low-dram"):
        return None
    if _tiny(gpu, limit):
        return Answer(kind="launch-bound", sure=False)
    power = figures.power_percent(gpu)
    if gpu.sm is None and power is not None and power < limit("cautious-power"):
        return Answer(kind="launch-bound", sure=False)
    return None


def _narrow(activity: Activity, gpu: GpuActivity, limit: Limits) -> Answer | None:
    """Always some kernel running, and most of the GPU idle."""
    if known(gpu.utilization) < limit("busy-utilization"):
        return None
    power = figures.power_percent(gpu)
    if gpu.sm is None:
        low = power is not None and power < limit("cautious-power")
        return Answer(kind="busy-but-idle", cause="power", sure=False) if low else None
    low = (
        gpu.sm.mean < limit("low-sm")
        and known(gpu.tensor) < limit("low-tensor")
        and known(gpu.dram) < limit("low-dram")
        and (power is None or power < limit("low-power"))
    )
    return Answer(kind="busy-but-idle") if low else None


def _tiny(gpu: GpuActivity, limit: Limits) -> bool | None:
    """Whether kernels leave most of the GPU empty while they run; None where that is not seen."""
    fill = figures.fill_percent(gpu)
    return None if fill is None else fill < limit("filled-kernels")


def _hot(activity: Activity, limit: Limits) -> bool:
    """Whether the processes on the GPU keep a core busy.

    By one thread, or by several in turn: a framework runs its backward pass in a thread of its own
    while the main one waits for it.
    """
    host = activity.host
    if host is None or activity.gpu_context is False:
        return False
    thread = host.busiest.cpu.mean if host.busiest is not None else 0.0
    return max(thread, known(host.gpu_process_cpu)) >= limit.share("hot-thread")
