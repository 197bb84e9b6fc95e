"""nccl-network-unreachable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.rules.base import rule
from envcheck.rules.told import judge

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.model.snapshot import Snapshot
    from envcheck.rules.base import Answer


@rule("nccl-network-unreachable", component="nccl")
def nccl_network_unreachable(snapshot: Snapshot, matrix: Matrix) -> Answer:
    """Ranks on different nodes reach each other over the network.

    Rests on NCCL's own words: an InfiniBand or RoCE transfer that timed out, a queue pair that
    could not be set up, a connection without a route. A refused connection alone decides nothing,
    for a rank that died refuses too.

    Why: with RoCE the default GID may belong to a network that the other node has no route to;
    else a firewall, or adapters of separate networks.

    Fix: choose the GID index and the adapters, or go without InfiniBand to see whether it is
    that.
    """
    yield from judge("nccl-network-unreachable", snapshot, matrix)
