"""gpu-memory-occupied."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.model.finding import Evidence, Fix
from envcheck.rules import facts
from envcheck.rules.base import finding, rule
from envcheck.rules.smoke import stages

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.model.host import Gpu
    from envcheck.model.smoke import Stage
    from envcheck.model.snapshot import Snapshot
    from envcheck.rules.base import Answer

MOST = 0.8
"""Share of a GPU's memory from which little is left for another program."""

GIB = 1 << 30


def _share(gpu: Gpu) -> float:
    if not gpu.memory_total_bytes or gpu.memory_used_bytes is None:
        return 0.0
    return gpu.memory_used_bytes / gpu.memory_total_bytes


def _occupied(snapshot: Snapshot) -> bool:
    """Not on Jetson, where GPU and CPU share one memory."""
    return facts.discrete(snapshot) and any(_share(g) >= MOST for g in facts.gpus(snapshot))


def _starved(snapshot: Snapshot) -> Stage | None:
    """A stage of the smoke test that found no memory on a GPU."""
    return next(
        (
            each
            for each in stages.failed(snapshot)
            if each.device != "cpu" and stages.OUT_OF_MEMORY.search(each.detail)
        ),
        None,
    )


@rule("gpu-memory-occupied", component="gpu", when=_occupied)
def gpu_memory_occupied(snapshot: Snapshot, _matrix: Matrix) -> Answer:
    """Each GPU has memory left.

    Information only: a GPU that somebody uses is what it is for. It explains an out-of-memory error
    of the next program, and is an error when the smoke test ended in one.

    Why: most of the memory is held, by the processes listed or, when none is listed, by processes
    of another container or user, or by a process that is stuck while ending.

    Fix: choose another GPU, wait, or end the process that is not needed any more.
    """
    free = [g for g in facts.gpus(snapshot) if g.memory_total_bytes and _share(g) < MOST]
    for gpu in facts.gpus(snapshot):
        if _share(gpu) < MOST:
            continue
        holders = gpu.processes or ()
        roads = []
        if free:
            roads.append(
                Fix(
                    title="Use a GPU with free memory",
                    commands=(f"export CUDA_VISIBLE_DEVICES={free[0].index}",),
                )
            )
        roads.append(
            Fix(
                title="See who holds it, and end what is not needed any more",
                commands=(
                    f"nvidia-smi -i {gpu.index} --query-compute-apps=pid,name,used_memory "
                    "--format=csv",
                )
                if holders
                else (f"sudo fuser -v /dev/nvidia{gpu.index}",),
            )
        )
        starved = _starved(snapshot)
        used = (gpu.memory_used_bytes or 0) / GIB
        total = (gpu.memory_total_bytes or 0) / GIB
        yield finding(
            "gpu-memory-occupied",
            "error" if starved else "info",
            "gpu",
            facts.gpu_label(gpu),
            f"Most of the memory of {facts.gpu_label(gpu)} is in use",
            found=f"{used:.1f} of {total:.1f} GiB in use",
            needed="free memory, for another program on this GPU",
            why=f"{starved.framework} ran out of memory in {starved.name} of the smoke test, which "
            "needs little."
            if starved
            else "Another program that starts on this GPU now may run out of memory.",
            fix=roads,
            evidence=(
                Evidence(label="memory in use", value=f"{_share(gpu):.0%}", via="NVML"),
                *(
                    Evidence(
                        label=f"process {each.pid}",
                        value=f"{each.name or 'unnamed'}"
                        + (f", {each.memory_bytes / GIB:.1f} GiB" if each.memory_bytes else ""),
                        via="NVML",
                    )
                    for each in holders
                ),
            ),
        )
