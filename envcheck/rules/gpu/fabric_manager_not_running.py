"""fabric-manager-not-running, fabric-manager-version-mismatch: NVSwitch machines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.model.finding import Evidence, Fix
from envcheck.rules import drivers, facts
from envcheck.rules.base import finding, rule
from envcheck.versions import Release

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.model.snapshot import Snapshot
    from envcheck.rules.base import Answer

UNIT = "nvidia-fabricmanager"


def _not_ready(snapshot: Snapshot) -> bool:
    answer = snapshot.host.driver.libcuda
    return answer.outcome == "error" and answer.code == facts.CUDA_FABRIC_NOT_READY


def _waiting(snapshot: Snapshot) -> tuple[str, ...]:
    """GPUs that wait for their fabric, as `GPU 0: NVIDIA H100: in-progress`."""
    found = []
    for gpu in facts.gpus(snapshot):
        failed = gpu.fabric_state == "completed" and bool(gpu.fabric_status)
        if gpu.fabric_state in {"not-started", "in-progress"} or failed:
            state = f"failed with status {gpu.fabric_status}" if failed else gpu.fabric_state
            found.append(f"{facts.gpu_label(gpu)}: {state}")
    return tuple(found)


def _fabric_machine(snapshot: Snapshot) -> bool:
    """An NVSwitch machine by evidence: switches on the bus, GPUs in a fabric, or cuInit 802."""
    return (
        _not_ready(snapshot)
        or bool(facts.nvswitches(snapshot))
        or any(gpu.fabric_state not in {None, "not-supported"} for gpu in facts.gpus(snapshot))
    )


@rule(
    "fabric-manager-version-mismatch",
    component="gpu",
    when=_fabric_machine,
    explains=("fabric-manager-not-running",),
)
def fabric_manager_version_mismatch(snapshot: Snapshot, matrix: Matrix) -> Answer:
    """The fabric manager is of exactly the driver's release.

    Asked only where the fabric is this machine's to manage: it has the switches, runs the manager,
    or CUDA waits for the fabric. While CUDA works the finding is a warning: the next start of the
    service fails.

    Why: the fabric manager refuses to start beside a driver of another release, and then no GPU of
    the machine can be used by CUDA.

    Fix: install both in one release.
    """
    installed = snapshot.host.fabric_manager.installed_version
    manager = Release.maybe(installed)
    driver = facts.driver_version(snapshot)
    concerns_here = (
        _not_ready(snapshot)
        or bool(facts.nvswitches(snapshot))
        or snapshot.host.fabric_manager.running is True
    )
    if manager is None or driver is None or manager.starts_like(driver) or not concerns_here:
        return
    yield finding(
        "fabric-manager-version-mismatch",
        "warning" if facts.cuda_ok(snapshot) else "error",
        "gpu",
        f"fabric manager {manager}",
        f"The fabric manager is {manager}, but the driver is {driver}",
        found=f"fabric manager {manager}, driver {driver}",
        needed=f"fabric manager {driver}",
        why="It must be of exactly the driver's release, else it does not start and the fabric "
        "stays down.",
        fix=(
            Fix(
                title="Install the fabric manager of the driver's release, then restart it",
                commands=(
                    *drivers.install_fabric_manager(snapshot, matrix),
                    f"sudo systemctl restart {UNIT}",
                ),
            ),
        ),
        evidence=(
            Evidence(label="fabric manager", value=str(installed), via="package database"),
            Evidence(label="driver", value=str(driver), via="kernel module"),
            *facts.answers(snapshot),
        ),
    )


@rule(
    "fabric-manager-not-running",
    component="gpu",
    when=_fabric_machine,
    explains=("driver-state-stale",),
)
def fabric_manager_not_running(snapshot: Snapshot, matrix: Matrix) -> Answer:
    """The NVSwitch fabric of this machine is up.

    Rests on cuInit 802, or on the GPUs' own fabric state when CUDA gave no answer. A machine whose
    CUDA initialises is well, whether or not a fabric manager can be seen: in a virtual machine it
    runs on the host.

    Why: on NVSwitch machines CUDA waits until the fabric manager has set up the switches. Newer
    fabrics (B200 class) also need the NVLink subnet manager.

    Fix: install the fabric manager of the driver's release and start it.
    """
    if facts.cuda_ok(snapshot):
        return
    waiting = _waiting(snapshot)
    silent = snapshot.host.driver.libcuda.outcome in {"not-asked", "timeout"}
    if not _not_ready(snapshot) and not (waiting and silent):
        return
    manager = snapshot.host.fabric_manager
    guest = facts.in_container(snapshot) or bool(
        snapshot.host.virtual and not facts.nvswitches(snapshot)
    )
    state = (
        "running"
        if manager.running
        else "not running"
        if manager.installed
        else "not installed"
        if manager.installed is False
        else "state not known"
    )
    log = Fix(
        title="If the fabric stays down, read its log; on B200-class fabrics the NVLink subnet "
        "manager must run as well",
        commands=(
            f"sudo journalctl -b -u {UNIT}",
            "systemctl status nvlsm",
            "nvidia-smi -q | grep -A 3 Fabric",
        ),
    )
    if guest:
        roads: tuple[Fix, ...] = (
            Fix(
                title="On the host, outside this container or virtual machine, start the fabric "
                "manager",
                commands=(f"sudo systemctl enable --now {UNIT}",),
            ),
            log,
        )
    elif manager.running:
        roads = (
            Fix(title="Restart it", commands=(f"sudo systemctl restart {UNIT}",)),
            log,
        )
    else:
        roads = (
            Fix(
                title="Start it now and at every boot"
                if manager.installed
                else "Install the fabric manager of the driver's release and start it",
                commands=(
                    *(
                        ()
                        if manager.installed
                        else drivers.install_fabric_manager(snapshot, matrix)
                    ),
                    f"sudo systemctl enable --now {UNIT}",
                ),
            ),
            log,
        )
    yield finding(
        "fabric-manager-not-running",
        "error",
        "gpu",
        "NVSwitch fabric",
        "The NVSwitch fabric is not up, so CUDA cannot start",
        found=f"fabric manager {state}; "
        + (facts.said(snapshot.host.driver.libcuda) if _not_ready(snapshot) else waiting[0]),
        needed="the fabric manager running and every GPU registered with the fabric",
        why="On an NVSwitch machine CUDA starts only after the fabric manager has set up the "
        "switches.",
        fix=roads,
        evidence=(
            Evidence(label="fabric manager", value=state, via="systemd"),
            *(Evidence(label="fabric", value=each, via="NVML") for each in waiting),
            *(
                Evidence(label="NVSwitch", value=each.address, via="PCI bus")
                for each in facts.nvswitches(snapshot)
            ),
            *facts.answers(snapshot),
        ),
    )
