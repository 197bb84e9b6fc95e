"""What the kernel says of NVIDIA's modules, read before a child could load one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from envcheck.model.base import model
from envcheck.probe.source import Command
from envcheck.versions import Release

if TYPE_CHECKING:
    from collections.abc import Mapping

    from envcheck.model.host import PciDevice
    from envcheck.probe.notes import Notes
    from envcheck.probe.quiet import Quiet
    from envcheck.probe.source import Result

_KEEP = (
    r"NVRM|nvidia|nouveau|\bXid\b|Key was rejected|unavailable key|module verification failed"
    r"|Lockdown:.*module"
)
_BUS_TROUBLE = r"AER:|Bus Error|BAR \d|link|power state|reset|not accessible"
"""What lines about a GPU's address must speak of: those of its enumeration say nothing."""

DMESG = "dmesg"
JOURNAL = "journalctl"
_JOURNALS = ("/var/log/journal", "/run/log/journal")

_LINES = 400
"""Newest lines that are kept."""

_SECURE_BOOT = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"


@model
class Kernel:
    """Modules, Secure Boot and log."""

    module_version: str | None
    proc_version: str | None
    module_loaded: bool | None
    uvm_loaded: bool | None
    nouveau_loaded: bool | None
    secure_boot: bool | None
    lockdown: str | None
    log: tuple[str, ...] | None = None


def read_kernel(source: Quiet) -> Kernel:
    """Read /sys and /proc; the log comes later, by `kernel_log`."""
    modules = source.list("/sys/module")
    version = source.read("/sys/module/nvidia/version")
    proc = source.read("/proc/driver/nvidia/version")
    loaded: bool | None = None if modules is None else "nvidia" in modules
    if proc:
        loaded = True
    return Kernel(
        module_version=_release(version),
        proc_version=proc,
        module_loaded=loaded,
        uvm_loaded=None if modules is None else "nvidia_uvm" in modules,
        nouveau_loaded=None if modules is None else "nouveau" in modules,
        secure_boot=_secure_boot(source),
        lockdown=_lockdown(source),
    )


def _release(text: str | None) -> str | None:
    """The one line of a version file; anything else is no release."""
    line = (text or "").strip()
    parsed = Release.maybe(line)
    return line if parsed is not None and line.startswith(parsed.text) and " " not in line else None


def log_command(pci: tuple[PciDevice, ...] | None) -> Command:
    """How the kernel's ring buffer is read, down to the lines that may concern NVIDIA's devices."""
    addresses = "|".join(re.escape(each.address) for each in pci or ())
    trouble = rf"|(?=.*\b(?:{addresses})\b)(?=.*(?:{_BUS_TROUBLE}))" if addresses else ""
    return Command(name=DMESG, argv=("dmesg",), timeout=5.0, keep=_KEEP + trouble)


def journal_command(
    source: Quiet, results: Mapping[str, Result], log: Command
) -> tuple[Command, ...]:
    """The journal, where the ring buffer may not be read: members of some groups may read it."""
    result = results.get(DMESG)
    if result is None or (result.outcome == "ok" and result.code == 0):
        return ()
    if not any(source.list(folder) for folder in _JOURNALS):
        return ()
    return (
        Command(
            name=JOURNAL,
            argv=("journalctl", "-k", "-b", "-q", "-n", "20000", "-o", "cat", "--no-pager"),
            timeout=3.0,
            keep=log.keep,
        ),
    )


def _secure_boot(source: Quiet) -> bool | None:
    """The firmware variable: four bytes of attributes, then 1 for on. No EFI at all: off."""
    if not source.list("/sys/firmware"):
        # Container engines cover it with an empty folder: then nothing is known.
        return None
    if source.stat("/sys/firmware/efi") is None:
        return False if "/sys/firmware/efi" not in source.refused else None
    text = source.read(_SECURE_BOOT)
    return None if text is None or not text else text[-1] == "\x01"


def _lockdown(source: Quiet) -> str | None:
    match = re.search(r"\[(\w+)\]", source.read("/sys/kernel/security/lockdown") or "")
    return match.group(1) if match else None


def kernel_log(
    result: Result | None, notes: Notes, journal: Result | None = None
) -> tuple[str, ...] | None:
    """Lines of the kernel log that speak of NVIDIA, oldest first; None when it may not be read.

    Args:
        result: of `log_command`.
        notes: where the gap goes.
        journal: of `journal_command`, where it was asked.
    """
    if result is None or result.outcome != "ok" or result.code != 0:
        # A user who may not read it gets an empty journal and no error: that is no answer.
        if journal is not None and journal.code == 0 and journal.stdout:
            return tuple(journal.stdout.splitlines()[-_LINES:])
        words = result.stderr.strip().splitlines() if result is not None else []
        reason = words[-1] if words else result.error if result is not None else None
        notes.missing("host.driver.kernel_log", reason or "the kernel log could not be read")
        return None
    return tuple(result.stdout.splitlines()[-_LINES:])
