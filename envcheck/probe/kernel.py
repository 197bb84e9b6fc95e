"""What the kernel says of NVIDIA's modules, read before a child could load one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from envcheck.model.base import model
from envcheck.probe.source import Command

if TYPE_CHECKING:
    from envcheck.probe.notes import Notes
    from envcheck.probe.quiet import Quiet
    from envcheck.probe.source import Result

DMESG = Command(
    name="dmesg",
    argv=("dmesg",),
    timeout=5.0,
    keep=r"NVRM|nvidia|nouveau|\bXid\b|Key was rejected|unavailable key|module verification failed"
    r"|Lockdown:.*module",
)

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
        module_version=version.strip() if version else None,
        proc_version=proc,
        module_loaded=loaded,
        uvm_loaded=None if modules is None else "nvidia_uvm" in modules,
        nouveau_loaded=None if modules is None else "nouveau" in modules,
        secure_boot=_secure_boot(source),
        lockdown=_lockdown(source),
    )


def _secure_boot(source: Quiet) -> bool | None:
    """The firmware variable: four bytes of attributes, then 1 for on. No EFI at all: off."""
    if source.stat("/sys/firmware/efi") is None:
        return False if "/sys/firmware/efi" not in source.refused else None
    text = source.read(_SECURE_BOOT)
    return None if text is None or not text else text[-1] == "\x01"


def _lockdown(source: Quiet) -> str | None:
    match = re.search(r"\[(\w+)\]", source.read("/sys/kernel/security/lockdown") or "")
    return match.group(1) if match else None


def kernel_log(result: Result | None, notes: Notes) -> tuple[str, ...] | None:
    """Lines of the kernel log that speak of NVIDIA, oldest first; None when it may not be read."""
    if result is None or result.outcome != "ok" or result.code != 0:
        words = result.stderr.strip().splitlines() if result is not None else []
        notes.missing(
            "host.driver.kernel_log", words[-1] if words else "the kernel log could not be read"
        )
        return None
    return tuple(result.stdout.splitlines()[-_LINES:])
