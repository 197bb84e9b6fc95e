"""extension-binary-missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.rules.base import rule
from envcheck.rules.told import judge

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.model.snapshot import Snapshot
    from envcheck.rules.base import Answer


@rule("extension-binary-missing", component="framework")
def extension_binary_missing(snapshot: Snapshot, matrix: Matrix) -> Answer:
    """Extensions have their native library.

    Rests on the import of a native module that does not exist, or on an extension that says it
    found no binary for this CUDA release or platform.

    Why: only the Python part was installed or built, or the release ships binaries for other
    platforms.

    Fix: a release with a binary for this platform, or a build made here.
    """
    yield from judge("extension-binary-missing", snapshot, matrix)
