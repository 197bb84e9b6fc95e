"""nccl-version-mismatch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.rules import facts, pins
from envcheck.rules.base import rule
from envcheck.rules.cudnn_nccl import wheels

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.model.snapshot import Snapshot
    from envcheck.rules.base import Answer


@rule("nccl-version-mismatch", component="nccl", when=(facts.needs_gpu, pins.packages_known))
def nccl_version_mismatch(snapshot: Snapshot, _matrix: Matrix) -> Answer:
    """The installed NCCL wheel is the one that the framework pins, or a newer one.

    Another major version is an error, an older version than the pin a warning, a newer one says
    nothing.

    Why: an NCCL older than the one that the framework was built with may miss functions (the import
    then fails with an undefined symbol), and ranks of different versions refuse each other.

    Fix: put the pinned version back.
    """
    yield from wheels.judge_pin(snapshot, "nccl-version-mismatch", "nccl", "NCCL")
