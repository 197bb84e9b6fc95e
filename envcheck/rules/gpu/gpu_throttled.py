"""gpu-throttled, pcie-link-degraded: a GPU that works below its speed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.model.finding import Evidence, Fix
from envcheck.rules import facts
from envcheck.rules.base import finding, rule

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.model.host import Gpu
    from envcheck.model.snapshot import Snapshot
    from envcheck.rules.base import Answer

BUSY_PERCENT = 50
"""Utilisation from which a GPU counts as loaded; below it, clocks and links rest."""

CAUSES = {
    "hw-thermal": "the card is too hot",
    "sw-thermal": "the card, or its memory, is at its temperature limit",
    "hw-power-brake": "the machine's power supply asks the card to draw less",
    "hw-slowdown": "the hardware slows the card down, for heat or power",
}


def _held_down(gpu: Gpu) -> tuple[str, ...]:
    """Reasons that point to a fault; a power cap under load and idle clocks are normal."""
    reasons = tuple(each for each in gpu.throttle_reasons if each in CAUSES)
    precise = tuple(each for each in reasons if each != "hw-slowdown")
    return precise or (() if "idle" in gpu.throttle_reasons else reasons)


@rule("gpu-throttled", component="gpu", when=lambda s: any(map(_held_down, facts.gpus(s))))
def gpu_throttled(snapshot: Snapshot, _matrix: Matrix) -> Answer:
    """No GPU is slowed down by heat or by its power supply.

    The software power cap is no finding: a busy card normally runs at it.

    Why: the card lowers its clocks to protect itself; work is slower, and results stay right.

    Fix: air flow, dust, ambient temperature; power cables and supply.
    """
    for gpu in facts.gpus(snapshot):
        reasons = _held_down(gpu)
        if not reasons:
            continue
        heat = any("thermal" in each for each in reasons)
        evidence = [
            Evidence(label="clocks held down by", value=", ".join(gpu.throttle_reasons), via="NVML")
        ]
        if gpu.temperature_c is not None:
            evidence.append(
                Evidence(label="temperature", value=f"{gpu.temperature_c} °C", via="NVML")
            )
        if gpu.power_watts is not None:
            evidence.append(
                Evidence(
                    label="power",
                    value=f"{gpu.power_watts:.0f} W of {gpu.power_limit_watts or 0:.0f} W"
                    if gpu.power_limit_watts
                    else f"{gpu.power_watts:.0f} W",
                    via="NVML",
                )
            )
        yield finding(
            "gpu-throttled",
            "warning",
            "gpu",
            facts.gpu_label(gpu),
            f"{facts.gpu_label(gpu)} is slowed down: {CAUSES[reasons[0]]}",
            found=", ".join(reasons),
            needed="clocks not held down by heat or power brake",
            why=f"The clocks are lowered because {CAUSES[reasons[0]]}.",
            fix=(
                Fix(title="Check fans, air flow, dust and ambient temperature")
                if heat
                else Fix(title="Check the power cables of the card and the power supply's load"),
                Fix(
                    title="Watch temperature, power and the reasons under load",
                    commands=(f"nvidia-smi -i {gpu.index} -q -d TEMPERATURE,POWER,PERFORMANCE",),
                ),
            ),
            evidence=evidence,
        )


def _loaded(gpu: Gpu) -> bool:
    return gpu.utilization_percent is not None and gpu.utilization_percent >= BUSY_PERCENT


@rule("pcie-link-degraded", component="gpu", when=lambda s: any(map(_loaded, facts.gpus(s))))
def pcie_link_degraded(snapshot: Snapshot, _matrix: Matrix) -> Answer:
    """A busy GPU runs its PCI Express link at what card and slot can do.

    Idle GPUs lower their link to save power and are never judged. A link at half its lanes or one
    generation below is information (many boards split a slot on purpose); further below it is a
    warning. In virtual machines the link that is shown may be made up: information at most.

    Why: copies between host and GPU, and between GPUs without NVLink, are as slow as the link.

    Fix: reseat the card, check riser and slot, look at the firmware's link settings.
    """
    for gpu in facts.gpus(snapshot):
        width, width_max = gpu.pcie_width, gpu.pcie_width_max
        speed, speed_max = gpu.pcie_generation, gpu.pcie_generation_max
        if not _loaded(gpu) or not (width and width_max and speed and speed_max):
            continue
        if width >= width_max and speed >= speed_max:
            continue
        far_below = width * 4 <= width_max or speed + 2 <= speed_max
        yield finding(
            "pcie-link-degraded",
            "warning" if far_below and not snapshot.host.virtual else "info",
            "gpu",
            facts.gpu_label(gpu),
            f"The PCI Express link of {facts.gpu_label(gpu)} is below what card and slot can do",
            found=f"generation {speed}, {width} lanes, under load",
            needed=f"generation {speed_max}, {width_max} lanes",
            why="The link was set up with fewer lanes or at a lower speed, which slows every copy.",
            fix=(
                Fix(title="Power off, reseat the card, and check riser and slot wiring"),
                Fix(title="Look at the slot's lane split and link speed in the firmware settings"),
                Fix(
                    title="See what both ends offer",
                    commands=(f"sudo lspci -vv -s {gpu.bus_id or '<address>'} | grep -i lnk",),
                ),
            ),
            evidence=(
                Evidence(label="link now", value=f"generation {speed}, x{width}", via="NVML"),
                Evidence(
                    label="link at best", value=f"generation {speed_max}, x{width_max}", via="NVML"
                ),
                Evidence(label="utilisation", value=f"{gpu.utilization_percent} %", via="NVML"),
            ),
        )
