"""ranks-share-gpu."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.rules.base import rule
from envcheck.rules.told import judge

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.model.snapshot import Snapshot
    from envcheck.rules.base import Answer


@rule("ranks-share-gpu", component="nccl")
def ranks_share_gpu(snapshot: Snapshot, matrix: Matrix) -> Answer:
    """Every rank has a GPU of its own.

    Rests on NCCL's "Duplicate GPU detected". With MIG, two instances of one GPU look the same,
    which is another finding.

    Why: more ranks than GPUs were started, or the program does not select its rank's GPU and
    takes the first.

    Fix: as many ranks as GPUs; select the GPU by the local rank before anything else.
    """
    yield from judge("ranks-share-gpu", snapshot, matrix)
