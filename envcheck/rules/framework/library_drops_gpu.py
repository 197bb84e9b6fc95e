"""library-drops-gpu."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.rules.base import rule
from envcheck.rules.told import judge

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.model.snapshot import Snapshot
    from envcheck.rules.base import Answer


@rule("library-drops-gpu", component="framework")
def library_drops_gpu(snapshot: Snapshot, matrix: Matrix) -> Answer:
    """The kernels of libraries above the framework run on this GPU.

    Rests on the library's own words: attention, quantisation or compiled kernels that ask for a
    newer architecture than torch does.

    Why: kernels use features, such as bf16, that older GPUs do not have.

    Fix: switch the feature off, take an older release, or a newer GPU.
    """
    yield from judge("library-drops-gpu", snapshot, matrix)
