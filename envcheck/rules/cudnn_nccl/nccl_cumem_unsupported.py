"""nccl-cumem-unsupported."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.rules.base import rule
from envcheck.rules.told import judge

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.model.snapshot import Snapshot
    from envcheck.rules.base import Answer


@rule(
    "nccl-cumem-unsupported",
    component="nccl",
    explains=("p2p-unavailable", "shm-too-small"),
)
def nccl_cumem_unsupported(snapshot: Snapshot, matrix: Matrix) -> Answer:
    """NCCL's host memory by cuMem works on this machine.

    Rests on NCCL's shared-memory transport failing with a CUDA error, or attaching to a segment
    of no size.

    Why: newer NCCL releases allocate host buffers by cuMem where a test of their own succeeds; on
    some topologies, and with some drivers, the buffers then cannot be shared.

    Fix: NCCL_CUMEM_HOST_ENABLE=0, or a newer NCCL.
    """
    yield from judge("nccl-cumem-unsupported", snapshot, matrix)
