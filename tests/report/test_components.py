"""The component table: found, not found, or unknown with the reason."""

from __future__ import annotations

from typing import Any

import pytest

from envcheck.model.environment import Environment, Framework, Library, Python
from envcheck.model.host import Cdi, Container, Engine, Os, PciDevice
from envcheck.model.snapshot import Gap, Snapshot
from envcheck.report.components import Row, components
from tests.support import evolve, gpu, machine, torch


def row(snapshot: Snapshot, name: str) -> Row:
    """The row of one component."""
    (found,) = (each for each in components(snapshot) if each.name == name)
    return found


def test_nothing_known_says_unknown_everywhere() -> None:
    rows = components(Snapshot(gaps=(Gap(path="host.gpus", reason="NVML: timeout"),)))
    assert {each.state for each in rows} == {"unknown"}
    assert {each.text for each in rows} == {"unknown: not read", "unknown: NVML: timeout"}


def test_an_empty_machine_says_not_found() -> None:
    bare = evolve(
        machine(driver=None, cuda=None, gpus=()), {"host.engines": (), "host.toolkit_version": None}
    )
    absent = [each.name for each in components(bare) if each.text == "not found"]
    assert absent == [
        "NVIDIA driver",
        "GPUs",
        "CUDA driver API",
        "CUDA toolkits",
        "Frameworks",
        "cuDNN",
        "NCCL",
        "Container runtime",
    ]


@pytest.mark.parametrize(
    ("changes", "name", "text"),
    [
        ({"host.os": Os(kernel="6.8")}, "OS", "unknown distribution, kernel 6.8"),
        (
            {"host.wsl": 2},
            "OS",
            "Ubuntu 24.04.3 LTS, kernel 6.8.0-60-generic, x86_64, glibc 2.39, WSL 2",
        ),
        (
            {"host.driver.userspace_version": "580.65.06"},
            "NVIDIA driver",
            "580.159.04 (open kernel module, module 580.159.04, libraries 580.65.06)",
        ),
        (
            {"host.driver.module_loaded": False, "host.driver.module_version": None},
            "NVIDIA driver",
            "580.159.04 (kernel module not loaded)",
        ),
        (
            {"host.driver.version": None, "gaps": (Gap(path="host.driver", reason="refused"),)},
            "NVIDIA driver",
            "installed, version unknown: refused",
        ),
        (
            {"host.gpus": (gpu(mig=True), gpu(1, error="GPU is lost"))},
            "GPUs",
            "NVIDIA H200 (compute capability 9.0, 80.0 GiB, MIG);"
            " NVIDIA H200 (compute capability 9.0, 80.0 GiB, error: GPU is lost)",
        ),
        (
            {
                "host.gpus": (),
                "host.pci": (
                    PciDevice(address="0000:01:00.0", class_code="0302", name="H200"),
                    PciDevice(address="0000:02:00.0", class_code="0680", name="NVSwitch"),
                ),
            },
            "GPUs",
            "on the PCI bus: H200; none through the driver",
        ),
        (
            {"host.driver.compat_path": "/c/libcuda.so.1", "host.driver.compat_version": "13.1"},
            "CUDA driver API",
            "13.0 (cuda-compat 13.1 at /c/libcuda.so.1)",
        ),
        (
            {"host.driver.cuda": None, "gaps": (Gap(path="host.driver.cuda", reason="error 999"),)},
            "CUDA driver API",
            "unknown: error 999",
        ),
        (
            {
                "env.frameworks": (
                    torch("2.13.0+cpu"),
                    torch("2.5.1", cuda="12.4", origin="conda-forge"),
                    Framework(name="jax", version="0.6.0"),
                    torch("2.8.0+rocm6.4", cuda=None, hip="6.4"),
                )
            },
            "Frameworks",
            "torch 2.13.0+cpu (CPU only); torch 2.5.1 (CUDA 12.4, from conda-forge);"
            " jax 0.6.0 (CUDA build unknown); torch 2.8.0+rocm6.4 (ROCm 6.4)",
        ),
        (
            {
                "env.libraries": (
                    Library(name="nccl", soname="libnccl.so.2", path="/usr/lib/libnccl.so.2"),
                )
            },
            "NCCL",
            "unknown version (other: /usr/lib/libnccl.so.2)",
        ),
        (
            {"env.libraries": None, "env.frameworks": (torch(cudnn="9.13.0"),)},
            "cuDNN",
            "unknown: not read; 9.13.0 pinned by torch 2.11.0+cu130",
        ),
        ({"env.python": Python(error="it hangs")}, "Python", "unknown: it hangs"),
        (
            {"env.python": Python(prefix="~/venv", error="its link is broken")},
            "Python",
            "unknown version at ~/venv; could not be read: its link is broken",
        ),
        (
            {"host.container": Container(kind="docker", visible_devices="all")},
            "Container",
            "inside docker (NVIDIA_VISIBLE_DEVICES=all)",
        ),
        (
            {
                "host.engines": (
                    Engine(name="docker", desktop=True),
                    Engine(name="podman", version="5.4", rootless=True),
                ),
                "host.toolkit_version": None,
                "host.cdi": Cdi(devices=("nvidia.com/gpu=all",)),
            },
            "Container runtime",
            "docker (Docker Desktop); podman 5.4 (rootless); CDI: nvidia.com/gpu=all",
        ),
    ],
)
def test_a_row_says_what_is_known(changes: dict[str, Any], name: str, text: str) -> None:
    assert row(evolve(machine(), changes), name).text == text


def test_a_plain_host_has_no_container_row() -> None:
    assert "Container" not in [each.name for each in components(machine())]


def test_an_environment_that_was_not_read_is_unknown_for_its_reason() -> None:
    snapshot = Snapshot(
        env=Environment(), gaps=(Gap(path="env.python", reason="python3 does not start"),)
    )
    for name in ("Frameworks", "cuDNN", "Python"):
        assert row(snapshot, name).text == "unknown: python3 does not start"
