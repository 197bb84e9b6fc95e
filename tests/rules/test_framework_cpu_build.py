"""framework-cpu-build."""

from __future__ import annotations

import pytest

from envcheck.model.host import PciDevice
from tests.rules.stack import card, commands, only, said, unknowns
from tests.support import evolve, machine, torch


def test_cpu_wheel_on_a_gpu_machine() -> None:
    """The newest variant of the same version that driver and GPU run, as a command."""
    found = only(machine(frameworks=(torch("2.11.0+cpu"),)))
    assert (found.id, found.severity, found.subject) == (
        "framework-cpu-build",
        "error",
        "torch 2.11.0+cpu",
    )
    assert commands(found) == [
        '~/venv/bin/python -m pip install --force-reinstall "torch==2.11.0" '
        "--index-url https://download.pytorch.org/whl/cu130"
    ]


def test_the_variant_follows_the_gpu() -> None:
    """A Pascal card gets cu126, whatever the driver could run."""
    found = only(
        machine(gpus=card("NVIDIA GeForce GTX 1080 Ti", "6.1"), frameworks=(torch("2.8.0+cpu"),))
    )
    assert commands(found)[0].endswith("/cu126")


def test_conda_forge() -> None:
    """Conda installs the CUDA build of the same version."""
    cpu = torch("2.8.0", cpu_only=True, origin="conda-forge")
    found = only(evolve(machine(frameworks=(cpu,)), {"env.python.prefix": "~/c/envs/w"}))
    assert commands(found) == ['conda install -p ~/c/envs/w -c conda-forge "pytorch=2.8.0=cuda*"']


@pytest.mark.parametrize("facts", [{"hip": "6.4.0"}, {"xpu": "20250101"}])
def test_builds_for_other_gpus_are_not_cpu_builds(facts: dict[str, str]) -> None:
    """ROCm and XPU builds have no CUDA and are no CPU builds."""
    assert said(machine(frameworks=(torch("2.8.0", cuda=None, cpu_only=True, **facts),))) == []


def test_no_gpu_no_finding() -> None:
    """A CPU build is right on a machine without a GPU."""
    assert said(machine(driver=None, cuda=None, gpus=(), frameworks=(torch("2.8.0+cpu"),))) == []


def test_a_gpu_that_no_build_supports_any_more() -> None:
    """A first Kepler card (GTX 680) on the bus does not make a CPU build wrong."""
    snapshot = evolve(
        machine(driver=None, cuda=None, gpus=(), frameworks=(torch("2.8.0+cpu"),)),
        {"host.pci": (PciDevice(address="0000:01:00.0", device="1180", class_code="0300"),)},
    )
    assert [severity for _id, severity in said(snapshot)] == ["info"]


def test_not_known_is_unknown() -> None:
    """Neither a CUDA release nor its absence could be read."""
    snapshot = machine(frameworks=(torch("2.8.0", cpu_only=None),))
    assert unknowns(snapshot) == [("framework-cpu-build", "missing")]
