"""Which Python a plan takes where none is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from envcheck.matrix.loader import Matrix


def in_order(matrix: Matrix, pythons: Iterable[str]) -> list[str]:
    """Pythons from the best on: the settled one, then older ones downwards, then newer ones.

    The settled one is the newest for which the newest release of every framework has wheels:
    libraries follow the frameworks, and one that is ahead of them builds from source.
    """
    settled = matrix.memo("planner.python", lambda: _settled(matrix))

    def key(python: str) -> tuple[bool, int]:
        minor = _minor(python)
        return minor > settled, abs(minor - settled)

    return sorted(pythons, key=key)


def _minor(python: str) -> int:
    return int(python.partition(".")[2])


def _settled(matrix: Matrix) -> int:
    newest_torch = matrix.torch_builds[-1].version if matrix.torch_builds else ""
    tags = [
        [row.python or () for row in matrix.torch_builds if row.version == newest_torch],
        [row.python for row in matrix.tensorflow_releases[-1:]],
        [row.python for row in matrix.jax_plugins[-1:]],
    ]
    sets = [
        {int(tag[3:]) for found in rows for tag in found if tag[3:].isdigit()}
        for rows in tags
        if rows
    ]
    common = set.intersection(*sets) if sets else set()
    return max(common or set().union(*sets), default=0)
