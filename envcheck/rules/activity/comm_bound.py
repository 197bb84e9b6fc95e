"""comm-bound."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.model.finding import Evidence, Fix
from envcheck.rules.activity import figures
from envcheck.rules.activity.classify import cases
from envcheck.rules.activity.profilers import look_further
from envcheck.rules.base import cite, finding, rule

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.model.snapshot import Snapshot
    from envcheck.rules.base import Answer

_ROWS = {"NVLink": "link-nvlink", "PCIe": "copy-pcie", "network": "link-network"}


@rule("comm-bound", component="activity", when=lambda s: s.activity is not None)
def comm_bound(snapshot: Snapshot, matrix: Matrix) -> Answer:
    """The GPU computes more than it communicates.

    Likely not, where NVLink, PCIe or the network ports carry much of what they can while the tensor
    cores are idle. NVML does not tell communication kernels from others, so this is concluded.

    Why: results of other GPUs, or data from the host, arrive more slowly than they are used up.

    Fix: overlap communication with computing, larger buckets, fewer synchronisations (gradient
    accumulation), smaller types on the wire; data that stays on the GPU.
    """
    activity = snapshot.activity
    if activity is None:
        return
    for case in cases(snapshot, matrix, "comm-bound"):
        gpu, link = case.gpus[0], case.answer.cause
        name = figures.label(case.gpus)
        busy = figures.link_percents(activity, gpu)[link]
        tensor = f", tensor activity {figures.percent(gpu.tensor.mean)}" if gpu.tensor else ""
        yield finding(
            "comm-bound",
            "warning",
            "activity",
            name,
            f"{name} likely waits for {link}: {busy:.0f} % of its rate on the mean",
            found=f"{link} at {busy:.0f} % of its rate{tensor}",
            needed=f"less than {case.limits(_ROWS[link]):.0f} % beside tensor activity below "
            f"{case.limits('low-tensor'):.0f} %",
            why="Data moves for most of the time, and hardly anything is computed meanwhile.",
            fix=(*_habits(link), *look_further(snapshot, what="NCCL kernels and copies")),
            evidence=(
                *figures.gpu_evidence(gpu),
                *(
                    Evidence(label=f"{each} rate", value=f"{share:.0f} % of its limit")
                    for each, share in figures.link_percents(activity, gpu).items()
                ),
                *figures.host_evidence(activity),
            ),
            sources=cite(matrix, *case.limits.rows(_ROWS[link], "low-tensor")),
        )


def _habits(link: str) -> tuple[Fix, ...]:
    if link == "PCIe":
        return (
            Fix(title="Copy less: keep data on the GPU, send integers and decode there"),
            Fix(
                title="Let copies overlap with computing: from pinned memory, without waiting",
                commands=(
                    "DataLoader(..., pin_memory=True)",
                    'batch.to("cuda", non_blocking=True)',
                ),
            ),
        )
    return (
        Fix(
            title="Communicate less often, and while the GPU computes",
            commands=(
                "DistributedDataParallel(model, bucket_cap_mb=100, gradient_as_bucket_view=True)",
                "with model.no_sync(): ...  # while gradients are accumulated",
            ),
        ),
        Fix(
            title="Communicate in 16 bits: a compression hook, or bf16 gradients",
            commands=("model.register_comm_hook(None, default_hooks.bf16_compress_hook)",),
        ),
        Fix(
            title="See that the GPUs talk over the fastest link there is",
            commands=("nvidia-smi topo -m", "NCCL_DEBUG=INFO python YOUR_PROGRAM"),
        ),
    )
