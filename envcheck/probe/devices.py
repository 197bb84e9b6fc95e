"""PCI devices, device files and kernel settings, read from /sys, /dev and /proc."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from envcheck.model.host import DeviceNode, PciDevice

if TYPE_CHECKING:
    from envcheck.probe.notes import Notes
    from envcheck.probe.quiet import Quiet

_BUS = "/sys/bus/pci/devices"
NVIDIA_VENDOR = "10de"
_CLASSES = ("03", "0680")
"""Display controllers, and the bridge class that NVSwitch uses."""


def read_pci(source: Quiet, notes: Notes) -> tuple[PciDevice, ...] | None:
    """NVIDIA's GPUs and NVSwitches on the PCI bus, whether or not a driver knows them."""
    addresses = source.list(_BUS)
    if addresses is None:
        refusal = source.refused.get(_BUS)
        if refusal is None and source.list("/sys/bus") is not None:
            return ()
        notes.missing("host.pci", f"{_BUS}: {refusal or 'not there'}")
        return None
    found = []
    unread = []
    for address in addresses:
        vendor = _hex(source.read(f"{_BUS}/{address}/vendor"))
        code = _hex(source.read(f"{_BUS}/{address}/class")) if vendor == NVIDIA_VENDOR else None
        if vendor is None or (vendor == NVIDIA_VENDOR and code is None):
            unread.append(address)
        if code is None or not code.startswith(_CLASSES):
            continue
        driver = source.stat(f"{_BUS}/{address}/driver")
        speed = source.read(f"{_BUS}/{address}/current_link_speed")
        found.append(
            PciDevice(
                address=address,
                vendor=NVIDIA_VENDOR,
                device=_hex(source.read(f"{_BUS}/{address}/device")),
                class_code=code[:4],
                kernel_driver=(driver.target or "").rpartition("/")[2] if driver else "",
                link_speed=speed.strip() if speed else None,
            )
        )
    if unread and not found:
        # Any of them may be the GPU.
        place = f"{_BUS}/{unread[0]}"
        refusal = next((why for path, why in source.refused.items() if path.startswith(place)), "")
        notes.missing("host.pci", f"{place}: {refusal or 'does not say what it is'}")
        return None
    return tuple(found)


def _hex(text: str | None) -> str | None:
    """The digits of a number as /sys prints it, `0x10de`; None when it is none."""
    match = re.fullmatch(r"(?:0x)?([0-9a-f]{1,8})", (text or "").strip().lower())
    return match.group(1) if match else None


def read_nodes(source: Quiet) -> tuple[DeviceNode, ...] | None:
    """The driver's device files, and whether this user may open them."""
    names = source.list("/dev")
    if names is None:
        return None
    found = []
    for name in names:
        if re.fullmatch(r"nvidia(?:\d+|ctl|-uvm|-uvm-tools|-modeset)|dxg", name):
            facts = source.stat(f"/dev/{name}")
            if facts is not None and facts.kind != "directory":
                found.append(
                    DeviceNode(
                        path=f"/dev/{name}", readable=facts.readable, writable=facts.writable
                    )
                )
    return tuple(found)


def read_shm(source: Quiet, notes: Notes) -> int | None:
    """Size of /dev/shm in bytes."""
    facts = source.stat("/dev/shm")
    if facts is None or facts.filesystem_bytes is None:
        notes.missing("host.shm_bytes", "/dev/shm is not there or could not be looked at")
        return None
    return facts.filesystem_bytes


def read_iommu_groups(source: Quiet) -> int | None:
    """How many IOMMU groups the kernel made: none when the IOMMU is off."""
    groups = source.list("/sys/kernel/iommu_groups")
    return None if groups is None else len(groups)
