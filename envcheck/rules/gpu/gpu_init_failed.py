"""gpu-init-failed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from envcheck.model.finding import Evidence, Fix
from envcheck.rules import facts
from envcheck.rules.base import finding, rule, unknown

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.model.snapshot import Snapshot
    from envcheck.rules.base import Answer

FAILURES = (
    r"RmInitAdapter failed",
    r"rm_init_adapter failed",
    r"Cannot initialize GSP firmware",
    r"GSP.*(boot|bootstrap).*fail",
    r"Direct firmware load for nvidia/\S*gsp_\S*\.bin failed",
    r"firmware: failed to load nvidia/\S*gsp_\S*\.bin",
)
_FIRMWARE = re.compile(r"(Direct firmware load for|failed to load) nvidia/\S*gsp_", re.IGNORECASE)
_ADDRESS = re.compile(r"\b([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])\b", re.IGNORECASE)


def _module_there(snapshot: Snapshot) -> bool:
    return facts.discrete(snapshot) and facts.driver_loaded(snapshot) and facts.has_gpu(snapshot)


@rule(
    "gpu-init-failed",
    component="gpu",
    when=_module_there,
    explains=(
        "driver-not-loaded",
        "driver-state-stale",
        "gpu-missing-from-driver",
        "gpu-xid",
        "cuda-visible-devices-invalid",
    ),
)
def gpu_init_failed(snapshot: Snapshot, _matrix: Matrix) -> Answer:
    """The driver could initialise each GPU.

    Rests on the kernel log (RmInitAdapter failed, GSP firmware not loaded) for a GPU that the
    driver does not report now: a failed first try that a later one made good is history. A
    management library that hangs or crashes is an answer of its own: unknown.

    Why: the card answers on the bus, but its start fails: firmware file missing, address space too
    small for its memory window, a bad seat or cable, or a broken card.

    Fix: install the firmware of the driver's release; switch on Above 4G Decoding and Resizable
    BAR; power off and reseat; replace.
    """
    driver = snapshot.host.driver
    if driver.nvml.outcome in {"timeout", "crash"} and not facts.cuda_ok(snapshot):
        hint = (
            " (with persistence mode off the first call starts the GPUs and can take long)"
            if driver.nvml.outcome == "timeout"
            else ""
        )
        yield unknown("gpu-init-failed", f"NVML: {facts.said(driver.nvml)}{hint}")
        return
    lines = facts.log_lines(snapshot, *FAILURES)
    addresses = tuple(
        dict.fromkeys(match.group(1).lower() for line in lines for match in _ADDRESS.finditer(line))
    )
    failed = tuple(a for a in addresses if facts.reported(snapshot, a) is None)
    if addresses and not failed:
        return
    if not lines or (not addresses and not facts.unreported_pci_gpus(snapshot)):
        return
    # Without an address in the lines, the GPUs that the driver does not report are the ones meant.
    places = failed or tuple(each.address for each in facts.unreported_pci_gpus(snapshot))
    subject = ", ".join(facts.at_address(snapshot, each) for each in places)
    firmware = [line for line in lines if _FIRMWARE.search(line)]
    roads = [
        Fix(
            title="In the firmware settings of the machine switch on Above 4G Decoding and "
            "Resizable BAR; then power off fully and reseat the card and its power cables"
        ),
        Fix(
            title="See the driver's own report",
            commands=("sudo dmesg | grep -e NVRM -e nvidia", "sudo nvidia-bug-report.sh"),
        ),
        Fix(title="If it fails in another slot or machine as well, have the card replaced"),
    ]
    if firmware:
        version = facts.driver_version(snapshot)
        roads.insert(
            0,
            Fix(
                title="Install the firmware files of exactly the driver's release: they are part "
                "of the driver's packages",
                commands=(f"ls /lib/firmware/nvidia/{version or ''}",),
            ),
        )
    yield finding(
        "gpu-init-failed",
        "warning" if facts.cuda_ok(snapshot) else "error",
        "gpu",
        subject,
        "The driver sees the GPU but cannot initialise it",
        found=firmware[-1].strip() if firmware else lines[-1].strip(),
        needed="a GPU that starts under this driver",
        why="The GSP firmware that the driver boots on the card is missing on disk."
        if firmware
        else "The card answers on the PCI bus, but the driver's start of it fails.",
        fix=roads,
        evidence=(
            *facts.log_evidence(lines),
            *facts.answers(snapshot),
            *(
                Evidence(label="GPU on the bus", value=facts.at_address(snapshot, a), via="PCI")
                for a in places
            ),
        ),
    )
