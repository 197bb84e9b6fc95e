"""no-gpu."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.model.finding import Evidence, Fix
from envcheck.rules import facts
from envcheck.rules.base import finding, rule, unknown

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.model.snapshot import Snapshot
    from envcheck.rules.base import Answer


def _could_be_absent(snapshot: Snapshot) -> bool:
    """Nothing shows a GPU, and no answer of the driver speaks of one."""
    driver = snapshot.host.driver
    return (
        not facts.has_gpu(snapshot)
        and not facts.nvidia_pci_gpus(snapshot)
        and snapshot.host.wsl != 1
        and not (snapshot.host.wsl == 2 and driver.installed is True)
        and (facts.nvml_ok(snapshot) or not facts.gpu_nodes(snapshot))
    )


def _troubled(snapshot: Snapshot) -> bool:
    """Whether the driver's library is there and would know, but gives no answer."""
    driver = snapshot.host.driver
    return driver.nvml.outcome in {"timeout", "crash"} or (
        driver.nvml.outcome == "error" and bool(driver.module_loaded)
    )


@rule(
    "no-gpu",
    component="driver",
    when=_could_be_absent,
    explains=(
        *facts.AFTER_DRIVER,
        "driver-missing",
        "driver-not-loaded",
        "driver-library-mismatch",
        "driver-module-rejected",
        "nouveau-conflict",
        "framework-cpu-build",
        "gpu-newer-than-build",
        "gpu-older-than-build",
    ),
)
def no_gpu(snapshot: Snapshot, _matrix: Matrix) -> Answer:
    """An NVIDIA GPU is present.

    Looks at the PCI bus, the driver's own list and the device files. The finding is a warning,
    since a machine without a GPU is a fault only where one is required: commands that require one
    (`--require-gpu`, `smoke`, `watch`) raise it to an error. A CUDA toolkit or a CUDA build of a
    framework on the disk requires nothing by itself.

    Why: without a GPU every framework runs on the CPU, and each further check of driver and CUDA
    would only repeat that.

    Fix: use a CPU build, which is far smaller, or a machine with a GPU.
    """
    host = snapshot.host
    if _troubled(snapshot):
        reason = host.driver.nvml.message or host.driver.nvml.outcome
        yield unknown("no-gpu", f"no GPU is on the PCI bus, and NVML gives no answer: {reason}")
        return
    looked = (
        ("PCI bus", host.pci, "/sys/bus/pci/devices"),
        ("device files", host.nodes, "/dev"),
    )
    # Without a driver there are no device files either: then only the bus tells.
    told = host.nodes is not None and (facts.nvml_ok(snapshot) or not facts.discrete(snapshot))
    if host.pci is None and not told:
        reason = (
            snapshot.gap("host.pci")
            or snapshot.gap("host.gpus")
            or "neither the PCI bus nor the device files could be read"
        )
        yield unknown("no-gpu", reason)
        return
    evidence = [
        Evidence(label=label, value="no NVIDIA GPU", via=via)
        for label, value, via in looked
        if value is not None
    ]
    evidence += facts.answers(snapshot)
    builds = ", ".join(f"{each.name} {each.version}" for each in facts.cuda_frameworks(snapshot))
    if builds:
        evidence.append(Evidence(label="CUDA builds installed", value=builds, via="environment"))
    here = "in this container" if facts.in_container(snapshot) else "on this machine"
    fixes = [
        Fix(
            title="Nothing to do when this machine is meant to work on its CPU"
            + (" (a CPU build of the framework takes far less disk)" if builds else "")
        ),
        Fix(
            title="Otherwise see whether the hardware shows a GPU at all",
            commands=("lspci -nn -d 10de:",),
        ),
    ]
    if host.wsl:
        fixes[1] = Fix(
            title="Otherwise install the NVIDIA driver on Windows, which brings the GPU into WSL, "
            "then restart WSL from PowerShell",
            commands=("wsl --shutdown",),
        )
    elif facts.in_container(snapshot):
        fixes[1] = Fix(
            title="Otherwise run this on the host, outside the container, whether it has one",
            commands=("envcheck doctor",),
        )
    elif host.virtual:
        fixes[1] = Fix(
            title="Otherwise attach a GPU to this virtual machine (an instance type with one, or "
            "PCI pass-through); afterwards this must list it",
            commands=("lspci -nn -d 10de:",),
        )
    yield finding(
        "no-gpu",
        "warning",
        "driver",
        "GPU",
        f"No NVIDIA GPU is visible {here}",
        found="no NVIDIA GPU",
        needed="an NVIDIA GPU, if GPU work is meant to run here",
        why="No NVIDIA device is on the PCI bus or known to a driver: frameworks run on the CPU.",
        fix=fixes,
        evidence=evidence,
    )
