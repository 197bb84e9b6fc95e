"""tensorflow-windows-no-gpu."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.model.finding import Evidence, Fix
from envcheck.rules import facts, install
from envcheck.rules.base import finding, rule

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.model.snapshot import Snapshot
    from envcheck.rules.base import Answer


def _windows(snapshot: Snapshot) -> bool:
    platform = snapshot.env.python.platform or ""
    return (platform.startswith("win") or snapshot.host.os.id == "windows") and facts.has_gpu(
        snapshot
    )


@rule(
    "tensorflow-windows-no-gpu",
    component="framework",
    when=_windows,
    explains=("framework-cpu-build",),
)
def tensorflow_windows_no_gpu(snapshot: Snapshot, _matrix: Matrix) -> Answer:
    """TensorFlow on native Windows is a build that can use a GPU.

    Why: TensorFlow's builds for native Windows have had no CUDA for years; only old releases, and
    Linux builds inside WSL 2, use the GPU.

    Fix: run it in WSL 2.
    """
    for framework in snapshot.env.frameworks or ():
        cpu = framework.cpu_only or framework.name == "tensorflow-intel"
        if framework.name not in {"tensorflow", "tensorflow-intel"} or not cpu:
            continue
        yield finding(
            "tensorflow-windows-no-gpu",
            "error",
            "framework",
            install.label(framework),
            "TensorFlow for native Windows has no GPU support",
            found=f"{install.label(framework)} on Windows, a CPU build",
            needed="a Linux build, in WSL 2",
            why="There are no CUDA builds of this TensorFlow release for native Windows.",
            fix=(
                Fix(
                    title="Install WSL 2 (PowerShell as administrator), then TensorFlow inside it",
                    commands=("wsl --install", 'python3 -m pip install "tensorflow[and-cuda]"'),
                ),
            ),
            evidence=(
                Evidence(
                    label="platform",
                    value=framework.platform or snapshot.env.python.platform or "Windows",
                    via=framework.location or "interpreter",
                ),
            ),
        )
        return
