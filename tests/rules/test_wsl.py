"""wsl-gpu-unavailable, wsl-linux-driver."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from envcheck.model.host import ProbeAnswer, SystemPackage
from tests.rules.asking import changed, only, said
from tests.support import torch

if TYPE_CHECKING:
    from envcheck.model.snapshot import Snapshot

WINDOWS = ProbeAnswer(outcome="ok", code=0, path="/usr/lib/wsl/lib/libcuda.so.1")


def wsl(changes: dict[str, Any]) -> Snapshot:
    """Ubuntu under WSL 2 with the libraries of Windows."""
    return changed(
        {
            "host.wsl": 2,
            "host.pci": (),
            "host.nodes": (),
            "host.engines": (),
            "host.driver.module_loaded": False,
            "host.driver.module_version": None,
            "host.driver.libcuda": WINDOWS,
            **changes,
        },
        frameworks=(torch(),),
    )


def test_working_wsl_is_quiet() -> None:
    assert said(wsl({})) == []


def test_wsl1() -> None:
    found = only(wsl({"host.wsl": 1, "host.gpus": (), "host.driver.installed": False}))
    assert (found.id, found.severity) == ("wsl-gpu-unavailable", "error")
    assert found.fix[0].commands == ("wsl --set-version <distribution> 2",)


def test_libraries_are_there_but_do_not_start() -> None:
    found = only(
        wsl(
            {
                "host.gpus": (),
                "host.driver.nvml": ProbeAnswer(outcome="error", code=9),
                "host.driver.libcuda": ProbeAnswer(
                    outcome="error", code=2, message="out of memory"
                ),
                "host.driver.smi": ProbeAnswer(outcome="error", code=9),
            }
        )
    )
    assert (found.id, found.severity) == ("wsl-gpu-unavailable", "error")
    assert found.fix[0].commands == ("wsl --update", "wsl --shutdown")


def test_linux_driver_that_breaks_cuda() -> None:
    found = only(
        wsl(
            {
                "host.gpus": (),
                "host.driver.packages": (
                    SystemPackage(name="nvidia-driver-550", version="550.120"),
                    SystemPackage(name="libnvidia-compute-550", version="550.120"),
                ),
                "host.driver.nvml": ProbeAnswer(outcome="error", code=9),
                "host.driver.libcuda": ProbeAnswer(
                    outcome="error", code=100, path="/usr/lib/x86_64-linux-gnu/libcuda.so.1"
                ),
                "host.driver.smi": ProbeAnswer(outcome="error", code=9),
            }
        )
    )
    assert (found.id, found.severity) == ("wsl-linux-driver", "error")
    assert found.consequences == ("wsl-gpu-unavailable",)
    assert found.fix[0].commands == (
        "sudo apt-get purge -y nvidia-driver-550 libnvidia-compute-550",
    )


def test_package_beside_the_libraries_of_windows_that_win_is_information() -> None:
    package = SystemPackage(name="libnvidia-compute-550", version="550.120")
    assert said(wsl({"host.driver.packages": (package,)})) == [("wsl-linux-driver", "info")]


def test_toolkit_packages_may_stay() -> None:
    package = SystemPackage(name="nvidia-cuda-toolkit", version="12.0")
    assert said(wsl({"host.driver.packages": (package,)})) == []
