"""Health of GPUs: bus, memory, Xids, clocks, links."""

from __future__ import annotations

import pytest

from envcheck.model.host import PciDevice, ProbeAnswer
from tests.rules.asking import changed, only, open_checks, said
from tests.support import gpu

XID79 = (
    "NVRM: Xid (PCI:0000:01:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
)


def test_gpu_fell_off_the_bus() -> None:
    found = only(
        changed(
            {
                "host.gpus": (gpu(1, bus_id="0000:02:00.0"),),
                "host.pci": (
                    PciDevice(address="0000:01:00.0", device="2335", class_code="0302"),
                    PciDevice(address="0000:02:00.0", device="2335", class_code="0302"),
                ),
                "host.driver.kernel_log": (XID79,),
            }
        )
    )
    assert (found.id, found.severity) == ("gpu-fell-off-bus", "error")
    assert found.consequences == ("gpu-missing-from-driver",)
    assert found.fix[0].commands == ("sudo reboot",)


def test_gpu_is_lost_by_nvml() -> None:
    found = only(changed({"host.gpus.0.error": "GPU is lost"}))
    assert (found.id, found.severity) == ("gpu-fell-off-bus", "error")
    assert found.subject == "GPU 0: NVIDIA H200"


def test_gpu_that_came_back_is_a_warning() -> None:
    assert said(changed({"host.driver.kernel_log": (XID79,)})) == [("gpu-fell-off-bus", "warning")]


INIT = (
    "NVRM: GPU 0000:01:00.0: RmInitAdapter failed! (0x22:0x56:884)",
    "NVRM: GPU 0000:01:00.0: rm_init_adapter failed, device minor number 0",
)


def test_gpu_that_does_not_start() -> None:
    found = only(
        changed(
            {
                "host.gpus": (),
                "host.driver.kernel_log": INIT,
                "host.driver.libcuda": ProbeAnswer(outcome="error", code=100),
                "host.driver.smi": ProbeAnswer(
                    outcome="error", code=6, message="No devices were found"
                ),
            }
        )
    )
    assert (found.id, found.severity) == ("gpu-init-failed", "error")
    assert found.consequences == ("gpu-missing-from-driver",)
    assert "Above 4G Decoding" in found.fix[0].title


def test_missing_firmware_comes_first() -> None:
    line = (
        "nvidia 0000:01:00.0: Direct firmware load for nvidia/580.159.04/gsp_ga10x.bin failed "
        "with error -2"
    )
    found = only(
        changed(
            {
                "host.gpus": (),
                "host.driver.kernel_log": (line, *INIT),
                "host.driver.libcuda": ProbeAnswer(outcome="error", code=100),
            }
        )
    )
    assert found.id == "gpu-init-failed"
    assert found.fix[0].commands == ("ls /lib/firmware/nvidia/580.159.04",)


def test_failed_first_try_of_a_gpu_that_works_is_history() -> None:
    assert said(changed({"host.driver.kernel_log": INIT})) == []


def test_driver_that_hangs_is_unknown() -> None:
    snapshot = changed(
        {
            "host.gpus": None,
            "host.driver.nvml": ProbeAnswer(outcome="timeout"),
            "host.driver.libcuda": ProbeAnswer(outcome="timeout"),
            "host.driver.smi": ProbeAnswer(outcome="timeout"),
        }
    )
    assert said(snapshot) == []
    assert "gpu-init-failed" in open_checks(snapshot)


TWO = (
    PciDevice(address="0000:01:00.0", device="2335", class_code="0302", kernel_driver="nvidia"),
    PciDevice(address="0000:41:00.0", device="2335", class_code="0302", kernel_driver="nvidia"),
)


def test_bus_shows_more_than_the_driver() -> None:
    found = only(changed({"host.pci": TWO}))
    assert (found.id, found.severity) == ("gpu-missing-from-driver", "warning")
    assert found.title == "The PCI bus shows 2 NVIDIA GPUs, the driver 1"
    assert found.fix[0].commands == ("sudo dmesg | grep -i -e NVRM -e 0000:41:00.0",)


def test_container_that_was_given_one_of_two_is_well() -> None:
    assert said(changed({"host.pci": TWO, "host.container.kind": "docker"})) == []


def test_other_spelling_of_the_address_is_the_same_gpu() -> None:
    assert said(changed({"host.gpus.0.bus_id": "00000000:01:00.0"})) == []


def test_uncorrectable_memory_errors() -> None:
    found = only(changed({"host.gpus.0.ecc_uncorrected": 3}))
    assert (found.id, found.severity) == ("gpu-memory-error", "error")
    assert found.fix[0].commands == ("sudo nvidia-smi --gpu-reset -i 0",)


def test_failed_remapping_means_a_new_card() -> None:
    found = only(changed({"host.gpus.0.remap_failed": True}))
    assert found.id == "gpu-memory-error"
    assert found.fix[0].title == "Have the card replaced: it has no spare memory rows left"


def test_contained_memory_xid() -> None:
    line = "NVRM: Xid (PCI:0000:01:00): 94, pid=4711, name=python, Contained: SM (0x1)."
    assert said(changed({"host.driver.kernel_log": (line,)})) == [("gpu-memory-error", "error")]


@pytest.mark.parametrize("field", ["remap_pending", "retired_pages_pending"])
def test_memory_that_waits_for_a_reset(field: str) -> None:
    found = only(changed({f"host.gpus.0.{field}": True}))
    assert (found.id, found.severity) == ("gpu-row-remap-pending", "warning")
    assert found.fix[0].commands == ("sudo nvidia-smi --gpu-reset -i 0",)


def test_serious_xid_while_cuda_works_again_is_a_warning() -> None:
    line = "NVRM: Xid (PCI:0000:01:00): 62, pid=1, 0a1b2c3d 00000000 00000000"
    found = only(changed({"host.driver.kernel_log": (line, line)}))
    assert (found.id, found.severity) == ("gpu-xid", "warning")
    assert found.subject == "GPU 0: NVIDIA H200"


def test_serious_xid_while_cuda_fails_is_an_error() -> None:
    line = "NVRM: Xid (PCI:0000:01:00): 62, pid=1, 0a1b2c3d 00000000 00000000"
    snapshot = changed(
        {
            "host.driver.kernel_log": (line,),
            "host.driver.libcuda": ProbeAnswer(outcome="timeout"),
        }
    )
    assert said(snapshot) == [("gpu-xid", "error")]


@pytest.mark.parametrize("number", [13, 31, 43, 45])
def test_fault_of_a_program_is_information(number: int) -> None:
    line = f"NVRM: Xid (PCI:0000:01:00): {number}, pid=4711, name=python, Ch 00000008"
    assert said(changed({"host.driver.kernel_log": (line,)})) == [("gpu-xid", "info")]


@pytest.mark.parametrize(
    "line",
    [
        "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build",
        "NVRM: gpuClearFbhubPoisonIntrForBug2924523_GA100: FBHUB Interrupt detected. Clearing it.",
        "nvidia: loading out-of-tree module taints kernel.",
        "NVRM: Xid (PCI:0000:01:00): 63, pid=1, Row Remapper: New row marked for remapping",
        "nvidia-nvswitch0: SXid (PCI:0000:05:00.0): 20034, Non-fatal, Link 30 LTSSM Fault Up",
    ],
)
def test_usual_lines_of_the_log(line: str) -> None:
    assert said(changed({"host.driver.kernel_log": (line,)})) == []


@pytest.mark.parametrize("reason", ["hw-thermal", "sw-thermal", "hw-power-brake", "hw-slowdown"])
def test_slowed_down(reason: str) -> None:
    found = only(changed({"host.gpus.0.throttle_reasons": (reason,)}))
    assert (found.id, found.severity) == ("gpu-throttled", "warning")
    assert found.found == reason


@pytest.mark.parametrize("reasons", [("sw-power-cap",), ("idle",), ("idle", "hw-slowdown"), ()])
def test_power_cap_and_idle_clocks_are_normal(reasons: tuple[str, ...]) -> None:
    assert said(changed({"host.gpus.0.throttle_reasons": reasons})) == []


def test_link_far_below_under_load() -> None:
    found = only(changed({"host.gpus": (gpu(utilization_percent=97, pcie_width=4),)}))
    assert (found.id, found.severity) == ("pcie-link-degraded", "warning")
    assert found.found == "generation 5, 4 lanes, under load"


def test_split_slot_under_load_is_information() -> None:
    snapshot = changed({"host.gpus": (gpu(utilization_percent=97, pcie_width=8),)})
    assert said(snapshot) == [("pcie-link-degraded", "info")]


def test_idle_link_is_never_judged() -> None:
    idle = gpu(utilization_percent=3, pcie_generation=1, pcie_width=1)
    assert said(changed({"host.gpus": (idle,)})) == []


def test_memory_in_use_is_information_and_names_a_free_gpu() -> None:
    full = gpu(0, memory_used_bytes=76 << 30)
    found = only(changed({}, gpus=(full, gpu(1))))
    assert (found.id, found.severity) == ("gpu-memory-occupied", "info")
    assert found.fix[0].commands == ("export CUDA_VISIBLE_DEVICES=1",)


def test_half_full_is_not_occupied() -> None:
    assert said(changed({"host.gpus.0.memory_used_bytes": 40 << 30})) == []


def test_iommu_fault_of_a_gpu() -> None:
    line = (
        "nvidia 0000:02:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x0012 address=0xd0000000]"
    )
    found = only(changed({"host.driver.kernel_log": (line,)}, gpus=(gpu(0), gpu(1))))
    assert (found.id, found.severity) == ("p2p-blocked-by-iommu", "warning")
    assert found.fix[0].commands == ("export NCCL_P2P_DISABLE=1",)


def test_iommu_fault_of_another_device_at_such_a_time() -> None:
    line = "10:02:00.123456 kernel: DMAR: [DMA Read] Request device [07:00.0] fault addr 0xd0000000"
    assert said(changed({"host.driver.kernel_log": (line,)}, gpus=(gpu(0), gpu(1)))) == []


def test_iommu_that_is_merely_on_is_no_finding() -> None:
    facts = {"host.iommu_groups": 40, "host.kernel_command_line": "intel_iommu=on"}
    assert said(changed(facts, gpus=(gpu(0), gpu(1)))) == []
