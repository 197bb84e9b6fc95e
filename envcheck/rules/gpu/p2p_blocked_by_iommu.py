"""p2p-blocked-by-iommu."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from envcheck.model.finding import Evidence, Fix
from envcheck.rules import facts
from envcheck.rules.base import finding, rule
from envcheck.rules.smoke import stages

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.model.host import Gpu
    from envcheck.model.smoke import Stage
    from envcheck.model.snapshot import Snapshot
    from envcheck.rules.base import Answer

FAULT = re.compile(r"IO_PAGE_FAULT|DMAR:.*fault|arm-smmu.*(fault|event)", re.IGNORECASE)


def _several(snapshot: Snapshot) -> bool:
    tried = _experiment(snapshot)[1] is not None
    return len(facts.gpus(snapshot)) > 1 and (facts.on_host(snapshot) or tried)


def _names(line: str, gpu: Gpu) -> bool:
    """Whether a log line names a GPU by address, domain or not; a time of day does not count."""
    place = facts.short_bus(gpu.bus_id)[5:]
    pattern = rf"(?<![0-9a-f:])(?:[0-9a-f]{{4}}:)?{re.escape(place)}\.[0-7]\b"
    return bool(place) and re.search(pattern, line, re.IGNORECASE) is not None


def _experiment(snapshot: Snapshot) -> tuple[Stage | None, Stage | None]:
    """What GPUs failed to do together in the smoke test, and the same without peer access."""
    failed = next((e for e in stages.failed(snapshot) if e.name in stages.COLLECTIVE), None)
    done = snapshot.smoke.stages if snapshot.smoke is not None else ()
    works = next((e for e in done if e.name == stages.WITHOUT_P2P and e.outcome == "ok"), None)
    return failed, works


@rule("p2p-blocked-by-iommu", component="nccl", when=_several)
def p2p_blocked_by_iommu(snapshot: Snapshot, _matrix: Matrix) -> Answer:
    """The IOMMU lets the GPUs write to each other.

    Needs proof: an IOMMU fault in the kernel log that names one of several GPUs, or a smoke test in
    which GPUs work together without peer access and not with it. An IOMMU that is merely switched
    on is no finding.

    Why: with the IOMMU or PCI access control on, traffic between GPUs is redirected through the
    root complex, and transfers hang or bring wrong data.

    Fix: pass-through mode of the IOMMU and access control off in the firmware; until then run NCCL
    without peer access.
    """
    faults = [line for line in snapshot.host.driver.kernel_log or () if FAULT.search(line)]
    hit = [gpu for gpu in facts.gpus(snapshot) if any(_names(line, gpu) for line in faults)]
    lines = tuple(line for line in faults if any(_names(line, gpu) for gpu in hit))
    failed, works = _experiment(snapshot)
    if not lines and not (failed and works):
        return
    command_line = snapshot.host.kernel_command_line
    yield finding(
        "p2p-blocked-by-iommu",
        "error" if failed and works else "warning",
        "nccl",
        ", ".join(map(facts.gpu_label, hit or facts.gpus(snapshot))),
        "The IOMMU blocks transfers of a GPU" if lines else "Transfers between GPUs are blocked",
        found=lines[-1].strip()
        if lines or failed is None
        else f"{failed.name}: {failed.detail}; without peer access it works",
        needed="GPUs that reach each other's memory without the IOMMU in between",
        why="The kernel log shows that the IOMMU refused an access of this GPU; transfers between "
        "GPUs then hang or bring wrong data."
        if lines
        else "What fails with peer access and works through host memory is stopped on the way "
        "between the GPUs: by the IOMMU, or by PCI access control (ACS).",
        fix=(
            Fix(
                title="Until it is changed, let NCCL go through host memory",
                commands=("export NCCL_P2P_DISABLE=1",),
            ),
            Fix(
                title="Add iommu=pt to the kernel command line, switch off access control services "
                "(ACS) in the firmware settings, and restart"
            ),
        ),
        evidence=(
            *facts.log_evidence(lines),
            *(stages.evidence((failed, works)) if failed and works else ()),
            *(
                (Evidence(label="kernel command line", value=command_line, via="/proc/cmdline"),)
                if command_line
                else ()
            ),
        ),
    )
