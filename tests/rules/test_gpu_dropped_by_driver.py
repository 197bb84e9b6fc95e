"""gpu-dropped-by-driver, gpu-needs-newer-driver, driver-flavour-wrong, driver-branch-ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from envcheck.model.host import PciDevice, ProbeAnswer, SystemPackage
from tests.rules.asking import changed, only, said
from tests.support import gpu

if TYPE_CHECKING:
    from envcheck.model.snapshot import Snapshot


def card(device: str, address: str = "0000:01:00.0", driver: str = "") -> PciDevice:
    """A GPU on the bus by its device id."""
    return PciDevice(address=address, device=device, class_code="0300", kernel_driver=driver)


RTX_3090, GTX_1080_TI, RTX_5090, K80 = "2204", "1b06", "2b85", "102d"


def refused(device: str, version: str, **changes: Any) -> Snapshot:
    """A machine whose installed driver does not take its only GPU: nothing stays loaded."""
    return changed(
        {
            "taken_at": "2026-11-30T10:00:00Z",
            "host.pci": (card(device),),
            "host.gpus": (),
            "host.nodes": (),
            "host.driver.installed": True,
            "host.driver.module_loaded": False,
            "host.driver.module_version": None,
            "host.driver.module_file": "/lib/modules/6.8.0-60-generic/nvidia.ko",
            "host.driver.nvml": ProbeAnswer(outcome="error", code=9),
            "host.driver.libcuda": ProbeAnswer(outcome="error", code=100),
            "host.driver.smi": ProbeAnswer(outcome="error", code=9),
            **{key.replace("__", "."): value for key, value in changes.items()},
        },
        driver=version,
    )


@pytest.mark.parametrize(
    ("device", "version", "last"), [(GTX_1080_TI, "595.58.03", "580"), (K80, "535.183.06", "470")]
)
def test_branch_that_dropped_the_gpu(device: str, version: str, last: str) -> None:
    found = only(refused(device, version))
    assert (found.id, found.severity) == ("gpu-dropped-by-driver", "error")
    assert found.needed == f"branch {last}, the last one for this GPU"
    assert "driver-not-loaded" in found.consequences
    commands = [c for fix in found.fix for c in fix.commands]
    assert any(last in c for c in commands)


def test_the_driver_names_its_legacy_branch_itself() -> None:
    line = (
        "NVRM: The NVIDIA Tesla M2070 GPU installed in this system is supported through the "
        "NVIDIA 390.xx Legacy drivers."
    )
    found = only(refused("06d2", "396.26", host__driver__kernel_log=(line,)))
    assert found.id == "gpu-dropped-by-driver"
    assert found.needed == "branch 390, the last one for this GPU"


def test_old_display_card_beside_a_working_gpu_is_a_warning() -> None:
    old = card(GTX_1080_TI, "0000:41:00.0")
    snapshot = changed({"host.pci": (card(RTX_3090, driver="nvidia"), old)}, driver="595.58.03")
    assert said(snapshot) == [("gpu-dropped-by-driver", "warning")]


@pytest.mark.parametrize("version", ["535.183.06", "550.54.14"])
def test_gpu_that_is_newer_than_the_driver(version: str) -> None:
    found = only(refused(RTX_5090, version))
    assert (found.id, found.severity) == ("gpu-needs-newer-driver", "error")
    assert found.needed == "branch 570 or newer"


def test_proprietary_modules_on_a_gpu_that_needs_the_open_ones() -> None:
    found = only(
        refused(
            RTX_5090,
            "580.95.05",
            host__driver__open_module=None,
            host__driver__packages=(SystemPackage(name="nvidia-driver-580", version="580.95.05"),),
        )
    )
    assert (found.id, found.severity) == ("driver-flavour-wrong", "error")
    assert found.found == "driver 580.95.05 with proprietary kernel modules"


def test_open_modules_on_a_gpu_before_turing() -> None:
    found = only(
        refused(
            GTX_1080_TI,
            "580.95.05",
            host__driver__packages=(SystemPackage(name="nvidia-driver-580-open", version="580"),),
        )
    )
    assert (found.id, found.severity) == ("driver-flavour-wrong", "error")
    assert found.needed == "the proprietary kernel modules of the same branch"


def test_the_driver_asks_for_the_open_modules_itself() -> None:
    line = (
        "NVRM: installed in this system requires use of the NVIDIA open kernel modules. "
        "NVRM: GPU 0000:01:00.0: RmInitAdapter failed! (0x22:0x56:884)"
    )
    found = only(
        refused(
            RTX_5090, "580.95.05", host__driver__open_module=None, host__driver__kernel_log=(line,)
        )
    )
    assert found.id == "driver-flavour-wrong"


@pytest.mark.parametrize(
    ("device", "name", "arch", "version"),
    [
        (GTX_1080_TI, "NVIDIA GeForce GTX 1080 Ti", "6.1", "580.95.05"),
        (RTX_5090, "NVIDIA GeForce RTX 5090", "12.0", "570.86.10"),
        (RTX_3090, "NVIDIA GeForce RTX 3090", "8.6", "620.43"),
        (GTX_1080_TI, "NVIDIA GeForce GTX 1080 Ti", "6.1", "999.1"),
    ],
)
def test_gpu_that_the_driver_reports_is_never_judged(
    device: str, name: str, arch: str, version: str
) -> None:
    seen = (gpu(0, name, arch, bus_id="0000:01:00.0"),)
    snapshot = changed(
        {"host.pci": (card(device, driver="nvidia"),), "host.gpus": seen}, driver=version
    )
    assert said(snapshot) == []


def test_unknown_device_is_not_guessed() -> None:
    assert said(refused("ffff", "595.58.03")) == [("driver-not-loaded", "error")]


@pytest.mark.parametrize(
    ("version", "day", "expected"),
    [
        ("535.183.06", "2026-11-30", [("driver-branch-ended", "warning")]),
        ("535.183.06", "2026-06-30", []),
        ("550.54.14", "2026-11-30", [("driver-branch-ended", "info")]),
        ("610.47", "2026-11-30", [("driver-branch-ended", "info")]),
        ("580.159.04", "2026-11-30", []),
        ("999.1", "2026-11-30", []),
    ],
)
def test_end_of_a_branch(version: str, day: str, expected: list[tuple[str, str]]) -> None:
    assert said(changed({"taken_at": f"{day}T10:00:00Z"}, driver=version)) == expected


def test_without_a_day_nothing_has_ended() -> None:
    assert said(changed({}, driver="535.183.06")) == []
