"""The hypothetical machine that candidates are judged on: a target, as a healthy host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.matrix import query
from envcheck.matrix.schema import CudaToolkit, PciGpu
from envcheck.model.environment import Environment, Python
from envcheck.model.host import (
    Container,
    DeviceNode,
    Driver,
    Gpu,
    Host,
    Os,
    PciDevice,
    ProbeAnswer,
    Reading,
)
from envcheck.model.snapshot import Snapshot
from envcheck.versions import Release

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.model.plan import Target

HOST_FINDINGS = ("gpu-dropped-by-driver", "gpu-needs-newer-driver", "driver-flavour-wrong")
"""What is wrong between a driver and the GPUs, whatever stack there is."""


def hypothetical(matrix: Matrix, target: Target, machine: Snapshot | None = None) -> Snapshot:
    """A healthy machine like a target, with an empty environment.

    Args:
        matrix: the tables.
        target: GPUs, driver, system, Python.
        machine: the real machine behind the target, where there is one: what else decides is taken
            from it (WSL, Jetson, C library, the driver's own CUDA), but none of its faults.
    """
    host = machine.host if machine is not None else None
    row = next((r for r in matrix.distros if f"{r.id}{r.version}" == target.os), None)
    glibc = host.os.glibc if host is not None and host.os.glibc else row.glibc if row else None
    gpus = _gpus(matrix, target)
    driver = _driver(matrix, target, machine)
    tegra = any(
        (known := query.capability(matrix, cc)) is not None and known.tegra for cc in target.arches
    )
    return Snapshot(
        source="plan",
        host=Host(
            os=Os(
                id=host.os.id if host else row.id if row else None,
                version=host.os.version if host else row.version if row else None,
                like=host.os.like if host else (),
                machine=target.platform.removeprefix("linux_"),
                kernel=host.os.kernel if host else None,
                glibc=glibc,
            ),
            wsl=host.wsl if host is not None else 0,
            jetson=(host.jetson if host is not None else None) or ("" if tegra else None),
            driver=driver,
            gpus=gpus if gpus or not wants_gpu(target) else None,
            pci=() if tegra else _pci(matrix, gpus) if gpus or not wants_gpu(target) else None,
            nodes=tuple(
                DeviceNode(path=path, readable=True, writable=True)
                for path in (
                    *(f"/dev/nvidia{each.index}" for each in gpus),
                    "/dev/nvidiactl",
                    "/dev/nvidia-uvm",
                )
            )
            if gpus
            else (),
            container=Container(kind="none"),
        ),
        env=Environment(
            python=Python(
                implementation="cpython",
                kind="venv",
                manager="pip",
                externally_managed=False,
                platform=target.platform,
                libc=f"glibc {glibc}" if glibc else None,
            ),
            packages=(),
            frameworks=(),
            libraries=(),
            shared_files=(),
            toolkits=(),
            compilers=(),
        ),
    )


def wants_gpu(target: Target) -> bool:
    """Whether a stack for a target is to use a GPU, named or not; else a CPU stack is planned."""
    return bool(target.gpus or target.arches or target.driver)


def _gpus(matrix: Matrix, target: Target) -> tuple[Gpu, ...]:
    """GPUs by name, then one for each capability that no name stands for."""
    pairs: list[tuple[str | None, str | None]] = []
    for name in target.gpus:
        row = query.product(matrix, name)
        only = target.arches[0] if len(target.arches) == 1 else None
        pairs.append((name, row.cc if row is not None else only))
    named = {cc for _, cc in pairs}
    pairs += [(None, cc) for cc in target.arches if cc not in named]
    return tuple(
        Gpu(index=at, name=name, arch=cc, bus_id=f"0000:{at + 1:02x}:00.0")
        for at, (name, cc) in enumerate(pairs)
    )


def _driver(matrix: Matrix, target: Target, machine: Snapshot | None) -> Driver:
    if target.driver is None:
        return Driver()
    version = newest_of_branch(matrix, target.driver)
    real = machine.host.driver if machine is not None else None
    cuda = real.cuda if real is not None and real.compat_path is None else None
    ok = ProbeAnswer(outcome="ok", code=0)
    return Driver(
        version=version,
        module_version=version,
        userspace_version=version,
        readings=(Reading(value=version, via="target"),),
        cuda=cuda,
        cuda_readings=(Reading(value=cuda, via="machine"),) if cuda else (),
        module_loaded=True,
        uvm_loaded=True,
        installed=True,
        nvml=ok,
        smi=ok,
        packages=(),
        kernel_log=(),
    )


def newest_of_branch(matrix: Matrix, driver: str) -> str:
    """A driver's release; for a branch alone, its newest release that the tables name."""
    if "." in driver:
        return driver
    known = [text for text in matrix.values(CudaToolkit, "driver_linux") if text]
    known += [row.driver_linux for row in matrix.minor_floors]
    releases = [each for text in known if (each := Release.parse(text)).major == int(driver)]
    return max(releases).text if releases else driver


def _pci(matrix: Matrix, gpus: tuple[Gpu, ...]) -> tuple[PciDevice, ...]:
    """The GPUs on the bus; any device of the same capability stands for one."""
    ids = matrix.memo(
        "planner.pci",
        lambda: dict(
            zip(
                reversed(matrix.values(PciGpu, "cc")),
                reversed(matrix.values(PciGpu, "id")),
                strict=True,
            )
        ),
    )
    return tuple(
        PciDevice(
            address=gpu.bus_id or "",
            device=ids.get(gpu.arch),
            class_code="0302",
            name=gpu.name,
            kernel_driver="nvidia",
        )
        for gpu in gpus
    )
