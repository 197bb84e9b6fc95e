"""smoke-timeout."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.model.finding import Fix
from envcheck.rules.base import finding, rule
from envcheck.rules.smoke import stages

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.model.smoke import Stage
    from envcheck.model.snapshot import Snapshot
    from envcheck.rules.base import Answer


@rule("smoke-timeout", component="smoke", when=stages.ran)
def smoke_timeout(snapshot: Snapshot, _matrix: Matrix) -> Answer:
    """No stage of the smoke test hangs.

    Judged is a smoke test that was run. A stage that gave no answer in its time was ended with
    everything it had started; where a cause is known, this is named under it.

    Why: a program that hangs says nothing. Between several GPUs the reason is mostly shared memory
    that is too small, transfers between GPUs that the IOMMU stops, or a network interface that does
    not lead to the others; on one GPU, a driver that does not answer.

    Fix: give it more time once, to tell slow from hanging; then change one thing at a time.
    """
    for framework, hung in stages.by_framework(stages.failed(snapshot, "timeout")).items():
        first = hung[0]
        yield finding(
            "smoke-timeout",
            "error",
            "smoke",
            f"{framework} on {stages.place(hung)}",
            f"{stages.title(framework)} hangs in {first.name}",
            found=first.detail,
            needed="an answer in time",
            why="The stage takes a moment on a machine in order.",
            fix=_fix(first),
            evidence=stages.evidence(hung),
        )


def _fix(stage: Stage) -> tuple[Fix, ...]:
    slow = Fix(
        title="Give it more time once: the first start of a framework or of CUDA can be slow",
        commands=(stages.again(stage, "--timeout", "600"),),
    )
    if stage.name not in stages.COLLECTIVE:
        return (slow,)
    if stage.device == "cpu":
        interface = "GLOO_SOCKET_IFNAME"
        return (slow, _one_interface(stage, interface))
    return (
        Fix(
            title="See whether it works when GPUs do not reach into each other's memory",
            commands=(f"NCCL_P2P_DISABLE=1 {stages.again(stage)}",),
        ),
        Fix(
            title="See whether it works without shared memory, which is small in containers",
            commands=("df -h /dev/shm", f"NCCL_SHM_DISABLE=1 {stages.again(stage)}"),
        ),
        _one_interface(stage, "NCCL_SOCKET_IFNAME"),
        slow,
    )


def _one_interface(stage: Stage, variable: str) -> Fix:
    return Fix(
        title="Name the network interface that the processes should find each other by, here the "
        "loopback, which is enough on one machine",
        commands=("ip -brief address", f"{variable}=lo {stages.again(stage)}"),
    )
