"""cpu-training."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.model.finding import Evidence, Fix
from envcheck.rules.activity import figures
from envcheck.rules.activity.classify import cases
from envcheck.rules.base import cite, finding, rule

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.model.snapshot import Snapshot
    from envcheck.rules.base import Answer

_CHECKS = {
    "torch": "print(torch.cuda.is_available(), next(model.parameters()).device, batch.device)",
    "jax": "print(jax.devices())",
    "tensorflow": 'print(tf.config.list_physical_devices("GPU"))',
}


@rule("cpu-training", component="activity", when=lambda s: s.activity is not None)
def cpu_training(snapshot: Snapshot, matrix: Matrix) -> Answer:
    """A program with a framework that works uses the GPU.

    Concluded where the watched processes loaded a framework long ago, use the CPU and none of them
    holds a GPU context. Programs that only prepare data do so too, and rightly.

    Why: model and batches were not moved to the GPU, or the framework does not see one and falls
    back to the CPU silently.

    Fix: move model and batches to the device; where the framework sees no GPU, `envcheck doctor`
    says why.
    """
    activity = snapshot.activity
    if activity is None or activity.host is None:
        return
    for case in cases(snapshot, matrix, "cpu-training"):
        name = figures.label(case.gpus)
        cores = figures.known(activity.host.worker_cpu)
        frameworks = ", ".join(activity.frameworks)
        yield finding(
            "cpu-training",
            "warning",
            "activity",
            name,
            f"The program works on the CPU: it loaded {frameworks}, but uses no GPU",
            found=f"{cores:.1f} cores in use, no process with a GPU context",
            needed="a GPU context, unless this program is only meant to prepare data",
            why="Model and batches are on the CPU, or the framework does not see a GPU.",
            fix=(
                Fix(
                    title="See what the framework uses, from inside the program",
                    commands=tuple(
                        _CHECKS[each] for each in activity.frameworks if each in _CHECKS
                    ),
                ),
                Fix(
                    title="Move model and batches to the GPU",
                    commands=('model.to("cuda")', 'batch.to("cuda", non_blocking=True)'),
                ),
                Fix(
                    title="If the framework sees no GPU, learn why",
                    commands=("envcheck doctor",),
                ),
            ),
            evidence=(
                Evidence(label="GPU context", value="none", via="/proc/PID/fd"),
                Evidence(label="framework loaded", value=frameworks, via="/proc/PID/maps"),
                *figures.host_evidence(activity),
            ),
            sources=cite(matrix, *case.limits.rows("context-seconds", "worker-cores")),
        )
        return
