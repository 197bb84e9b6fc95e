"""nouveau-conflict."""

from __future__ import annotations

from tests.rules.asking import changed, only, said
from tests.rules.test_driver_not_loaded import unloaded

PROBE = (
    "NVRM: The NVIDIA probe routine was not called for 1 device(s).",
    "NVRM: This can occur when a driver such as:",
    "NVRM: nouveau, rivafb, nvidiafb or rivatv",
    "NVRM: was loaded and obtained ownership of the NVIDIA device(s).",
)


def test_nouveau_holds_the_gpu() -> None:
    found = only(
        unloaded(
            {
                "host.pci.0.kernel_driver": "nouveau",
                "host.driver.nouveau_loaded": True,
                "host.driver.kernel_log": PROBE,
            }
        )
    )
    assert (found.id, found.severity) == ("nouveau-conflict", "error")
    assert found.consequences == ("driver-not-loaded",)
    assert found.fix[0].commands == (
        "printf 'blacklist nouveau\\noptions nouveau modeset=0\\n' | "
        "sudo tee /etc/modprobe.d/blacklist-nouveau.conf",
        "sudo update-initramfs -u",
        "sudo reboot",
    )


def test_initial_ram_disk_of_another_family() -> None:
    found = only(
        unloaded(
            {
                "host.pci.0.kernel_driver": "nouveau",
                "host.os.id": "rocky",
                "host.os.like": ("rhel",),
            }
        )
    )
    assert found.fix[0].commands[1] == "sudo dracut --force"


def test_gpu_for_a_guest_is_information_when_nothing_here_needs_it() -> None:
    snapshot = changed(
        {"host.pci.0.kernel_driver": "vfio-pci", "host.gpus": (), "host.nodes": ()},
        driver=None,
        cuda=None,
    )
    assert said(snapshot) == [("nouveau-conflict", "info")]


def test_nouveau_loaded_for_nothing_is_no_conflict() -> None:
    assert said(changed({"host.driver.nouveau_loaded": True})) == []
