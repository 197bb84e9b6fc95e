"""May this process use the GPUs: compute mode, MIG, CUDA_VISIBLE_DEVICES, fabric."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from envcheck.model.environment import Variable
from envcheck.model.host import FabricManager, GpuProcess, PciDevice, ProbeAnswer
from envcheck.rules.gpu.cuda_visible_devices_invalid import read
from tests.rules.asking import changed, only, open_checks, said
from tests.support import gpu

if TYPE_CHECKING:
    from envcheck.model.snapshot import Snapshot


def selecting(value: str, count: int = 2, **changes: Any) -> Snapshot:
    """A machine with some GPUs and CUDA_VISIBLE_DEVICES set."""
    return changed(
        {
            "env.variables": (Variable(name="CUDA_VISIBLE_DEVICES", value=value),),
            **{key.replace("__", "."): new for key, new in changes.items()},
        },
        gpus=tuple(gpu(i) for i in range(count)),
    )


@pytest.mark.parametrize("value", ["", "-1", "7", "NoDevFiles", "all", "-1,0"])
def test_value_that_hides_every_gpu(value: str) -> None:
    found = only(selecting(value))
    assert (found.id, found.severity) == ("cuda-visible-devices-invalid", "error")
    assert [fix.commands for fix in found.fix] == [
        ("unset CUDA_VISIBLE_DEVICES",),
        ("export CUDA_VISIBLE_DEVICES=0,1",),
    ]


@pytest.mark.parametrize("value", ["0,7", "0,-1,1", "0,0", "1,"])
def test_value_that_hides_some(value: str) -> None:
    assert said(selecting(value)) == [("cuda-visible-devices-invalid", "warning")]


@pytest.mark.parametrize(
    "value", ["0", "1", "0,1", "1, 0", "GPU-8f3a1c2e-0000", "MIG-8f3a1c2e-0000"]
)
def test_value_that_names_gpus(value: str) -> None:
    assert said(selecting(value)) == []


def test_unset_is_fine() -> None:
    assert said(changed({})) == []


def test_uuid_that_cuda_does_not_find_is_masked_in_the_report() -> None:
    found = only(
        selecting(
            "GPU-8f3a1c2e-1111-2222-3333-444455556666",
            host__driver__libcuda=ProbeAnswer(outcome="error", code=100, message="no device"),
        )
    )
    assert (found.id, found.severity) == ("cuda-visible-devices-invalid", "error")
    assert "8f3a1c2e" not in repr(found)


def test_reading_stops_at_the_first_refused_entry() -> None:
    selection = read("1,9,0", 2)
    assert (selection.accepted, selection.refused) == (("1",), "9")
    assert read("3", None).accepted == ("3",)


def test_prohibited_mode() -> None:
    found = only(changed({"host.gpus.0.compute_mode": "prohibited"}))
    assert (found.id, found.severity) == ("gpu-exclusive-mode", "error")
    assert found.fix[0].commands == ("sudo nvidia-smi -i 0 -c DEFAULT",)


def test_exclusive_mode_with_a_holder() -> None:
    holder = GpuProcess(pid=4711, name="python", memory_bytes=1 << 30)
    facts = {"host.gpus.0.compute_mode": "exclusive-process", "host.gpus.0.processes": (holder,)}
    assert said(changed(facts)) == [("gpu-exclusive-mode", "warning")]


@pytest.mark.parametrize("processes", [(), (GpuProcess(pid=1, name="nvidia-cuda-mps-server"),)])
def test_exclusive_mode_of_a_site_is_fine(processes: tuple[GpuProcess, ...]) -> None:
    facts = {"host.gpus.0.compute_mode": "exclusive-process", "host.gpus.0.processes": processes}
    assert said(changed(facts)) == []


def test_several_mig_instances() -> None:
    facts = {
        "host.gpus.0.mig": True,
        "host.gpus.0.mig_instances": 2,
        "env.variables": (
            Variable(name="CUDA_VISIBLE_DEVICES", value="MIG-aaaaaaaa-1,MIG-bbbbbbbb-2"),
        ),
    }
    found = only(changed(facts))
    assert (found.id, found.severity) == ("mig-instance-limit", "warning")
    assert found.fix[0].commands == ("nvidia-smi -L",)


def test_mig_without_an_instance() -> None:
    found = only(changed({"host.gpus.0.mig": True, "host.gpus.0.mig_instances": 0}))
    assert (found.id, found.severity) == ("mig-instance-limit", "error")
    assert found.fix[1].commands == ("sudo nvidia-smi -i 0 -mig 0",)


def test_mig_in_order() -> None:
    assert said(changed({"host.gpus.0.mig": True, "host.gpus.0.mig_instances": 7})) == []


NOT_READY = ProbeAnswer(outcome="error", code=802, message="system not yet initialized")
SWITCH = PciDevice(address="0000:05:00.0", device="22a3", class_code="0680")


def nvswitch(changes: dict[str, Any]) -> Snapshot:
    """An NVSwitch machine with one of its GPUs."""
    machine = changed({})
    return changed(
        {
            "host.pci": (*(machine.host.pci or ()), SWITCH),
            "host.gpus.0.fabric_state": "completed",
            "host.gpus.0.fabric_status": 0,
            "host.fabric_manager": FabricManager(
                installed=True, installed_version="580.159.04", running=True
            ),
            **changes,
        }
    )


def test_fabric_in_order() -> None:
    assert said(nvswitch({})) == []


def test_fabric_manager_stopped() -> None:
    found = only(
        nvswitch(
            {
                "host.driver.libcuda": NOT_READY,
                "host.gpus.0.fabric_state": "in-progress",
                "host.fabric_manager.running": False,
            }
        )
    )
    assert (found.id, found.severity) == ("fabric-manager-not-running", "error")
    assert found.fix[0].commands == ("sudo systemctl enable --now nvidia-fabricmanager",)


def test_fabric_manager_not_installed() -> None:
    found = only(
        nvswitch(
            {
                "host.driver.libcuda": NOT_READY,
                "host.fabric_manager": FabricManager(installed=False, running=False),
            }
        )
    )
    assert found.fix[0].commands[0] == (
        'sudo apt-get install -y "nvidia-fabricmanager-580=580.159.04*"'
    )


def test_fabric_manager_of_another_release_is_the_cause() -> None:
    found = only(
        nvswitch(
            {
                "host.driver.libcuda": NOT_READY,
                "host.fabric_manager": FabricManager(
                    installed=True, installed_version="580.95.05-1", running=False
                ),
            }
        )
    )
    assert (found.id, found.severity) == ("fabric-manager-version-mismatch", "error")
    assert found.consequences == ("fabric-manager-not-running",)


def test_guest_with_passed_through_gpus_is_well_without_a_manager() -> None:
    facts = {
        "host.virtual": "kvm",
        "host.gpus.0.fabric_state": "completed",
        "host.gpus.0.fabric_status": 0,
        "host.fabric_manager": FabricManager(installed=False, running=False),
    }
    assert said(changed(facts)) == []


def test_stale_manager_on_a_machine_without_switches_is_no_finding() -> None:
    facts = {
        "host.fabric_manager": FabricManager(
            installed=True, installed_version="550.54.14", running=False
        )
    }
    assert said(changed(facts)) == []
    assert open_checks(changed(facts)) == []
