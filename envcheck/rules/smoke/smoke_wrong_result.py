"""smoke-wrong-result."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.model.finding import Fix
from envcheck.rules.base import finding, rule
from envcheck.rules.smoke import stages

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.model.snapshot import Snapshot
    from envcheck.rules.base import Answer


@rule("smoke-wrong-result", component="smoke", when=stages.ran)
def smoke_wrong_result(snapshot: Snapshot, _matrix: Matrix) -> Answer:
    """What is computed on the device is what the same computation in float64 gives.

    Judged is a smoke test that was run. Each stage states its tolerance, which leaves room for the
    rounding of its type and nothing more.

    Why: nothing stops a program that computes wrong numbers; a training run just does not learn.
    The reason is a GPU with a fault, transfers that arrive changed, or a faulty build of a library.

    Fix: test the hardware, then another build.
    """
    for framework, wrong in stages.by_framework(stages.failed(snapshot, "wrong")).items():
        first = wrong[0]
        on_gpu = first.device != "cpu"
        yield finding(
            "smoke-wrong-result",
            "error",
            "smoke",
            f"{framework} on {stages.place(wrong)}",
            f"{stages.title(framework)} computes wrong numbers in {first.name}",
            found=first.detail,
            needed="the numbers that the same computation gives on the CPU in float64, within the "
            "stage's tolerance",
            why="The stage ended without an error, so a program would go on with these numbers.",
            fix=(_hardware(), _compare(framework)) if on_gpu else (_compare(framework),),
            evidence=stages.evidence(wrong),
        )


def _hardware() -> Fix:
    return Fix(
        title="Test the GPU: its memory errors first, then with NVIDIA's diagnosis, which needs "
        "the GPU for itself",
        commands=("nvidia-smi -q -d ECC,ROW_REMAPPER", "dcgmi diag -r 3"),
    )


def _compare(framework: str) -> Fix:
    return Fix(
        title=f"Run it on another machine or GPU with the same build of {stages.title(framework)}: "
        "numbers that are wrong there too come from the build, so install another one"
    )
