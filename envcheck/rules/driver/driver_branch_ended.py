"""driver-branch-ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.matrix import query
from envcheck.model.finding import Evidence
from envcheck.rules import drivers, facts
from envcheck.rules.base import cite, finding, rule

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.model.snapshot import Snapshot
    from envcheck.rules.base import Answer

SUPPORTED_KINDS = frozenset({"lts", "production"})
"""Branches that get fixes for a stated time. The others are short-lived by design."""


def _datable(snapshot: Snapshot) -> bool:
    return (
        facts.discrete(snapshot)
        and snapshot.taken_at is not None
        and facts.driver_version(snapshot) is not None
        and facts.driver_works(snapshot)
    )


@rule("driver-branch-ended", component="driver", when=_datable)
def driver_branch_ended(snapshot: Snapshot, matrix: Matrix) -> Answer:
    """The driver's branch still gets fixes.

    Compares the branch's published end with the day of the snapshot. A warning when a production or
    long-term branch has a sourced end that is past; information for short-lived branches and where
    the table is less sure.

    Why: a branch that ended gets no security fixes and no support for newer kernels.

    Fix: move to a branch that is still kept and that supports this GPU.
    """
    driver = facts.driver_version(snapshot)
    row = query.branch(matrix, driver.text) if driver else None
    if driver is None or row is None or not drivers.ended(row, snapshot.taken_at):
        return
    sure = row.confidence == "high" and row.eol is not None and row.kind in SUPPORTED_KINDS
    choice = drivers.choose(snapshot, matrix)
    newer = choice.branch is not None and int(choice.branch) > driver.major
    yield finding(
        "driver-branch-ended",
        "warning" if sure else "info",
        "driver",
        f"driver {driver}",
        f"Driver branch {row.branch} gets no more fixes",
        found=f"branch {row.branch}" + (f", ended {row.eol}" if row.eol else ", ended"),
        needed="a branch that still gets fixes",
        why="Security problems found since are not fixed in it, and newer kernels may not build it."
        + ("" if newer else " No later branch supports this GPU."),
        fix=drivers.install_driver(snapshot, matrix, choice) if newer else (),
        evidence=(
            Evidence(label="driver", value=str(driver), via="kernel module"),
            Evidence(label="date", value=str(snapshot.taken_at)[:10], via="clock"),
        ),
        sources=(*cite(matrix, row), *(choice.sources if newer else ())),
    )
