"""Hand-built snapshots for rule tests: a healthy machine, and copies of it with facts changed."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

from envcheck.model.environment import Environment, Framework, Package, Python
from envcheck.model.host import (
    Cdi,
    Container,
    DeviceNode,
    Driver,
    Engine,
    Gpu,
    Host,
    Os,
    PciDevice,
    ProbeAnswer,
    Reading,
)
from envcheck.model.snapshot import Snapshot

T = TypeVar("T")


def evolve(value: T, changes: dict[str, Any]) -> T:
    """Copy of a model with facts at dotted paths replaced.

    A number in a path is an index into a tuple: `host.gpus.0.arch`.
    """
    for path, new in changes.items():
        value = _replace(value, path.split("."), new)
    return value


def _replace(value: Any, path: list[str], new: Any) -> Any:
    if not path:
        return new
    head, *rest = path
    if isinstance(value, tuple):
        items = list(value)
        items[int(head)] = _replace(items[int(head)], rest, new)
        return tuple(items)
    return dataclasses.replace(value, **{head: _replace(getattr(value, head), rest, new)})


def gpu(index: int = 0, name: str = "NVIDIA H200", arch: str = "9.0", **facts: Any) -> Gpu:
    """A healthy idle GPU."""
    defaults: dict[str, Any] = {
        "bus_id": f"0000:{index + 1:02x}:00.0",
        "memory_total_bytes": 80 << 30,
        "memory_used_bytes": 1 << 20,
        "mig": False,
        "compute_mode": "default",
        "persistence": True,
        "ecc": True,
        "ecc_uncorrected": 0,
        "retired_pages_pending": False,
        "remap_pending": False,
        "remap_failed": False,
        "temperature_c": 38,
        "power_watts": 78.0,
        "power_limit_watts": 700.0,
        "utilization_percent": 0,
        "pcie_generation": 5,
        "pcie_generation_max": 5,
        "pcie_width": 16,
        "pcie_width_max": 16,
        "processes": (),
    }
    return Gpu(index=index, name=name, arch=arch, **{**defaults, **facts})


def torch(version: str = "2.11.0+cu130", **facts: Any) -> Framework:
    """A torch wheel as its own files describe it; CUDA from the local tag."""
    local = version.partition("+")[2]
    cuda = f"{local[2:-1]}.{local[-1]}" if local.startswith("cu") else None
    defaults: dict[str, Any] = {
        "cuda": cuda,
        "cpu_only": local == "cpu",
        "origin": "index",
        "platform": "linux_x86_64",
        "location": "~/venv/lib/python3.12/site-packages",
    }
    return Framework(name="torch", version=version, **{**defaults, **facts})


def machine(
    *,
    driver: str | None = "580.159.04",
    cuda: str | None = "13.0",
    gpus: tuple[Gpu, ...] | None = None,
    frameworks: tuple[Framework, ...] = (),
    packages: tuple[Package, ...] = (),
) -> Snapshot:
    """A healthy Ubuntu 24.04 host with a loaded driver and one GPU, in a virtual environment."""
    gpus = (gpu(),) if gpus is None else gpus
    return Snapshot(
        host=Host(
            os=Os(
                id="ubuntu",
                version="24.04",
                name="Ubuntu 24.04.3 LTS",
                codename="noble",
                like=("debian",),
                kernel="6.8.0-60-generic",
                machine="x86_64",
                glibc="2.39",
            ),
            wsl=0,
            driver=Driver(
                version=driver,
                module_version=driver,
                userspace_version=driver,
                readings=(Reading(value=driver, via="/sys/module/nvidia/version"),)
                if driver
                else (),
                cuda=cuda,
                cuda_readings=(Reading(value=cuda, via="NVML"),) if cuda else (),
                open_module=True,
                module_loaded=driver is not None,
                uvm_loaded=driver is not None,
                installed=driver is not None,
                nvml=ProbeAnswer(outcome="ok" if driver else "missing"),
                libcuda=ProbeAnswer(
                    outcome="ok" if driver else "missing", code=0 if driver else None
                ),
                smi=ProbeAnswer(outcome="ok" if driver else "missing", code=0 if driver else None),
                packages=(),
                dkms=(),
                secure_boot=False,
                nouveau_loaded=False,
                kernel_log=(),
            ),
            gpus=gpus,
            pci=tuple(
                PciDevice(
                    address=each.bus_id or "",
                    device="2335",
                    class_code="0302",
                    kernel_driver="nvidia" if driver else "",
                )
                for each in gpus
            ),
            nodes=tuple(
                DeviceNode(path=path, readable=True, writable=True)
                for path in (
                    *(f"/dev/nvidia{each.index}" for each in gpus),
                    "/dev/nvidiactl",
                    "/dev/nvidia-uvm",
                )
            )
            if driver
            else (),
            container=Container(kind="none"),
            engines=(
                Engine(name="docker", version="28.1.1", runtimes=("nvidia", "runc"), desktop=False),
            ),
            cdi=Cdi(),
            toolkit_version="1.17.8",
            shm_bytes=64 << 30,
        ),
        env=Environment(
            python=Python(
                version="3.12.3",
                executable="~/venv/bin/python",
                prefix="~/venv",
                kind="venv",
                manager="pip",
                externally_managed=False,
                implementation="cpython",
                tag="cp312",
                platform="linux_x86_64",
                libc="glibc 2.39",
                chosen_because="VIRTUAL_ENV",
            ),
            packages=packages
            or tuple(Package(name=each.name, version=each.version) for each in frameworks),
            frameworks=frameworks,
            libraries=(),
            shared_files=(),
            toolkits=(),
            compilers=(),
        ),
    )
