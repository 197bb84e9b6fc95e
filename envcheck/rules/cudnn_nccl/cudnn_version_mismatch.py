"""cudnn-version-mismatch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.rules import facts, pins
from envcheck.rules.base import rule
from envcheck.rules.cudnn_nccl import wheels

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.model.snapshot import Snapshot
    from envcheck.rules.base import Answer


@rule("cudnn-version-mismatch", component="cudnn", when=(facts.needs_gpu, pins.packages_known))
def cudnn_version_mismatch(snapshot: Snapshot, _matrix: Matrix) -> Answer:
    """The installed cuDNN wheel is the one that the framework pins, or a compatible newer one.

    Another major version is an error, an older version than the pin a warning, a newer minor
    version of the same major is compatible and says nothing.

    Why: cuDNN keeps compatibility forwards within a major version. A library that is older than the
    one that the framework was built with misses functions and fixes.

    Fix: put the pinned version back.
    """
    yield from wheels.judge_pin(snapshot, "cudnn-version-mismatch", "cudnn", "cuDNN")
