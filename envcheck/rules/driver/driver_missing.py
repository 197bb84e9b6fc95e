"""driver-missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.model.finding import Evidence
from envcheck.rules import drivers, facts
from envcheck.rules.base import finding, rule, unknown

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.model.finding import Finding
    from envcheck.model.snapshot import Snapshot
    from envcheck.rules.base import Answer


def _concerned(snapshot: Snapshot) -> bool:
    return facts.discrete(snapshot) and facts.on_host(snapshot) and facts.has_gpu(snapshot)


@rule(
    "driver-missing",
    component="driver",
    when=_concerned,
    explains=(*facts.AFTER_DRIVER, "driver-not-loaded", "nouveau-conflict"),
)
def driver_missing(snapshot: Snapshot, matrix: Matrix) -> Answer:
    """An NVIDIA driver, kernel module and libcuda, is installed where there is an NVIDIA GPU.

    Silent inside containers, where the driver belongs to the host, and for GPUs that are handed to
    a virtual machine.

    Why: the GPU is on the bus, and without the driver no program can use it. Some distributions
    package libcuda by itself, and driver containers install the kernel module for containers only:
    the module then runs, but CUDA programs find no libcuda.

    Fix: install the branch that supports this GPU and the CUDA builds in the environment, or the
    package that holds libcuda, of the release that is loaded.
    """
    driver = snapshot.host.driver
    if facts.driver_loaded(snapshot):
        if driver.libcuda.outcome == "missing":
            yield _libcuda_missing(snapshot, matrix)
        return
    if facts.driver_works(snapshot) or driver.installed:
        return
    if driver.installed is None:
        yield unknown(
            "driver-missing",
            snapshot.gap("host.driver.installed")
            or "whether driver packages are installed could not be read",
        )
        return
    yield _nothing_installed(snapshot, matrix)


def _nothing_installed(snapshot: Snapshot, matrix: Matrix) -> Finding:
    devices = facts.usable_pci_gpus(snapshot)
    rivals = sorted({d.kernel_driver for d in devices if d.kernel_driver in facts.RIVAL_DRIVERS})
    evidence = [
        Evidence(label="GPU", value=drivers.device_label(matrix, each), via="/sys/bus/pci/devices")
        for each in devices
    ]
    evidence += [
        Evidence(label="kernel driver in use", value=str(name), via="/sys/bus/pci/devices")
        for name in rivals
    ]
    evidence += facts.answers(snapshot)
    choice = drivers.choose(snapshot, matrix)
    return finding(
        "driver-missing",
        "error",
        "driver",
        ", ".join(drivers.device_label(matrix, each) for each in devices),
        "An NVIDIA GPU is present, but no NVIDIA driver is installed",
        found="no NVIDIA driver",
        needed=choice.text,
        why="The GPU is on the PCI bus. Without NVIDIA's kernel module and libcuda no CUDA program "
        "can open it."
        + (f" {' and '.join(map(str, rivals))} drives only a display." if rivals else ""),
        fix=drivers.install_driver(snapshot, matrix, choice),
        evidence=evidence,
        sources=choice.sources,
    )


def _libcuda_missing(snapshot: Snapshot, matrix: Matrix) -> Finding:
    return finding(
        "driver-missing",
        "error" if facts.needs_gpu(snapshot) else "warning",
        "driver",
        "libcuda.so.1",
        "The kernel module is loaded, but libcuda is not installed",
        found="no libcuda.so.1 that the loader can find",
        needed=f"libcuda of {facts.driver_subject(snapshot)}",
        why="CUDA programs talk to the kernel module through libcuda.so.1, which belongs to the "
        "driver's user-space packages and never to a framework.",
        fix=drivers.install_libcuda(snapshot, matrix),
        evidence=facts.answers(snapshot),
    )
