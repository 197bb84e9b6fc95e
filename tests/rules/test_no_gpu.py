"""no-gpu."""

from __future__ import annotations

from envcheck.model.environment import Toolkit
from envcheck.model.host import PciDevice, ProbeAnswer
from envcheck.model.snapshot import Gap
from tests.rules.asking import changed, only, open_checks, said
from tests.support import torch


def test_toolkit_and_cuda_build_on_a_machine_without_gpu_is_one_warning() -> None:
    snapshot = changed(
        {
            "env.toolkits": (Toolkit(version="13.0", root="/usr/local/cuda", nvcc=True),),
            "host.container.kind": "none",
        },
        driver=None,
        cuda=None,
        gpus=(),
        frameworks=(torch(),),
    )
    found = only(snapshot)
    assert (found.id, found.severity, found.component) == ("no-gpu", "warning", "driver")
    assert found.title == "No NVIDIA GPU is visible on this machine"
    assert [fix.commands for fix in found.fix] == [(), ("lspci -nn -d 10de:",)]
    assert ("CUDA builds installed", "torch 2.11.0+cu130") in [
        (each.label, each.value) for each in found.evidence
    ]


def test_an_nvswitch_or_an_audio_function_is_no_gpu() -> None:
    bridge = PciDevice(address="0000:05:00.0", class_code="0680")
    audio = PciDevice(address="0000:01:00.1", class_code="0403")
    snapshot = changed({"host.pci": (bridge, audio)}, driver=None, cuda=None, gpus=())
    assert said(snapshot) == [("no-gpu", "warning")]


def test_container_without_any_gpu_on_its_host() -> None:
    snapshot = changed({"host.container.kind": "docker"}, driver=None, cuda=None, gpus=())
    found = only(snapshot)
    assert found.id == "no-gpu"
    assert found.title == "No NVIDIA GPU is visible in this container"
    assert found.fix[1].commands == ("envcheck doctor",)


def test_wsl2_without_the_libraries_of_windows_is_no_gpu() -> None:
    found = only(changed({"host.wsl": 2}, driver=None, cuda=None, gpus=()))
    assert found.id == "no-gpu"
    assert found.fix[1].commands == ("wsl --shutdown",)


def test_unreadable_bus_is_unknown_not_absent() -> None:
    snapshot = changed(
        {
            "host.pci": None,
            "host.nodes": None,
            "host.gpus": None,
            "host.driver.nvml": ProbeAnswer(),
            "host.driver.libcuda": ProbeAnswer(),
            "host.driver.smi": ProbeAnswer(),
            "gaps": (Gap(path="host.pci", reason="/sys is not mounted"),),
        },
        driver=None,
        cuda=None,
    )
    assert said(snapshot) == []
    assert open_checks(snapshot) == ["no-gpu"]


def test_driver_that_hangs_is_not_a_missing_gpu() -> None:
    snapshot = changed(
        {
            "host.pci": None,
            "host.driver.nvml": ProbeAnswer(outcome="timeout"),
            "host.driver.libcuda": ProbeAnswer(outcome="timeout"),
        },
        gpus=(),
    )
    assert "no-gpu" not in [name for name, _ in said(snapshot)]


def test_gpu_that_only_the_driver_sees_counts() -> None:
    assert said(changed({"host.pci": ()})) == []


def test_device_files_left_behind_by_a_gpu_that_is_gone() -> None:
    facts = {
        "host.gpus": (),
        "host.pci": (),
        "host.driver.libcuda": ProbeAnswer(outcome="error", code=100),
    }
    assert said(changed(facts)) == [("no-gpu", "warning")]
