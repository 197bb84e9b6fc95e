"""Whether the tables are too old for the machine that they judge."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.matrix import query
from envcheck.versions import Release

if TYPE_CHECKING:
    from collections.abc import Iterator

    from envcheck.matrix.loader import Matrix
    from envcheck.model.snapshot import Snapshot

OLDEST_DAYS = 90
"""Days after which a table is called old: the frameworks release about that often."""


def notes(snapshot: Snapshot, matrix: Matrix, today: str | None = None) -> tuple[str, ...]:
    """What a reader should know of the tables: that they are old, or older than what is installed.

    Args:
        snapshot: what was judged.
        matrix: the tables; of those that were read.
        today: day of the judgement, `2026-12-01`; that of the snapshot when absent.
    """
    return (*_old(matrix, today or snapshot.taken_at), *_newer(snapshot, matrix))


def _old(matrix: Matrix, today: str | None) -> Iterator[str]:
    from datetime import date

    if today is None:
        return
    now = date.fromisoformat(today[:10])
    ages = {name: (now - date.fromisoformat(day)).days for name, day in matrix.dates().items()}
    old = sorted(name for name, age in ages.items() if age > OLDEST_DAYS)
    if old:
        oldest = max(ages[name] for name in old)
        yield (
            f"tables are up to {oldest} days old ({', '.join(old)}): a newer envcheck, or "
            "'envcheck tables refresh', knows more"
        )


def _newer(snapshot: Snapshot, matrix: Matrix) -> Iterator[str]:
    """What is installed and newer than everything in its table."""
    driver = snapshot.host.driver.version
    if driver is not None and query.driver_newer_than_table(matrix, driver):
        yield f"driver {driver} is of a newer branch than the tables know"
    for framework in snapshot.env.frameworks or ():
        newest = _newest(matrix, framework.name)
        have = Release.maybe(framework.version)
        if newest is not None and have is not None and have > newest:
            yield (
                f"{framework.name} {framework.version} is newer than the newest in the tables "
                f"({newest})"
            )
        elif framework.cuda and query.cuda_newer_than_table(matrix, framework.cuda):
            yield (
                f"CUDA {framework.cuda}, which {framework.name} uses, is newer than the tables know"
            )


def _newest(matrix: Matrix, name: str) -> Release | None:
    if name == "torch":
        return Release.maybe(query.newest_torch(matrix))
    if name == "jax":
        return _last([row.version for row in matrix.jax_releases])
    if name == "tensorflow":
        return _last([row.version for row in matrix.tensorflow_releases])
    return None


def _last(versions: list[str]) -> Release | None:
    return max((Release.parse(text) for text in versions), default=None)
