"""framework-cpu-build."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.model.finding import Evidence, Fix
from envcheck.rules import builds, facts, install
from envcheck.rules.base import finding, rule, unknown

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.matrix.schema import TorchBuild
    from envcheck.model.environment import Framework
    from envcheck.model.snapshot import Snapshot
    from envcheck.rules.base import Answer


@rule(
    "framework-cpu-build",
    component="framework",
    when=facts.has_gpu,
    needs=("env.frameworks",),
    explains=("torch-companion-mismatch",),
)
def framework_cpu_build(snapshot: Snapshot, matrix: Matrix) -> Answer:
    """On a machine with an NVIDIA GPU, torch is a CUDA build.

    Builds for ROCm or Intel GPUs are never meant. Silent where the machine has no NVIDIA GPU;
    information only where no build in the tables would run on the GPU that is there.

    Why: the CPU build imports and runs, and simply never sees a GPU.

    Fix: install the newest CUDA variant of the same version that this driver and GPU run.
    """
    torch = snapshot.env.framework("torch")
    if torch is None or torch.cuda is not None or torch.hip or torch.xpu or torch.gpu_available:
        return
    if torch.cpu_only is None:
        yield unknown(
            "framework-cpu-build",
            f"whether {install.label(torch)} is a CUDA build could not be read",
        )
        return
    if torch.cpu_only:
        build = builds.choose(matrix, snapshot, torch)
        possible = build is not None or not builds.gpu_arches(matrix, snapshot)
        gpus = facts.gpus(snapshot)
        names = (
            ", ".join(dict.fromkeys(each.name or "an NVIDIA GPU" for each in gpus))
            or ", ".join(facts.pci_label(each) for each in facts.usable_pci_gpus(snapshot))
            or "a Jetson GPU"
        )
        yield finding(
            "framework-cpu-build",
            "error" if possible else "info",
            "framework",
            install.label(torch),
            "torch is a CPU-only build, but this machine has an NVIDIA GPU",
            found=f"{install.label(torch)}, built without CUDA",
            needed=f"a CUDA build of torch for {names}",
            why="A build without CUDA never uses the GPU, and says nothing until asked for it.",
            fix=_fix(snapshot, matrix, torch, build),
            evidence=(
                Evidence(
                    label="torch",
                    value=f"{torch.version}, no CUDA",
                    via=torch.location or "metadata",
                ),
                *(
                    Evidence(label="GPU", value=facts.gpu_label(each), via="driver")
                    for each in gpus
                ),
            ),
        )


def _fix(
    snapshot: Snapshot, matrix: Matrix, torch: Framework, build: TorchBuild | None
) -> tuple[Fix, ...]:
    if install.by_conda(snapshot, "torch"):
        return (
            Fix(
                title="Install conda-forge's CUDA build of the same version",
                commands=install.conda_install(
                    snapshot, "torch", version=install.public_version(torch.version), cuda=None
                ),
            ),
        )
    if build is None:
        return (
            Fix(
                title="No build of torch in the tables runs on this GPU with this driver; a newer "
                "driver may change that, or nothing, for a GPU that torch no longer supports"
            ),
        )
    return (
        builds.install_fix(
            matrix,
            snapshot,
            torch,
            build,
            f"Install torch {build.version} for CUDA {build.cuda}, which this driver and GPU run",
        ),
    )
