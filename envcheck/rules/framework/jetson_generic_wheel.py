"""jetson-generic-wheel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.model.finding import Evidence, Fix
from envcheck.rules import arch, builds, facts, install
from envcheck.rules.base import finding, rule, unknown

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.model.environment import Framework
    from envcheck.model.snapshot import Snapshot
    from envcheck.rules.base import Answer


@rule(
    "jetson-generic-wheel",
    component="framework",
    when=facts.on_jetson,
    explains=("framework-cpu-build", "gpu-newer-than-build", "gpu-older-than-build"),
)
def jetson_generic_wheel(snapshot: Snapshot, matrix: Matrix) -> Answer:
    """torch on a Jetson is a build for its Tegra GPU.

    Why: the wheels that a package index gives for aarch64 are made for servers. On a Jetson they
    are CPU builds, or lack code for its GPU.

    Fix: NVIDIA's wheel for this L4T release, or an image made for it.
    """
    torch = snapshot.env.framework("torch")
    if torch is None or torch.origin not in builds.WHEELS or torch.gpu_available:
        return
    if not torch.cpu_only:
        listed = builds.arches(matrix, snapshot, torch)
        gpu = next((each.arch for each in facts.gpus(snapshot) if each.arch), None)
        if listed is None or gpu is None:
            yield unknown(
                "jetson-generic-wheel", "the GPU's capability or torch's list is not known"
            )
            return
        answer = arch.coverage(listed, gpu, tegra=builds.tegra(matrix))
        if answer.runs:
            return
        if answer.runs is None:
            yield unknown("jetson-generic-wheel", answer.reason, "newer-than-table")
            return
    yield finding(
        "jetson-generic-wheel",
        "error",
        "framework",
        install.label(torch),
        "This torch is the generic aarch64 wheel, which does not use a Jetson's GPU",
        found=f"{install.label(torch)} from a package index, on L4T {snapshot.host.jetson}",
        needed=f"a build of torch for L4T {snapshot.host.jetson}",
        why="Generic aarch64 wheels are CPU builds or are made for server GPUs; a Jetson needs a "
        "build for its own GPU and its own CUDA.",
        fix=_fix(snapshot, torch),
        evidence=(
            Evidence(label="torch", value=torch.version, via=torch.location or "metadata"),
            Evidence(label="L4T", value=snapshot.host.jetson or "", via="/etc/nv_tegra_release"),
        ),
    )


def _fix(snapshot: Snapshot, torch: Framework) -> tuple[Fix, ...]:
    return (
        Fix(
            title="Remove it, then install the wheel that NVIDIA publishes for this JetPack "
            "release (it may need another Python version)",
            commands=install.uninstall(snapshot, (torch.name,)),
        ),
        Fix(title="Or use a container image made for this L4T release"),
    )
