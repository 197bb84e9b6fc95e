"""driver-module-rejected."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.model.finding import Evidence, Fix
from envcheck.rules import facts, fixes
from envcheck.rules.base import finding, rule

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.model.snapshot import Snapshot
    from envcheck.rules.base import Answer

REFUSALS = (
    r"Loading of (unsigned module|module with unavailable key|module with unsupported crypto)",
    r"Lockdown: .*module",
    r"Key was rejected by service",
    r"Required key not available",
    r"could not insert 'nvidia'.*(key|Key)",
)


def _module_absent(snapshot: Snapshot) -> bool:
    return (
        facts.discrete(snapshot)
        and facts.on_host(snapshot)
        and bool(facts.usable_pci_gpus(snapshot))
        and not facts.driver_loaded(snapshot)
        and not facts.driver_works(snapshot)
        and snapshot.host.driver.installed is not False
    )


@rule(
    "driver-module-rejected",
    component="driver",
    when=_module_absent,
    explains=(*facts.AFTER_DRIVER, "driver-not-loaded"),
)
def driver_module_rejected(snapshot: Snapshot, _matrix: Matrix) -> Answer:
    """The kernel accepts the signature of the NVIDIA module.

    Needs the kernel's own words, or modprobe's: Secure Boot alone proves nothing, since signed
    modules load under it.

    Why: with Secure Boot or lockdown the kernel loads only modules signed with a key that it
    trusts. A module that DKMS built here is signed with a key of this machine, which must be
    enrolled once.

    Fix: enrol that key at the next start, or install the modules that the distribution signed.
    """
    driver = snapshot.host.driver
    lines = facts.log_lines(snapshot, *REFUSALS)
    if not lines:
        return
    states = []
    if driver.secure_boot is not None:
        states.append(
            Evidence(
                label="Secure Boot",
                value="on" if driver.secure_boot else "off",
                via="/sys/firmware/efi/efivars",
            )
        )
    if driver.lockdown:
        states.append(
            Evidence(label="lockdown", value=driver.lockdown, via="/sys/kernel/security/lockdown")
        )
    key = fixes.signing_key(snapshot)
    roads = [
        Fix(
            title="Enrol the key that signed the module: choose a password now, restart, and pick "
            "Enroll MOK in the blue screen",
            commands=(f"sudo mokutil --import {key}", "sudo reboot"),
        ),
        *fixes.signed_modules(snapshot),
        Fix(
            title="Or switch Secure Boot off in the firmware settings; booting through a loader "
            "that skips shim also loses the enrolled keys",
            commands=("mokutil --sb-state",),
        ),
    ]
    yield finding(
        "driver-module-rejected",
        "error",
        "driver",
        facts.driver_subject(snapshot),
        "The kernel refuses to load the NVIDIA module because of its signature",
        found="a module that the kernel does not accept",
        needed="a module signed with a key that this machine trusts",
        why="Secure Boot or kernel lockdown allows only modules signed with an enrolled key, and "
        "this one is not.",
        fix=roads,
        evidence=(*states, *facts.log_evidence(lines), *facts.answers(snapshot)),
    )
