"""gpu-memory-error, gpu-row-remap-pending: faults of the GPU's memory and what repairs them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.matrix import query
from envcheck.model.finding import Evidence, Fix
from envcheck.rules import facts
from envcheck.rules.base import cite, finding, rule

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.matrix.schema import Xid
    from envcheck.model.host import Gpu
    from envcheck.model.snapshot import Snapshot
    from envcheck.rules.base import Answer

MEMORY_XIDS = frozenset({48, 64, 94, 95, 140, 171, 172})
"""Double-bit error, failed remapping, contained and uncontained errors, unrecovered ECC, and the
details of DRAM and SRAM errors."""

CUDA_ECC_UNCORRECTABLE = 214


def is_memory_xid(number: int, row: Xid | None) -> bool:
    """Whether an Xid reports a memory error, by its number or by its row of the table."""
    if row is None or row.finding is None:
        return number in MEMORY_XIDS
    return row.finding == "gpu-memory-error" and row.severity != "info"


def reset(gpu: Gpu | None) -> tuple[Fix, ...]:
    """How to reset a GPU when nothing uses it; by restart when the driver cannot do it alone."""
    which = str(gpu.index) if gpu is not None else "<index>"
    return (
        Fix(
            title="Take work off this GPU, then reset it (on the host, as root, with nothing using "
            "it; GPUs joined by NVLink are reset together)",
            commands=(f"sudo nvidia-smi --gpu-reset -i {which}",),
        ),
        Fix(title="If the reset is refused, restart the machine", commands=("sudo reboot",)),
    )


@rule("gpu-memory-error", component="gpu", explains=("gpu-xid", "driver-state-stale"))
def gpu_memory_error(snapshot: Snapshot, matrix: Matrix) -> Answer:
    """No GPU has had an uncorrectable memory error since the driver was loaded.

    Rests on the driver's ECC counters, a failed row remapping, cuInit 214, and memory Xids in the
    kernel log. Corrected errors are no finding.

    Why: an uncorrectable error kills the programs on that GPU; the driver then retires the memory
    at the next reset.

    Fix: take work off the GPU and reset it. Replace it when errors recur or remapping failed.
    """
    reports: dict[str, list[Evidence]] = {}
    rows = []
    for gpu in facts.gpus(snapshot):
        place = facts.short_bus(gpu.bus_id) or str(gpu.index)
        if gpu.ecc_uncorrected:
            reports.setdefault(place, []).append(
                Evidence(
                    label="uncorrectable ECC errors", value=str(gpu.ecc_uncorrected), via="NVML"
                )
            )
        if gpu.remap_failed:
            reports.setdefault(place, []).append(
                Evidence(label="row remapping", value="failed", via="NVML")
            )
    for xid in facts.xids(snapshot):
        row = query.xid(matrix, xid.number)
        if is_memory_xid(xid.number, row):
            reports.setdefault(xid.address, []).extend(facts.log_evidence((xid.line,)))
            rows.append(row)
    cuda = snapshot.host.driver.libcuda
    if cuda.outcome == "error" and cuda.code == CUDA_ECC_UNCORRECTABLE and not reports:
        reports[""] = [Evidence(label="cuInit", value=facts.said(cuda), via="libcuda")]
    for place, evidence in reports.items():
        hit = _gpu(snapshot, place)
        name = facts.gpu_label(hit) if hit else facts.at_address(snapshot, place)
        failed = hit is not None and bool(hit.remap_failed)
        replace = Fix(title="If errors come back after the reset, have the card replaced")
        if failed:
            replace = Fix(title="Have the card replaced: it has no spare memory rows left")
        yield finding(
            "gpu-memory-error",
            "error",
            "gpu",
            name,
            f"{name} has had uncorrectable memory errors",
            found="; ".join(f"{each.label}: {each.value}" for each in evidence[-3:]),
            needed="no uncorrectable memory error since the driver was loaded",
            why="An uncorrectable error ends the programs on the GPU and can repeat until the bad "
            "memory is retired, which happens at a reset.",
            fix=(replace, *reset(hit)) if failed else (*reset(hit), replace),
            evidence=evidence[-5:],
            sources=cite(matrix, *rows),
        )


def _gpu(snapshot: Snapshot, place: str) -> Gpu | None:
    for gpu in facts.gpus(snapshot):
        if place and place in {facts.short_bus(gpu.bus_id), str(gpu.index)}:
            return gpu
    return None


def _counts_remaps(snapshot: Snapshot) -> bool:
    return any(gpu.remap_pending or gpu.retired_pages_pending for gpu in facts.gpus(snapshot))


@rule("gpu-row-remap-pending", component="gpu", when=_counts_remaps)
def gpu_row_remap_pending(snapshot: Snapshot, _matrix: Matrix) -> Answer:
    """No GPU waits for a reset to retire bad memory.

    Why: the driver has marked bad rows (or pages, on older GPUs). They stay in use until the GPU is
    reset, so the error can repeat.

    Fix: reset the GPU in a maintenance window.
    """
    for gpu in facts.gpus(snapshot):
        if not (gpu.remap_pending or gpu.retired_pages_pending):
            continue
        what = "row remapping" if gpu.remap_pending else "page retirement"
        yield finding(
            "gpu-row-remap-pending",
            "warning",
            "gpu",
            facts.gpu_label(gpu),
            f"{facts.gpu_label(gpu)} waits for a reset to retire bad memory",
            found=f"{what} pending",
            needed="a reset of this GPU",
            why="Memory that the driver has marked bad stays in use until the GPU is reset.",
            fix=reset(gpu),
            evidence=(Evidence(label=f"{what} pending", value="yes", via="NVML"),),
        )
