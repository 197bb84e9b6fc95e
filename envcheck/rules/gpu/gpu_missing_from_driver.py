"""gpu-missing-from-driver."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from envcheck.model.finding import Evidence, Fix
from envcheck.rules import facts
from envcheck.rules.base import finding, rule

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.model.snapshot import Snapshot
    from envcheck.rules.base import Answer


def _whole_machine(snapshot: Snapshot) -> bool:
    """A host where this process may see every GPU: no container, no batch job, no closed device."""
    return (
        facts.discrete(snapshot)
        and facts.on_host(snapshot)
        and facts.nvml_ok(snapshot)
        and (snapshot.host.pci is not None or not facts.gpus(snapshot))
        and not any(each.name.startswith("SLURM_") for each in snapshot.env.variables)
        and not any(re.search(r"nvidia\d+$", path) for path in facts.closed_nodes(snapshot))
    )


@rule(
    "gpu-missing-from-driver",
    component="gpu",
    when=_whole_machine,
    needs=("host.pci", "host.gpus"),
    explains=("cuda-visible-devices-invalid",),
)
def gpu_missing_from_driver(snapshot: Snapshot, _matrix: Matrix) -> Answer:
    """The driver reports every NVIDIA GPU that is on the PCI bus.

    Silent in containers and batch jobs, which are given some of the GPUs on purpose, and for GPUs
    bound to another kernel driver.

    Why: a GPU that the driver skipped at start is invisible to every program, and jobs that expect
    it fail.

    Fix: read why in the kernel log; check power and seating; look for an exclusion setting.
    """
    missing = tuple(
        each
        for each in facts.unreported_pci_gpus(snapshot)
        if each.kernel_driver not in facts.RIVAL_DRIVERS
    )
    if not missing:
        return
    seen = facts.gpus(snapshot)
    labels = ", ".join(facts.pci_label(each) for each in missing)
    yield finding(
        "gpu-missing-from-driver",
        "warning" if seen else "error",
        "gpu",
        labels,
        f"The PCI bus shows {len(missing) + len(seen)} NVIDIA GPUs, the driver {len(seen)}",
        found=f"not reported by the driver: {labels}",
        needed="every GPU on the bus is reported by the driver",
        why="The driver did not take this device at start, or gave it up since; its log says why.",
        fix=(
            Fix(
                title="Read what the kernel says about it",
                commands=(f"sudo dmesg | grep -i -e NVRM -e {missing[0].address}",),
            ),
            Fix(
                title="See whether a setting excludes it",
                commands=("grep -rn -i exclude /etc/modprobe.d /proc/driver/nvidia/params",),
            ),
            Fix(title="Restart; if it stays away, power off and reseat the card and its cables"),
        ),
        evidence=(
            *(
                Evidence(
                    label=facts.pci_label(each),
                    value=f"bound to {each.kernel_driver or 'no driver'}",
                    via="/sys/bus/pci/devices",
                )
                for each in missing
            ),
            Evidence(label="GPUs that the driver reports", value=str(len(seen)), via="NVML"),
            *facts.log_evidence(
                facts.log_lines(snapshot, *(re.escape(each.address) for each in missing))
            ),
        ),
    )
