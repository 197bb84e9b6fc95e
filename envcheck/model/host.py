"""Facts about the machine: operating system, driver, GPUs, container, engines.

`None` always means "not known"; why it is not known stands in the snapshot's gaps. An empty tuple
means "looked, and there is none".
"""

from __future__ import annotations

from typing import Literal

from envcheck.model.base import model

Outcome = Literal["ok", "error", "timeout", "crash", "missing", "not-asked"]
"""How a probe of foreign code ended: it answered, it answered an error, it hung and was killed, it
died by a signal, there was nothing to ask, or it was not asked."""


@model
class Reading:
    """One reading of a value, and the place it was read at."""

    value: str
    via: str


@model
class Os:
    """The operating system that processes here see (inside a container: the container's)."""

    id: str | None = None
    version: str | None = None
    name: str | None = None
    codename: str | None = None
    like: tuple[str, ...] = ()
    kernel: str | None = None
    machine: str | None = None
    glibc: str | None = None


@model
class ProbeAnswer:
    """What a piece of NVIDIA's software answered when asked.

    `code` is the library's own error number (NVML 18, CUDA 803) or a process's exit status;
    `message` its own words, first line.
    """

    outcome: Outcome = "not-asked"
    code: int | None = None
    message: str | None = None
    path: str | None = None


@model
class SystemPackage:
    """A package of the distribution that belongs to NVIDIA's stack."""

    name: str
    version: str
    state: str = "installed"


@model
class DkmsModule:
    """State of one DKMS module for one kernel."""

    name: str
    version: str
    kernel: str | None = None
    state: str = "unknown"


@model
class Driver:
    """The NVIDIA driver: the loaded kernel module, and the user-space libraries beside it."""

    version: str | None = None
    """Best single answer: the loaded module's version, else the user-space one."""
    module_version: str | None = None
    """Release of the kernel module that is loaded now."""
    userspace_version: str | None = None
    """Release of the libcuda/NVML files that processes would load (cuda-compat left out)."""
    readings: tuple[Reading, ...] = ()
    """Every version reading, in order of trust."""
    cuda: str | None = None
    """CUDA interface version (`13.0`) of the driver itself, cuda-compat left out where known."""
    cuda_readings: tuple[Reading, ...] = ()
    open_module: bool | None = None
    module_loaded: bool | None = None
    uvm_loaded: bool | None = None
    installed: bool | None = None
    """Driver files or packages are on disk, loaded or not."""
    nvml: ProbeAnswer = ProbeAnswer()
    libcuda: ProbeAnswer = ProbeAnswer()
    smi: ProbeAnswer = ProbeAnswer()
    compat_path: str | None = None
    """The cuda-compat libcuda that the loader would take instead of the driver's own."""
    compat_version: str | None = None
    packages: tuple[SystemPackage, ...] | None = None
    dkms: tuple[DkmsModule, ...] | None = None
    module_file: str | None = None
    """A module file for the running kernel lies under /lib/modules."""
    secure_boot: bool | None = None
    lockdown: str | None = None
    nouveau_loaded: bool | None = None
    kernel_log: tuple[str, ...] | None = None
    """Kernel log lines that speak of NVIDIA's driver or its PCI devices; None: not readable."""


@model
class GpuProcess:
    """A process that holds memory of a GPU."""

    pid: int
    name: str | None = None
    memory_bytes: int | None = None


@model
class Gpu:
    """One GPU as the driver reports it."""

    index: int
    name: str | None = None
    arch: str | None = None
    """Compute capability, `9.0`."""
    bus_id: str | None = None
    """`0000:06:00.0`, lower case, four-digit domain."""
    memory_total_bytes: int | None = None
    memory_used_bytes: int | None = None
    mig: bool | None = None
    mig_instances: int | None = None
    compute_mode: (
        Literal["default", "exclusive-thread", "prohibited", "exclusive-process"] | None
    ) = None
    persistence: bool | None = None
    ecc: bool | None = None
    ecc_uncorrected: int | None = None
    """Uncorrectable memory errors since the driver was loaded."""
    retired_pages_pending: bool | None = None
    remap_pending: bool | None = None
    remap_failed: bool | None = None
    throttle_reasons: tuple[str, ...] = ()
    """`hw-thermal`, `sw-thermal`, `hw-power-brake`, `hw-slowdown`, `sw-power-cap`, `idle`, ..."""
    temperature_c: int | None = None
    power_watts: float | None = None
    power_limit_watts: float | None = None
    utilization_percent: int | None = None
    pcie_generation: int | None = None
    pcie_generation_max: int | None = None
    pcie_width: int | None = None
    pcie_width_max: int | None = None
    fabric_state: Literal["not-supported", "not-started", "in-progress", "completed"] | None = None
    fabric_status: int | None = None
    """NVML status of the fabric registration, 0 is success."""
    processes: tuple[GpuProcess, ...] | None = None
    error: str | None = None
    """What NVML said instead of answering for this GPU (`GPU is lost`)."""


@model
class PciDevice:
    """An NVIDIA display or 3D controller, or NVSwitch bridge, on the PCI bus."""

    address: str
    vendor: str = "10de"
    device: str | None = None
    class_code: str | None = None
    """`0300` VGA, `0302` 3D controller, `0680` bridge."""
    name: str | None = None
    kernel_driver: str | None = None
    """Module bound to the device: `nvidia`, `nouveau`, `vfio-pci`; empty when unbound."""
    link_speed: str | None = None


@model
class DeviceNode:
    """A device file of the driver and whether this user may open it."""

    path: str
    readable: bool | None = None
    writable: bool | None = None


@model
class Container:
    """The container that the probe ran in; `kind` is `none` on a plain host."""

    kind: str | None = None
    """none, docker, podman, containerd, kubernetes, lxc, apptainer, systemd-nspawn, unknown."""
    visible_devices: str | None = None
    driver_capabilities: str | None = None
    require_cuda: str | None = None
    libraries_injected: bool | None = None


@model
class Engine:
    """A container engine on this machine."""

    name: str
    version: str | None = None
    runtimes: tuple[str, ...] | None = None
    default_runtime: str | None = None
    hook_path: str | None = None
    desktop: bool | None = None
    rootless: bool | None = None
    cgroup_driver: str | None = None


@model
class Cdi:
    """CDI specifications found on disk."""

    paths: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    """Names such as `nvidia.com/gpu=all`."""
    missing_paths: tuple[str, ...] = ()
    """Host files that a specification mounts and that are not there: it is stale."""


@model
class FabricManager:
    """The daemon that sets up NVSwitch fabrics."""

    installed_version: str | None = None
    installed: bool | None = None
    running: bool | None = None


@model
class Tool:
    """A program that helps on GPU machines."""

    name: str
    path: str
    version: str | None = None


@model
class Host:
    """Everything about the machine that is not the Python environment."""

    os: Os = Os()
    wsl: int | None = None
    """0 not WSL, 1 or 2; None unknown."""
    jetson: str | None = None
    """L4T release (`36.4.0`) on a Jetson, else None."""
    virtual: str | None = None
    driver: Driver = Driver()
    gpus: tuple[Gpu, ...] | None = None
    pci: tuple[PciDevice, ...] | None = None
    nodes: tuple[DeviceNode, ...] | None = None
    container: Container = Container()
    engines: tuple[Engine, ...] | None = None
    cdi: Cdi | None = None
    toolkit_version: str | None = None
    """NVIDIA Container Toolkit."""
    fabric_manager: FabricManager = FabricManager()
    shm_bytes: int | None = None
    iommu_groups: int | None = None
    tools: tuple[Tool, ...] = ()
    kernel_command_line: str | None = None
