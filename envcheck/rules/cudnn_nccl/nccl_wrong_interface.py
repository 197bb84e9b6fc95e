"""nccl-wrong-interface."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.rules.base import rule
from envcheck.rules.told import judge

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.model.snapshot import Snapshot
    from envcheck.rules.base import Answer


@rule(
    "nccl-wrong-interface",
    component="nccl",
    explains=("nccl-network-unreachable",),
)
def nccl_wrong_interface(snapshot: Snapshot, matrix: Matrix) -> Answer:
    """Ranks meet on a network interface that leads to the other nodes.

    Rests on what NCCL or Gloo say when they choose an interface: none found, the loopback, or a
    virtual one while ranks do not meet.

    Why: the address by which a host knows itself may be 127.0.0.1, and bridges of container
    engines look like networks.

    Fix: name the interface in NCCL_SOCKET_IFNAME and GLOO_SOCKET_IFNAME.
    """
    yield from judge("nccl-wrong-interface", snapshot, matrix)
