"""smoke-crashed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.model.finding import Fix
from envcheck.rules.base import finding, rule
from envcheck.rules.smoke import stages

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.model.smoke import Stage
    from envcheck.model.snapshot import Snapshot
    from envcheck.rules.base import Answer


@rule("smoke-crashed", component="smoke", when=stages.ran)
def smoke_crashed(snapshot: Snapshot, _matrix: Matrix) -> Answer:
    """Every stage of the smoke test runs to its end.

    Judged is a smoke test that was run. A stage that was ended by a signal, or that failed with an
    error, is an error here when nothing more precise is known; where a cause is, this is named
    under it.

    Why: what fails in so small a program fails in every program.

    Fix: what the stage itself says; then the kernel's log, and the stage run alone.
    """
    found = stages.failed(snapshot, "crash", "error")
    for framework, bad in stages.by_framework(found).items():
        first = bad[0]
        verb = "crashes" if first.outcome == "crash" else "fails"
        yield finding(
            "smoke-crashed",
            "error",
            "smoke",
            f"{framework} on {stages.place(bad)}",
            f"{stages.title(framework)} {verb} in {first.name}",
            found=first.detail or first.outcome,
            needed="a stage that runs to its end",
            why="The stage does what every program does with this framework, and nothing else.",
            fix=_fix(first),
            evidence=stages.evidence(bad),
        )


def _fix(stage: Stage) -> tuple[Fix, ...]:
    log = Fix(
        title="See what the kernel logged when it happened",
        commands=("sudo dmesg | grep -iE 'nvrm|xid|segfault|out of memory' | tail",),
    )
    if stage.device == "cpu":
        return (log,) if stage.outcome == "crash" else ()
    alone = Fix(
        title="Run it again with each call waited for, so that the error names the call that it "
        "comes from",
        commands=(f"CUDA_LAUNCH_BLOCKING=1 {stages.again(stage)}",),
    )
    return (log, alone)
