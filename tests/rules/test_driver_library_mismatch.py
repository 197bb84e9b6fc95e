"""driver-library-mismatch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from envcheck.model.host import DkmsModule, ProbeAnswer, SystemPackage
from tests.rules.asking import changed, only, said
from tests.support import torch

if TYPE_CHECKING:
    from envcheck.model.snapshot import Snapshot

MISMATCH = "Failed to initialize NVML: Driver/library version mismatch"


def mismatched(changes: dict[str, Any]) -> Snapshot:
    """A machine that was updated from 520.56.06 to 525.85.12 and not restarted."""
    return changed(
        {
            "host.os.id": "debian",
            "host.os.version": "12",
            "host.os.like": (),
            "host.gpus": None,
            "host.driver.userspace_version": "525.85.12",
            "host.driver.nvml": ProbeAnswer(
                outcome="error", code=18, message="Driver/library version mismatch"
            ),
            "host.driver.libcuda": ProbeAnswer(outcome="error", code=803),
            "host.driver.smi": ProbeAnswer(outcome="error", code=18, message=MISMATCH),
            **changes,
        },
        driver="520.56.06",
        cuda=None,
        frameworks=(torch(),),
    )


def test_reload_or_restart_and_never_a_reinstall_first() -> None:
    found = only(mismatched({}))
    assert (found.id, found.severity) == ("driver-library-mismatch", "error")
    assert found.found == "kernel module 520.56.06, libraries 525.85.12"
    assert "sudo modprobe -r nvidia_uvm nvidia_drm nvidia_modeset nvidia" in found.fix[0].commands
    assert found.fix[1].commands == ("sudo reboot",)
    assert not any("install" in c for fix in found.fix for c in fix.commands)


def test_words_of_nvidia_smi_alone_are_enough() -> None:
    found = only(
        mismatched(
            {
                "host.driver.userspace_version": None,
                "host.driver.nvml": ProbeAnswer(),
                "host.driver.libcuda": ProbeAnswer(),
                "host.gpus": (),
            }
        )
    )
    assert found.id == "driver-library-mismatch"
    assert found.found == "kernel module 520.56.06, libraries of another release"


def test_files_on_disk_that_differ_too_are_built_again() -> None:
    module = DkmsModule(
        name="nvidia", version="520.56.06", kernel="6.8.0-60-generic", state="installed"
    )
    package = SystemPackage(name="nvidia-driver", version="525.85.12-1")
    found = only(mismatched({"host.driver.dkms": (module,), "host.driver.packages": (package,)}))
    assert found.fix[0].commands[1] == "sudo dkms autoinstall"
    assert found.fix[1].commands == ("sudo reboot",)
    assert found.fix[2].commands == (
        "sudo apt-get update",
        "sudo apt-get install --reinstall -y nvidia-driver",
    )


def test_inside_a_container_it_is_recreated() -> None:
    found = only(mismatched({"host.container.kind": "docker"}))
    assert found.fix[0].commands == ()
    assert found.fix[0].title.startswith("Recreate the container")


def test_short_version_of_nvml_is_the_same_release() -> None:
    assert said(changed({"host.driver.userspace_version": "580.159"})) == []


def test_stale_files_beside_a_driver_that_answers_are_no_finding() -> None:
    assert said(changed({"host.driver.userspace_version": "575.57.08"})) == []


def test_never_under_wsl() -> None:
    snapshot = mismatched({"host.wsl": 2, "host.pci": ()})
    assert "driver-library-mismatch" not in [name for name, _ in said(snapshot)]
