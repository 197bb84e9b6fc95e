"""driver-not-loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from envcheck.model.host import DeviceNode, DkmsModule, ProbeAnswer, SystemPackage
from tests.rules.asking import changed, only, said
from tests.support import torch

if TYPE_CHECKING:
    from envcheck.model.snapshot import Snapshot

NO_TALK = ProbeAnswer(
    outcome="error",
    code=9,
    message="NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
)


def unloaded(changes: dict[str, Any]) -> Snapshot:
    """A machine whose driver is installed but not in the kernel."""
    return changed(
        {
            "host.gpus": (),
            "host.nodes": (),
            "host.pci.0.kernel_driver": "",
            "host.driver.version": "580.159.04",
            "host.driver.userspace_version": "580.159.04",
            "host.driver.module_version": None,
            "host.driver.module_loaded": False,
            "host.driver.uvm_loaded": False,
            "host.driver.installed": True,
            "host.driver.nvml": ProbeAnswer(outcome="error", code=9, message="Driver Not Loaded"),
            "host.driver.libcuda": ProbeAnswer(outcome="error", code=100, message="no device"),
            "host.driver.smi": NO_TALK,
            **changes,
        },
        frameworks=(torch(),),
    )


def test_module_not_built_for_the_new_kernel() -> None:
    found = only(
        unloaded(
            {
                "host.driver.dkms": (
                    DkmsModule(
                        name="nvidia",
                        version="580.159.04",
                        kernel="6.8.0-58-generic",
                        state="installed",
                    ),
                )
            }
        )
    )
    assert (found.id, found.severity) == ("driver-not-loaded", "error")
    assert found.fix[0].commands == (
        "sudo apt-get install -y linux-headers-$(uname -r)",
        "sudo dkms autoinstall",
        "sudo modprobe nvidia",
    )
    assert "kernel 6.8.0-60-generic" in found.why


def test_module_that_exists_is_loaded_first() -> None:
    found = only(unloaded({"host.driver.module_file": "/lib/modules/6.8.0-60-generic/nvidia.ko"}))
    assert found.id == "driver-not-loaded"
    assert found.fix[0].commands[0] == "sudo modprobe nvidia"


def test_ready_made_modules_of_ubuntu() -> None:
    package = SystemPackage(name="linux-modules-nvidia-580-open-6.8.0-58-generic", version="6.8.0")
    found = only(unloaded({"host.driver.packages": (package,)}))
    assert found.fix[0].commands[0] == (
        "sudo apt-get install -y linux-modules-nvidia-580-open-$(uname -r)"
    )


def test_device_files_that_this_user_may_not_open() -> None:
    closed = tuple(
        DeviceNode(path=path, readable=False, writable=False)
        for path in ("/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm")
    )
    found = only(
        changed(
            {
                "host.nodes": closed,
                "host.gpus": (),
                "host.driver.nvml": ProbeAnswer(
                    outcome="error", code=4, message="Insufficient Permissions"
                ),
                "host.driver.libcuda": ProbeAnswer(outcome="error", code=100),
                "host.driver.smi": ProbeAnswer(outcome="error", code=4),
            }
        )
    )
    assert found.id == "driver-not-loaded"
    assert found.fix[0].commands[1] == ('sudo usermod -aG "$(stat -c %G /dev/nvidia0)" "$USER"')


def test_device_files_that_do_not_exist() -> None:
    found = only(
        changed(
            {
                "host.nodes": (),
                "host.gpus": (),
                "host.driver.nvml": ProbeAnswer(outcome="error", code=9),
                "host.driver.libcuda": ProbeAnswer(outcome="error", code=100),
                "host.driver.smi": NO_TALK,
            }
        )
    )
    assert found.fix[0].commands == ("sudo nvidia-modprobe -c 0 -u",)


def test_host_of_a_container_has_no_module() -> None:
    found = only(
        unloaded(
            {
                "host.container.kind": "docker",
                "host.driver.installed": False,
                "host.driver.nvml": ProbeAnswer(outcome="missing"),
                "host.driver.libcuda": ProbeAnswer(outcome="missing"),
                "host.driver.smi": ProbeAnswer(outcome="missing"),
            }
        )
    )
    assert found.id == "driver-not-loaded"
    assert found.fix[0].commands[0] == "envcheck doctor"


def test_quiet_before_the_driver_was_first_used() -> None:
    """The probe reads modules before NVML loads them as root; the driver then works."""
    assert (
        said(changed({"host.driver.module_loaded": False, "host.driver.uvm_loaded": False})) == []
    )


def test_words_of_nvidia_smi_where_the_bus_cannot_be_read() -> None:
    snapshot = unloaded(
        {
            "host.pci": None,
            "host.nodes": None,
            "host.driver.module_loaded": None,
            "host.driver.nvml": ProbeAnswer(),
            "host.driver.libcuda": ProbeAnswer(),
        }
    )
    assert said(snapshot) == [("driver-not-loaded", "error")]
