"""nouveau-conflict."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.model.finding import Evidence, Fix
from envcheck.rules import facts, fixes
from envcheck.rules.base import finding, rule

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.model.finding import Finding
    from envcheck.model.host import PciDevice
    from envcheck.model.snapshot import Snapshot
    from envcheck.rules.base import Answer

OWNED = (
    r"loaded and obtained ownership of the NVIDIA device",
    r"already (been )?obtained by another driver",
    r"NVIDIA probe routine was not called for",
)


def _own_gpus(snapshot: Snapshot) -> bool:
    return (
        facts.discrete(snapshot)
        and facts.on_host(snapshot)
        and bool(facts.nvidia_pci_gpus(snapshot))
    )


@rule(
    "nouveau-conflict",
    component="driver",
    when=_own_gpus,
    explains=(*facts.AFTER_DRIVER, "driver-not-loaded", "driver-module-rejected"),
)
def nouveau_conflict(snapshot: Snapshot, _matrix: Matrix) -> Answer:
    """No other kernel driver holds the GPU while NVIDIA's is installed.

    GPUs bound to a pass-through driver such as vfio-pci are meant for a virtual machine: that is
    information only, and a warning when the environment here needs a GPU and none is left.

    Why: only one kernel driver can own a device. When nouveau was first, NVIDIA's module finds no
    GPU to drive.

    Fix: keep nouveau from loading, also in the initial RAM disk, and restart.
    """
    driver = snapshot.host.driver
    devices = facts.nvidia_pci_gpus(snapshot)
    taken = tuple(
        each
        for each in devices
        if each.kernel_driver in facts.RIVAL_DRIVERS
        and facts.reported(snapshot, each.address) is None
    )
    lines = facts.log_lines(snapshot, *OWNED)
    if taken and driver.installed is not False:
        yield _rival(snapshot, taken, lines)
        return
    by_log = lines and driver.nouveau_loaded and not facts.driver_works(snapshot)
    if by_log and driver.installed is not False:
        yield _rival(snapshot, devices, lines)
        return
    reserved = tuple(d for d in devices if d.kernel_driver in facts.PASSTHROUGH_DRIVERS)
    if reserved and len(reserved) == len(devices) and not facts.gpus(snapshot):
        yield _reserved(snapshot, reserved)


def _bound(devices: tuple[PciDevice, ...]) -> tuple[Evidence, ...]:
    return tuple(
        Evidence(
            label=facts.pci_label(each),
            value=f"bound to {each.kernel_driver or 'no driver'}",
            via=f"/sys/bus/pci/devices/{each.address}/driver",
        )
        for each in devices
    )


def _rival(snapshot: Snapshot, devices: tuple[PciDevice, ...], lines: tuple[str, ...]) -> Finding:
    names = sorted({d.kernel_driver for d in devices if d.kernel_driver in facts.RIVAL_DRIVERS})
    rival = str(names[0]) if names else "nouveau"
    return finding(
        "nouveau-conflict",
        "warning" if facts.cuda_ok(snapshot) else "error",
        "driver",
        ", ".join(facts.pci_label(each) for each in devices),
        f"The {rival} driver owns the GPU, so NVIDIA's driver cannot use it",
        found=f"GPU bound to {rival}",
        needed="GPU bound to nvidia",
        why=f"A device has one kernel driver, and {rival} took it before NVIDIA's was loaded.",
        fix=(
            Fix(
                title=f"Keep {rival} from loading, rebuild the initial RAM disk, restart",
                commands=fixes.blacklist(snapshot, rival),
            ),
        ),
        evidence=(*_bound(devices), *facts.log_evidence(lines), *facts.answers(snapshot)),
    )


def _reserved(snapshot: Snapshot, devices: tuple[PciDevice, ...]) -> Finding:
    holder = str(devices[0].kernel_driver)
    return finding(
        "nouveau-conflict",
        "warning" if facts.needs_gpu(snapshot) else "info",
        "driver",
        ", ".join(facts.pci_label(each) for each in devices),
        f"{holder} reserves the GPU for virtual machines",
        found=f"GPU bound to {holder}",
        needed="GPU bound to nvidia, if it is meant to be used on this host",
        why=f"{holder} hands the device to a guest; the host itself cannot use it meanwhile.",
        fix=(
            Fix(title="Nothing to do when a virtual machine is meant to use it: check there"),
            Fix(
                title="Otherwise see what binds it, remove that and restart",
                commands=(
                    "grep -rn -e vfio -e pci-stub /etc/modprobe.d /proc/cmdline",
                    "lspci -nnk -d 10de:",
                ),
            ),
        ),
        evidence=_bound(devices),
    )
