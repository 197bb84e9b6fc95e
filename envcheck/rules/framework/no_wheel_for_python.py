"""no-wheel-for-python."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.rules.base import rule
from envcheck.rules.told import judge

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.model.snapshot import Snapshot
    from envcheck.rules.base import Answer


@rule("no-wheel-for-python", component="framework")
def no_wheel_for_python(snapshot: Snapshot, matrix: Matrix) -> Answer:
    """The package has a build for this Python and platform.

    Rests on what pip or uv say when they find no candidate. Silent when the network failed, which
    looks the same, and open when a version with a local tag was asked for, whose index may be
    missing.

    Why: packages with machine code are built for a range of Python releases, and a new Python
    comes first.

    Fix: an environment with a Python for which there is a build.
    """
    yield from judge("no-wheel-for-python", snapshot, matrix)
