"""package-pair-mismatch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.rules.base import rule
from envcheck.rules.told import judge

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.model.snapshot import Snapshot
    from envcheck.rules.base import Answer


@rule("package-pair-mismatch", component="framework")
def package_pair_mismatch(snapshot: Snapshot, matrix: Matrix) -> Answer:
    """Packages that share internals are of one release.

    Rests on what one of them says, or on a name that one asks the other for and that it does not
    have: triton under torch, the parts of FlashInfer, TensorFlow's add-ons.

    Why: such pairs are released together and call each other's internals.

    Fix: install both in one release.
    """
    yield from judge("package-pair-mismatch", snapshot, matrix)
