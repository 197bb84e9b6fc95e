"""p2p-unavailable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.rules.base import rule
from envcheck.rules.told import judge

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.model.snapshot import Snapshot
    from envcheck.rules.base import Answer


@rule("p2p-unavailable", component="gpu")
def p2p_unavailable(snapshot: Snapshot, matrix: Matrix) -> Answer:
    """The GPUs of this machine can reach each other's memory.

    Rests on what CUDA, NCCL or a library said. Information only: GPUs without NVLink, GeForce
    cards above all, exchange data through host memory, which is slower and right.

    Why: whether two GPUs may talk directly depends on the cards, the driver and the slots.

    Fix: nothing; NCCL_P2P_DISABLE=1 where a program insists on trying.
    """
    yield from judge("p2p-unavailable", snapshot, matrix)
