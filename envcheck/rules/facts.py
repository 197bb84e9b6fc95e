"""Small questions about a snapshot that many rules ask.

Answers that can be unknown are `bool | None`; the others are about what *is* known, so that a
missing fact never becomes an alarm.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from envcheck.model.base import model
from envcheck.model.finding import Evidence
from envcheck.versions import Release

if TYPE_CHECKING:
    from collections.abc import Iterable

    from envcheck.model.environment import Framework
    from envcheck.model.host import Gpu, PciDevice, ProbeAnswer
    from envcheck.model.snapshot import Snapshot

PASSTHROUGH_DRIVERS = frozenset({"vfio-pci", "pci-stub", "xen-pciback"})
"""Kernel drivers that keep a device for a virtual machine."""

RIVAL_DRIVERS = frozenset({"nouveau", "nova_core", "nova_drm", "nvidiafb", "rivafb", "rivatv"})
"""Kernel drivers other than NVIDIA's own that drive an NVIDIA GPU."""

CUDA_NO_DEVICE = 100
CUDA_FABRIC_NOT_READY = 802

AFTER_DRIVER = (
    "driver-too-old",
    "driver-state-stale",
    "driver-branch-ended",
    "gpu-missing-from-driver",
    "gpu-exclusive-mode",
    "gpu-memory-occupied",
    "fabric-manager-not-running",
    "fabric-manager-version-mismatch",
    "mig-instance-limit",
    "cuda-visible-devices-invalid",
    "forward-compat-unsupported",
    "ptx-newer-than-driver",
    "libcuda-not-linkable",
    "wsl-gpu-unavailable",
    "container-toolkit-missing",
    "cdi-spec-missing",
    "shm-too-small",
)
"""Ids whose findings follow from a driver that does not work, or cannot be judged without one."""


def in_container(snapshot: Snapshot) -> bool:
    """Whether the probe is known to have run inside a container."""
    return snapshot.host.container.kind not in {None, "none"}


def on_host(snapshot: Snapshot) -> bool:
    """Not known to be in a container."""
    return not in_container(snapshot)


def in_wsl(snapshot: Snapshot) -> bool:
    """Whether this is the Windows Subsystem for Linux, version 1 or 2."""
    return bool(snapshot.host.wsl)


def on_jetson(snapshot: Snapshot) -> bool:
    """Whether this is a Jetson, whose GPU is not on the PCI bus and whose driver is part of L4T."""
    return snapshot.host.jetson is not None


def discrete(snapshot: Snapshot) -> bool:
    """A machine that drives its own PCI GPUs: neither WSL nor Jetson."""
    return not in_wsl(snapshot) and not on_jetson(snapshot)


def nvidia_pci_gpus(snapshot: Snapshot) -> tuple[PciDevice, ...]:
    """NVIDIA display and 3D controllers on the PCI bus, bridges left out; empty when not read."""
    return tuple(
        each
        for each in snapshot.host.pci or ()
        if each.vendor == "10de" and (each.class_code or "").startswith("03")
    )


def usable_pci_gpus(snapshot: Snapshot) -> tuple[PciDevice, ...]:
    """PCI GPUs that are not reserved for a virtual machine."""
    return tuple(
        each for each in nvidia_pci_gpus(snapshot) if each.kernel_driver not in PASSTHROUGH_DRIVERS
    )


def nvswitches(snapshot: Snapshot) -> tuple[PciDevice, ...]:
    """NVSwitch bridges on the PCI bus; empty when not read."""
    return tuple(
        each
        for each in snapshot.host.pci or ()
        if each.vendor == "10de" and (each.class_code or "").startswith("0680")
    )


def gpus(snapshot: Snapshot) -> tuple[Gpu, ...]:
    """GPUs that the driver reports; empty when not read."""
    return snapshot.host.gpus or ()


def has_gpu(snapshot: Snapshot) -> bool:
    """Whether an NVIDIA GPU is known: by the driver, by the bus, or as a Jetson's."""
    return (
        bool(gpus(snapshot))
        or bool(usable_pci_gpus(snapshot))
        or on_jetson(snapshot)
        or cuda_ok(snapshot)
    )


def nvml_ok(snapshot: Snapshot) -> bool:
    """Whether the driver's management library answered."""
    return snapshot.host.driver.nvml.outcome == "ok"


def cuda_ok(snapshot: Snapshot) -> bool:
    """Whether the CUDA driver library initialised."""
    answer = snapshot.host.driver.libcuda
    return answer.outcome == "ok" and not answer.code


def driver_loaded(snapshot: Snapshot) -> bool:
    """Whether the kernel module is known to be loaded."""
    driver = snapshot.host.driver
    return driver.module_loaded is True or driver.module_version is not None or nvml_ok(snapshot)


def driver_works(snapshot: Snapshot) -> bool:
    """Whether the driver answered in any way: NVML, libcuda, or nvidia-smi.

    Facts about packages, DKMS or Secure Boot do not matter then.
    """
    smi = snapshot.host.driver.smi
    return nvml_ok(snapshot) or cuda_ok(snapshot) or (smi.outcome == "ok" and not smi.code)


def driver_version(snapshot: Snapshot) -> Release | None:
    """The driver's release: of the loaded module, else the best other reading."""
    driver = snapshot.host.driver
    return Release.maybe(driver.module_version or driver.version or driver.userspace_version)


def driver_subject(snapshot: Snapshot) -> str:
    """`driver 580.159.04`, or `NVIDIA driver` when the release is not known."""
    version = driver_version(snapshot)
    return f"driver {version}" if version else "NVIDIA driver"


def gpu_label(gpu: Gpu) -> str:
    """`GPU 1: NVIDIA H200`."""
    return f"GPU {gpu.index}: {gpu.name}" if gpu.name else f"GPU {gpu.index}"


def pci_label(device: PciDevice) -> str:
    """`0000:01:00.0 (GeForce RTX 3090)`, or with the device id when it has no name."""
    known = device.name or (f"10de:{device.device}" if device.device else None)
    return f"{device.address} ({known})" if known else device.address


def short_bus(address: str | None) -> str:
    """A PCI address in the form that all spellings share: domain of four digits, no function."""
    text = (address or "").lower()
    match = re.search(r"(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}):([0-9a-f]{2})(?:\.[0-7])?$", text)
    if match is None:
        return text
    return f"{int(match.group(1) or '0', 16):04x}:{match.group(2)}:{match.group(3)}"


def reported(snapshot: Snapshot, address: str | None) -> Gpu | None:
    """The GPU at a PCI address when the driver reports it without an error."""
    place = short_bus(address)
    return next(
        (
            each
            for each in gpus(snapshot)
            if each.error is None and each.bus_id and short_bus(each.bus_id) == place
        ),
        None,
    )


def unreported_pci_gpus(snapshot: Snapshot) -> tuple[PciDevice, ...]:
    """PCI GPUs of this machine that the driver does not report at all.

    GPUs that the driver reports without an address cannot be told apart: then nothing is missing as
    long as the numbers agree.
    """
    devices = usable_pci_gpus(snapshot)
    seen = gpus(snapshot)
    if any(each.bus_id is None for each in seen):
        return devices if not seen else devices[len(seen) :]
    places = {short_bus(each.bus_id) for each in seen}
    return tuple(each for each in devices if short_bus(each.address) not in places)


def cuda_frameworks(snapshot: Snapshot) -> tuple[Framework, ...]:
    """Installed frameworks that were built for CUDA."""
    return tuple(
        each
        for each in snapshot.env.frameworks or ()
        if each.cuda is not None and not each.cpu_only and not each.hip and not each.xpu
    )


def needs_gpu(snapshot: Snapshot) -> bool:
    """Whether the environment holds a CUDA build, which is meant to run on a GPU."""
    return bool(cuda_frameworks(snapshot))


def has_torch(snapshot: Snapshot) -> bool:
    """Whether torch is installed, in any build."""
    return snapshot.env.framework("torch") is not None or snapshot.env.package("torch") is not None


def said(answer: ProbeAnswer) -> str:
    """What a probe answered, in words: message and number."""
    if answer.outcome == "timeout":
        return "no answer in time"
    if answer.outcome == "crash":
        return f"died by signal {-answer.code}" if answer.code else "crashed"
    if answer.outcome == "missing":
        return "not found"
    parts = [answer.message or answer.outcome]
    if answer.code is not None:
        parts.append(f"(code {answer.code})")
    return " ".join(parts)


def answers(snapshot: Snapshot) -> tuple[Evidence, ...]:
    """What NVML, libcuda and nvidia-smi answered, as evidence; those not asked are left out."""
    driver = snapshot.host.driver
    asked = (("NVML", driver.nvml), ("cuInit", driver.libcuda), ("nvidia-smi", driver.smi))
    return tuple(
        Evidence(label=label, value=said(answer), via=answer.path or label)
        for label, answer in asked
        if answer.outcome != "not-asked"
    )


def log_lines(snapshot: Snapshot, *patterns: str) -> tuple[str, ...]:
    """Kernel log lines that match any of some regular expressions, oldest first."""
    wanted = re.compile("|".join(patterns), re.IGNORECASE)
    return tuple(line for line in snapshot.host.driver.kernel_log or () if wanted.search(line))


def log_evidence(lines: Iterable[str], limit: int = 3) -> tuple[Evidence, ...]:
    """The last few of some kernel log lines, as evidence."""
    return tuple(
        Evidence(label="kernel log", value=line.strip(), via="kernel log")
        for line in tuple(dict.fromkeys(lines))[-limit:]
    )


@model
class Xid:
    """An NVIDIA driver error report in the kernel log."""

    number: int
    address: str
    """PCI address as `short_bus` writes it; empty when the line names none."""
    line: str


_XID = re.compile(r"\bXid\b(?:\s*\((?:PCI:)?([0-9a-fA-F:.]+)\))?:?\s*(\d+)\b")


def xids(snapshot: Snapshot) -> tuple[Xid, ...]:
    """Xid reports in the kernel log, oldest first."""
    found = []
    for line in snapshot.host.driver.kernel_log or ():
        match = _XID.search(line)
        if match is not None and "SXid" not in line:
            found.append(
                Xid(
                    number=int(match.group(2)), address=short_bus(match.group(1)), line=line.strip()
                )
            )
    return tuple(found)


def at_address(snapshot: Snapshot, address: str) -> str:
    """Name of the GPU at a PCI address: the driver's, the bus's, or the bare address."""
    place = short_bus(address)
    for gpu in gpus(snapshot):
        if gpu.bus_id and short_bus(gpu.bus_id) == place:
            return gpu_label(gpu)
    for device in nvidia_pci_gpus(snapshot):
        if short_bus(device.address) == place:
            return pci_label(device)
    return address or "a GPU"


NVML_MISMATCH = 18
NVML_DRIVER_NOT_LOADED = 9
NVML_NO_DEVICES = frozenset({6, 9, 28})
"""NVML: not found, driver not loaded, GPU not found."""


def said_mismatch(snapshot: Snapshot) -> bool:
    """Whether NVML or nvidia-smi says that kernel module and libraries differ in release."""
    driver = snapshot.host.driver
    return (driver.nvml.outcome == "error" and driver.nvml.code == NVML_MISMATCH) or any(
        "driver/library version mismatch" in (each.message or "").lower()
        for each in (driver.nvml, driver.smi)
    )


def said_not_loaded(snapshot: Snapshot) -> bool:
    """Whether NVML or nvidia-smi says that there is no kernel module to talk to."""
    driver = snapshot.host.driver
    return (driver.nvml.outcome == "error" and driver.nvml.code == NVML_DRIVER_NOT_LOADED) or any(
        "couldn't communicate with the nvidia driver" in (each.message or "").lower()
        for each in (driver.nvml, driver.smi)
    )


def gpu_nodes(snapshot: Snapshot) -> tuple[str, ...]:
    """Device files of single GPUs, `/dev/nvidia0`."""
    return tuple(
        each.path
        for each in snapshot.host.nodes or ()
        if re.fullmatch(r"/dev/nvidia[0-9]+", each.path)
    )


def missing_nodes(snapshot: Snapshot) -> bool:
    """Whether the device files were looked for and no GPU has one."""
    return snapshot.host.nodes is not None and not gpu_nodes(snapshot)


_NEEDED_NODE = re.compile(r"/dev/nvidia(\d+|ctl|-uvm)")


def closed_nodes(snapshot: Snapshot) -> tuple[str, ...]:
    """Device files that CUDA needs and that this user may not open for reading and writing."""
    return tuple(
        each.path
        for each in snapshot.host.nodes or ()
        if _NEEDED_NODE.fullmatch(each.path) and (each.readable is False or each.writable is False)
    )
