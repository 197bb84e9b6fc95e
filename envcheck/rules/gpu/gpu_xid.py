"""gpu-xid."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.matrix import query
from envcheck.model.finding import Fix
from envcheck.rules import facts
from envcheck.rules.base import cite, finding, rule
from envcheck.rules.gpu.gpu_fell_off_bus import XID_FELL_OFF_BUS
from envcheck.rules.gpu.gpu_memory_error import is_memory_xid

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.matrix.schema import Xid
    from envcheck.model.finding import Severity
    from envcheck.model.snapshot import Snapshot
    from envcheck.rules.base import Answer

PROGRAM_XIDS = frozenset({13, 31, 43, 45})
"""Faults of a program on the GPU, not of the machine."""


def _severity(row: Xid, *, program: bool, works: bool) -> Severity:
    """How much a report means now: the log holds what happened since the machine started."""
    over = works and row.action.startswith("restart the application")
    if program or over:
        return "info"
    return "error" if row.severity == "error" and not works else "warning"


@rule("gpu-xid", component="gpu", when=lambda snapshot: bool(facts.xids(snapshot)))
def gpu_xid(snapshot: Snapshot, matrix: Matrix) -> Answer:
    """The kernel log holds no error report (Xid) of the driver that needs action.

    Xids with a finding of their own are left to it. Faults of a program (13, 31, 43, 45) are
    information, as is what asks for no more than a new start of the program, once CUDA works. A
    report that the table calls serious is an error while CUDA does not work, and a warning when it
    works again.

    Why: the driver writes an Xid for each fault that it sees on a GPU.

    Fix: what the Xid table says.
    """
    seen: dict[tuple[int, str], list[str]] = {}
    for xid in facts.xids(snapshot):
        seen.setdefault((xid.number, xid.address), []).append(xid.line)
    for (number, address), lines in seen.items():
        row = query.xid(matrix, number)
        if number == XID_FELL_OFF_BUS or is_memory_xid(number, row):
            continue
        program = number in PROGRAM_XIDS
        if row is None or (row.severity == "info" and not program):
            continue
        severity = _severity(row, program=program, works=facts.cuda_ok(snapshot))
        name = facts.at_address(snapshot, address)
        yield finding(
            "gpu-xid",
            severity,
            "gpu",
            name,
            f"Xid {number} on {name}: {row.meaning}",
            found=f"Xid {number} ({row.mnemonic}), {len(lines)} in the kernel log",
            needed="no such report",
            why="A program on the GPU did something illegal or was stopped; the machine is well."
            if program
            else f"The driver saw a fault of this GPU: {row.meaning}.",
            fix=(
                Fix(title=row.action[:1].upper() + row.action[1:]),
                Fix(
                    title="See what happened around it",
                    commands=("sudo dmesg -T | grep -B 2 -A 5 Xid",),
                ),
            ),
            evidence=(
                *facts.log_evidence(lines),
                *facts.answers(snapshot),
            ),
            sources=cite(matrix, row),
        )
