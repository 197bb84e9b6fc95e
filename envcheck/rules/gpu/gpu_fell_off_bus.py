"""gpu-fell-off-bus."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from envcheck.model.finding import Evidence, Fix
from envcheck.rules import facts, fixes
from envcheck.rules.base import finding, rule

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.model.snapshot import Snapshot
    from envcheck.rules.base import Answer

XID_FELL_OFF_BUS = 79
NVML_GPU_IS_LOST = 15
_PLACE = re.compile(r"([0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2})", re.IGNORECASE)


@rule(
    "gpu-fell-off-bus",
    component="gpu",
    when=facts.discrete,
    explains=(
        "gpu-missing-from-driver",
        "gpu-init-failed",
        "gpu-xid",
        "driver-state-stale",
        "driver-not-loaded",
        "cuda-visible-devices-invalid",
        "fabric-manager-not-running",
        "pcie-link-degraded",
    ),
)
def gpu_fell_off_bus(snapshot: Snapshot, _matrix: Matrix) -> Answer:
    """Every GPU still answers on the PCI bus.

    Rests on NVML's "GPU is lost" and on Xid 79 or "fallen off the bus" in the kernel log. When the
    GPU at that address is reported again without an error, it came back, and the finding is a
    warning.

    Why: the link to the card broke: power, heat, a bad seat or riser, or a broken card. Software
    cannot bring it back without a restart.

    Fix: restart, then look at power, cooling and seating; replace the card if it recurs.
    """
    told: dict[str, list[str]] = {}
    for line in snapshot.host.driver.kernel_log or ():
        if re.search("fallen off the bus", line, re.IGNORECASE):
            match = _PLACE.search(line)
            told.setdefault(facts.short_bus(match.group(1)) if match else "", []).append(line)
    for xid in facts.xids(snapshot):
        if xid.number == XID_FELL_OFF_BUS:
            told.setdefault(xid.address, []).append(xid.line)
    lost = {
        facts.short_bus(gpu.bus_id): gpu.error
        for gpu in facts.gpus(snapshot)
        if gpu.error and "lost" in gpu.error.lower()
    }
    nvml = snapshot.host.driver.nvml
    if nvml.outcome == "error" and nvml.code == NVML_GPU_IS_LOST and not (lost or told):
        lost[""] = facts.said(nvml)
    for place in dict.fromkeys((*lost, *told)):
        back = place not in lost and facts.reported(snapshot, place) is not None
        name = facts.at_address(snapshot, place)
        yield finding(
            "gpu-fell-off-bus",
            "warning" if back else "error",
            "gpu",
            name,
            f"{name} fell off the PCI bus" + (" and came back" if back else ""),
            found=str(lost.get(place) or told[place][-1].strip()),
            needed="a GPU that answers on the bus",
            why="The link to the card broke while it was in use: power, heat, a bad seat or riser, "
            "or a broken card. Programs on it are lost.",
            fix=(
                *(
                    ()
                    if back
                    else (fixes.reboot("Restart the machine (a cold start if it stays away)"),)
                ),
                Fix(title="Check power cables and supply, cooling, and the seat of card and riser"),
                Fix(
                    title="Look for PCI Express errors beside it",
                    commands=("sudo dmesg | grep -i -e xid -e aer -e pcieport",),
                ),
                Fix(title="Have the card replaced if it recurs in another slot"),
            ),
            evidence=(
                *(
                    (Evidence(label="NVML", value=str(lost[place]), via="NVML"),)
                    if place in lost
                    else ()
                ),
                *facts.log_evidence(told.get(place, ())),
            ),
        )
