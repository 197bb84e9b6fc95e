"""container-without-gpu, driver-capabilities-missing, container-device-access-lost, shm-too-small.

What can be wrong inside a container of a host whose driver works.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.model.finding import Evidence
from envcheck.rules import engines, facts
from envcheck.rules.base import finding, rule

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.model.snapshot import Snapshot
    from envcheck.rules.base import Answer

NOTHING = frozenset({"", "void", "none"})
"""Values of NVIDIA_VISIBLE_DEVICES that ask for no GPU."""

NO_PERMISSION = 4
UNKNOWN_ERROR = 999

SHM = "/dev/shm"  # the shared memory itself is the subject

DEFAULT_SHM_BYTES = 64 << 20
"""What container engines give to /dev/shm when nothing else is asked for."""


def _inside(snapshot: Snapshot) -> bool:
    return facts.in_container(snapshot) and facts.discrete(snapshot)


def _asked_for_gpus(snapshot: Snapshot) -> bool:
    value = snapshot.host.container.visible_devices
    return value is not None and value not in NOTHING


def _host_has_driver(snapshot: Snapshot) -> bool:
    """The kernel, which container and host share, holds the nvidia module."""
    driver = snapshot.host.driver
    return (
        driver.module_loaded is True
        or driver.module_version is not None
        or bool(facts.gpu_nodes(snapshot))
    )


def _variables(snapshot: Snapshot) -> tuple[Evidence, ...]:
    container = snapshot.host.container
    values = (
        ("NVIDIA_VISIBLE_DEVICES", container.visible_devices),
        ("NVIDIA_DRIVER_CAPABILITIES", container.driver_capabilities),
    )
    return tuple(
        Evidence(label=name, value=value or "(empty)", via="environment variable")
        for name, value in values
        if value is not None
    )


def _got_nothing(snapshot: Snapshot) -> bool:
    """No device file of a GPU, or no driver library at all, while the host's module is loaded."""
    driver = snapshot.host.driver
    no_libraries = driver.nvml.outcome == "missing" and driver.libcuda.outcome in {
        "missing",
        "not-asked",
    }
    return (
        _inside(snapshot)
        and _host_has_driver(snapshot)
        and not facts.gpus(snapshot)
        and not facts.cuda_ok(snapshot)
        and (facts.missing_nodes(snapshot) or no_libraries)
    )


@rule(
    "container-without-gpu",
    component="container",
    when=_got_nothing,
    explains=(
        *(each for each in facts.AFTER_DRIVER if each != "container-without-gpu"),
        "driver-not-loaded",
        "driver-library-mismatch",
    ),
)
def container_without_gpu(snapshot: Snapshot, _matrix: Matrix) -> Answer:
    """A container on a GPU host was started with its GPUs.

    An error when the container holds a CUDA build or asked for GPUs, else a warning: a container
    may be meant for the CPU.

    Why: device files and driver libraries are put into a container only when it is started with
    GPUs. `--privileged` alone brings device files, but no libraries.

    Fix: start it anew with the flag of its engine.
    """
    nodes = not facts.missing_nodes(snapshot)
    found = (
        "device files, but no driver libraries" if nodes else "no device files of a GPU"
    ) + " in this container"
    yield finding(
        "container-without-gpu",
        "error" if facts.needs_gpu(snapshot) or _asked_for_gpus(snapshot) else "warning",
        "container",
        f"{snapshot.host.container.kind} container",
        "This container was started without the host's GPUs",
        found=found,
        needed="GPUs given to the container when it is started",
        why="The host's kernel has the NVIDIA driver, but nothing of it was put into this "
        "container.",
        fix=engines.with_gpu(snapshot),
        evidence=(
            Evidence(
                label="nvidia module of the host",
                value=snapshot.host.driver.module_version or "loaded",
                via="/proc/driver/nvidia/version",
            ),
            *_variables(snapshot),
            *facts.answers(snapshot),
        ),
    )


def _no_compute(snapshot: Snapshot) -> bool:
    container = snapshot.host.container
    capabilities = {c.strip() for c in (container.driver_capabilities or "").split(",")}
    return (
        _inside(snapshot)
        and bool(container.driver_capabilities)
        and not capabilities & {"compute", "all"}
        and snapshot.host.driver.libcuda.outcome == "missing"
    )


@rule(
    "driver-capabilities-missing",
    component="container",
    when=_no_compute,
    explains=(
        *facts.AFTER_DRIVER,
        "cuda-libraries-missing",
        "driver-missing",
    ),
)
def driver_capabilities_missing(snapshot: Snapshot, _matrix: Matrix) -> Answer:
    """The container asked for the driver's compute libraries.

    Why: NVIDIA_DRIVER_CAPABILITIES names what the toolkit mounts. Without `compute`, libcuda is
    left out, although nvidia-smi may work.

    Fix: name compute as well.
    """
    value = snapshot.host.container.driver_capabilities or ""
    wanted = ",".join(dict.fromkeys((*value.split(","), "compute", "utility")))
    yield finding(
        "driver-capabilities-missing",
        "error",
        "container",
        f"NVIDIA_DRIVER_CAPABILITIES={value}",
        "The container did not ask for the driver's compute libraries",
        found=f"NVIDIA_DRIVER_CAPABILITIES={value}, no libcuda",
        needed=f"NVIDIA_DRIVER_CAPABILITIES={wanted}",
        why="libcuda is mounted into a container only for the capability compute.",
        fix=engines.with_gpu(snapshot, f"NVIDIA_DRIVER_CAPABILITIES={wanted}"),
        evidence=(*_variables(snapshot), *facts.answers(snapshot)),
    )


def _refused(snapshot: Snapshot) -> bool:
    """Device files are there, the libraries too, but the device cannot be opened."""
    nvml = snapshot.host.driver.nvml
    refused = nvml.outcome == "error" and (
        nvml.code in {NO_PERMISSION, UNKNOWN_ERROR}
        or any(w in (nvml.message or "").lower() for w in ("unknown error", "permission"))
    )
    cuda_closed = bool(facts.closed_nodes(snapshot)) and (
        snapshot.host.driver.libcuda.outcome == "error"
    )
    return (
        _inside(snapshot)
        and bool(snapshot.host.nodes)
        and not facts.missing_nodes(snapshot)
        and not facts.cuda_ok(snapshot)
        and (refused or cuda_closed)
    )


@rule(
    "container-device-access-lost",
    component="container",
    when=_refused,
    explains=(
        *(each for each in facts.AFTER_DRIVER if each != "container-device-access-lost"),
        "driver-not-loaded",
        "gpu-init-failed",
    ),
)
def container_device_access_lost(snapshot: Snapshot, _matrix: Matrix) -> Answer:
    """The container may open the device files that it has.

    Why: the container's device control group lost its rules for the GPU. It happens while it runs:
    systemd rewrites the rules on daemon-reload, and knows nothing of devices that a hook added.
    SELinux or a user who may not open the files looks the same.

    Fix: restart the container. To keep it from happening: pass GPUs by CDI, or let the engine name
    the devices.
    """
    closed = facts.closed_nodes(snapshot)
    yield finding(
        "container-device-access-lost",
        "error",
        "container",
        f"{snapshot.host.container.kind} container",
        "This container has device files of the GPU but may not open them",
        found=f"NVML: {facts.said(snapshot.host.driver.nvml)}"
        if snapshot.host.driver.nvml.outcome == "error"
        else f"not accessible: {', '.join(closed)}",
        needed="device access, as it was when the container started",
        why="The rules that let this container use the GPU are gone, most often because systemd "
        "reloaded its units while it ran. The host's driver is not affected.",
        fix=engines.regain_access(snapshot),
        evidence=(
            *(Evidence(label=path, value="not accessible", via="access") for path in closed),
            *facts.answers(snapshot),
        ),
    )


def _small_shm(snapshot: Snapshot) -> bool:
    size = snapshot.host.shm_bytes
    return (
        facts.in_container(snapshot)
        and size is not None
        and size <= DEFAULT_SHM_BYTES
        and bool(facts.gpus(snapshot))
        and (len(facts.gpus(snapshot)) > 1 or facts.has_torch(snapshot))
    )


@rule("shm-too-small", component="container", when=_small_shm)
def shm_too_small(snapshot: Snapshot, _matrix: Matrix) -> Answer:
    """A container with several GPUs or torch has more shared memory than the engine's default.

    Why: NCCL and the worker processes of data loaders pass data through /dev/shm. At the default
    size they fail with a bus error or "no space left on device" once there is enough of it.

    Fix: more shared memory when the container is started.
    """
    size = snapshot.host.shm_bytes or 0
    yield finding(
        "shm-too-small",
        "warning",
        "container",
        SHM,
        f"{SHM} is too small for NCCL and for data-loader workers",
        found=f"{size / (1 << 20):.0f} MiB",
        needed="several GiB, more with more GPUs and workers",
        why="NCCL and data-loader workers exchange data through /dev/shm and fail when it is full.",
        fix=engines.more_shm(snapshot),
        evidence=(
            Evidence(label=SHM, value=f"{size / (1 << 20):.0f} MiB", via="statvfs"),
            Evidence(label="GPUs", value=str(len(facts.gpus(snapshot))), via="NVML"),
        ),
    )
