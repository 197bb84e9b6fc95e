"""Wording of findings about GPUs and how they reach each other that rest on messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.model.finding import Fix
from envcheck.rules import drivers, fixes
from envcheck.rules.gpu.gpu_memory_error import reset
from envcheck.rules.told.driver_words import LOG
from envcheck.rules.told.wording import Wording, captured, fixed

if TYPE_CHECKING:
    from envcheck.model.symptom import Symptom
    from envcheck.rules.told.heard import Heard

UNIT = "nvidia-fabricmanager"


def _fabric(heard: Heard, _symptoms: tuple[Symptom, ...]) -> tuple[Fix, ...]:
    return (
        Fix(
            title="On the host, install the fabric manager of the driver's release and start it",
            commands=(
                *drivers.install_fabric_manager(heard.snapshot, heard.matrix),
                f"sudo systemctl enable --now {UNIT}",
            ),
        ),
        Fix(
            title="If the fabric stays down, read its log; on B200-class fabrics the NVLink subnet "
            "manager must run as well",
            commands=(f"sudo journalctl -b -u {UNIT}", "systemctl status nvlsm"),
        ),
    )


def _fabric_release(heard: Heard, symptoms: tuple[Symptom, ...]) -> tuple[Fix, ...]:
    driver = captured(symptoms, "driver")
    return (
        Fix(
            title="Install the fabric manager of exactly the driver's release"
            + (f", {driver}" if driver else "")
            + ", then restart it",
            commands=(
                *drivers.install_fabric_manager(heard.snapshot, heard.matrix),
                f"sudo systemctl restart {UNIT}",
            ),
        ),
    )


def _reset(heard: Heard, _symptoms: tuple[Symptom, ...]) -> tuple[Fix, ...]:
    del heard
    return (
        *reset(None),
        Fix(title="If errors come back after the reset, have the card replaced"),
    )


def _holders(heard: Heard, symptoms: tuple[Symptom, ...]) -> tuple[Fix, ...]:
    del heard, symptoms
    return (
        Fix(
            title="See who holds it",
            commands=("nvidia-smi --query-compute-apps=pid,name,used_memory --format=csv",),
        ),
        Fix(
            title="End those that are left over, or use another GPU",
            commands=("export CUDA_VISIBLE_DEVICES=<index>",),
        ),
    )


_P2P_OFF = Fix(
    title="Until it is changed, let NCCL go through host memory",
    commands=("export NCCL_P2P_DISABLE=1",),
)

WORDS: dict[str, Wording] = {
    "gpu-missing-from-driver": Wording(
        component="gpu",
        subject="GPU",
        title="A GPU on the bus is not reported by the driver",
        needed="every GPU on the bus is reported by the driver",
        why="The driver did not take this device at start, or gave it up since.",
        roads=fixed(LOG, fixes.reboot()),
    ),
    "gpu-exclusive-mode": Wording(
        component="gpu",
        subject="GPU",
        title="Another process holds the GPU exclusively",
        needed="compute mode default, for several processes on one GPU",
        why="In an exclusive compute mode one process holds the GPU and every other one is "
        "refused; in prohibited mode all are.",
        roads=fixed(
            Fix(
                title="See the compute mode and who uses the GPU",
                commands=("nvidia-smi -q -d COMPUTE", "nvidia-smi"),
            ),
            Fix(
                title="Allow several processes (needs root, on the host)",
                commands=("sudo nvidia-smi -c DEFAULT",),
            ),
        ),
    ),
    "gpu-init-failed": Wording(
        component="gpu",
        subject="GPU",
        title="The driver sees the GPU but cannot initialise it",
        needed="a GPU that starts under this driver",
        why="The card answers on the PCI bus, but the driver's start of it fails: address space, "
        "firmware, seating, or a broken card.",
        roads=fixed(
            Fix(
                title="In the firmware settings of the machine switch on Above 4G Decoding and "
                "Resizable BAR; then power off fully and reseat the card and its power cables"
            ),
            Fix(
                title="See the driver's own report",
                commands=("sudo dmesg | grep -e NVRM -e nvidia", "sudo nvidia-bug-report.sh"),
            ),
            Fix(title="If it fails in another slot or machine as well, have the card replaced"),
        ),
    ),
    "gpu-fell-off-bus": Wording(
        component="gpu",
        subject="GPU",
        title="A GPU fell off the PCI bus",
        needed="a GPU that answers on the bus",
        why="The link to the card broke while it was in use: power, heat, a bad seat or riser, or "
        "a broken card. Software does not cause it.",
        roads=fixed(
            fixes.reboot("Restart the machine (a cold start if it stays away)"),
            Fix(title="Check power cables and supply, cooling, and the seat of card and riser"),
            Fix(
                title="Look for PCI Express errors beside it",
                commands=("sudo dmesg | grep -i -e xid -e aer -e pcieport",),
            ),
            Fix(title="Have the card replaced if it recurs in another slot"),
        ),
        names=("address",),
    ),
    "gpu-memory-error": Wording(
        component="gpu",
        subject="GPU",
        title="A GPU has had uncorrectable memory errors",
        needed="no uncorrectable memory error since the driver was loaded",
        why="An uncorrectable error ends the programs on the GPU and can repeat until the bad "
        "memory is retired, which happens at a reset.",
        roads=_reset,
        names=("address",),
    ),
    "gpu-row-remap-pending": Wording(
        component="gpu",
        subject="GPU",
        title="A GPU waits for a reset to retire bad memory",
        needed="a reset of this GPU",
        why="Memory that the driver has marked bad stays in use until the GPU is reset.",
        roads=_reset,
        severity="warning",
    ),
    "gpu-xid": Wording(
        component="gpu",
        subject="GPU",
        title="The driver reports a fault of the GPU",
        needed="no such report",
        why="The kernel module logs a numbered report when it meets a fault that it cannot mend.",
        roads=fixed(
            Fix(
                title="Take work off the GPU and reset it, or restart the machine",
                commands=("sudo nvidia-smi --gpu-reset -i <index>", "sudo reboot"),
            ),
            Fix(
                title="Keep the log of the first report: later ones follow from it",
                commands=("sudo dmesg | grep -i xid",),
            ),
        ),
        names=("address",),
    ),
    "gpu-throttled": Wording(
        component="gpu",
        subject="GPU",
        title="A GPU is slowed down by heat or its power supply",
        needed="clocks not held down by heat or power brake",
        why="The card lowers its clocks to protect itself; work is slower, and results stay right.",
        roads=fixed(
            Fix(title="Check fans, air flow, dust and ambient temperature, and the power cables"),
            Fix(
                title="Watch temperature, power and the reasons under load",
                commands=("nvidia-smi -q -d TEMPERATURE,POWER,PERFORMANCE",),
            ),
        ),
        severity="warning",
    ),
    "gpu-memory-occupied": Wording(
        component="gpu",
        subject="GPU memory",
        title="Other processes hold most of the GPU's memory",
        needed="enough free memory for this program",
        why="What they hold is not available to this program, which then runs out of memory.",
        roads=_holders,
    ),
    "fabric-manager-not-running": Wording(
        component="gpu",
        subject="NVSwitch fabric",
        title="The NVSwitch fabric is not up, so CUDA cannot start",
        needed="the fabric manager running and every GPU registered with the fabric",
        why="On an NVSwitch machine CUDA starts only after the fabric manager has set up the "
        "switches.",
        roads=_fabric,
    ),
    "fabric-manager-version-mismatch": Wording(
        component="gpu",
        subject="fabric manager",
        title="The fabric manager is not of the driver's release",
        needed="the fabric manager in exactly the driver's release",
        why="It must be of exactly the driver's release, else it does not start and the fabric "
        "stays down.",
        roads=_fabric_release,
    ),
    "mig-instance-limit": Wording(
        component="gpu",
        subject="MIG",
        title="A process can use one MIG instance, and this one does not select exactly one",
        needed="one instance a process",
        why="A CUDA process sees one MIG instance only; code that counts on several devices fails.",
        roads=fixed(
            Fix(title="List the instances and their UUIDs", commands=("nvidia-smi -L",)),
            Fix(
                title="Give each process one of them",
                commands=("export CUDA_VISIBLE_DEVICES=<one MIG UUID>",),
            ),
            Fix(
                title="Or switch MIG mode off (with nothing using the GPU)",
                commands=("sudo nvidia-smi -i <index> -mig 0",),
            ),
        ),
    ),
    "cuda-visible-devices-invalid": Wording(
        component="gpu",
        subject="CUDA_VISIBLE_DEVICES",
        title="The selection of GPUs hides every GPU, or names one that does not exist",
        needed="unset, or existing GPUs such as 0",
        why="CUDA reads the list up to the first entry that it cannot use; what is hidden looks to "
        "a program as if it were not there.",
        roads=fixed(
            Fix(title="Let programs see every GPU", commands=("unset CUDA_VISIBLE_DEVICES",)),
            Fix(title="Or name the ones to use", commands=("export CUDA_VISIBLE_DEVICES=0",)),
        ),
        names=("quoted", "bare", "device", "id"),
    ),
    "p2p-blocked-by-iommu": Wording(
        component="gpu",
        subject="traffic between GPUs",
        title="Traffic between GPUs is redirected through the IOMMU: hangs or wrong data",
        needed="peer traffic that goes straight from GPU to GPU",
        why="With access control services (ACS) or an IOMMU in translating mode, peer-to-peer "
        "traffic takes a way that GPUs do not expect.",
        roads=fixed(
            _P2P_OFF,
            Fix(
                title="Add iommu=pt to the kernel command line, switch off access control services "
                "(ACS) in the firmware settings, and restart"
            ),
        ),
    ),
    "p2p-unavailable": Wording(
        component="gpu",
        subject="traffic between GPUs",
        title="These GPUs have no peer access: slower, not broken",
        needed="nothing",
        why="GPUs without NVLink, GeForce cards above all, exchange data through host memory.",
        roads=fixed(
            Fix(
                title="Nothing to do; where a program insists, say so to NCCL",
                commands=("export NCCL_P2P_DISABLE=1",),
            )
        ),
        severity="info",
    ),
}
