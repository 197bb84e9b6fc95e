"""driver-missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.model.host import PciDevice, ProbeAnswer
from tests.rules.asking import changed, only, open_checks, report, said
from tests.support import torch

if TYPE_CHECKING:
    from envcheck.model.snapshot import Snapshot

CARD = PciDevice(address="0000:01:00.0", device="2204", class_code="0300", kernel_driver="")


def bare(**changes: object) -> Snapshot:
    """An Ubuntu machine with an RTX 3090 and no driver."""
    facts = {"host.pci": (CARD,), **{k.replace("__", "."): v for k, v in changes.items()}}
    return changed(facts, driver=None, cuda=None, gpus=(), frameworks=(torch(),))


def test_card_without_driver_is_one_error() -> None:
    found = only(bare())
    assert (found.id, found.severity) == ("driver-missing", "error")
    assert found.found == "no NVIDIA driver"
    assert any("sudo apt-get install" in c for fix in found.fix for c in fix.commands)
    assert any("sudo reboot" in fix.commands for fix in found.fix)


def test_nouveau_without_nvidias_driver_is_still_only_a_missing_driver() -> None:
    nouveau = PciDevice(
        address="0000:01:00.0", device="2204", class_code="0300", kernel_driver="nouveau"
    )
    found = only(bare(host__pci=(nouveau,), host__driver__nouveau_loaded=True))
    assert found.id == "driver-missing"
    assert "nouveau drives only a display" in found.why


def test_commands_follow_the_distribution() -> None:
    found = only(
        bare(
            host__os__id="rocky",
            host__os__version="9.6",
            host__os__like=("rhel", "centos", "fedora"),
        )
    )
    commands = [c for fix in found.fix for c in fix.commands]
    assert any(c.startswith("sudo dnf") for c in commands)
    assert not any("apt" in c for c in commands)


def test_whether_it_is_installed_could_not_be_read() -> None:
    snapshot = bare(host__driver__installed=None)
    assert open_checks(snapshot) == ["driver-missing"]
    assert said(snapshot) == []


def test_card_for_a_virtual_machine_needs_no_driver_here() -> None:
    guest = PciDevice(
        address="0000:01:00.0", device="2204", class_code="0300", kernel_driver="vfio-pci"
    )
    assert "driver-missing" not in [f.id for f in report(bare(host__pci=(guest,))).findings]


def test_debian_packages_libcuda_by_itself() -> None:
    snapshot = changed(
        {
            "host.os.id": "debian",
            "host.os.version": "12",
            "host.os.like": (),
            "host.driver.libcuda": ProbeAnswer(outcome="missing"),
        },
        frameworks=(torch(),),
    )
    found = only(snapshot)
    assert (found.id, found.severity) == ("driver-missing", "error")
    assert found.fix[0].commands[0] == "sudo apt-get install -y libcuda1"


def test_installed_and_working_driver_is_not_missing() -> None:
    assert said(changed({"host.driver.installed": None})) == []
