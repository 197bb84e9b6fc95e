"""driver-not-loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.model.finding import Evidence, Fix
from envcheck.rules import facts, fixes
from envcheck.rules.base import finding, rule

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.model.finding import Finding
    from envcheck.model.snapshot import Snapshot
    from envcheck.rules.base import Answer


def _silent_driver(snapshot: Snapshot) -> bool:
    return (
        facts.discrete(snapshot)
        and (
            bool(facts.usable_pci_gpus(snapshot))
            or (snapshot.host.pci is None and snapshot.host.driver.installed is True)
        )
        and not facts.driver_works(snapshot)
    )


@rule("driver-not-loaded", component="driver", when=_silent_driver, explains=facts.AFTER_DRIVER)
def driver_not_loaded(snapshot: Snapshot, matrix: Matrix) -> Answer:
    """The kernel module of an installed driver is loaded, and its device files can be opened.

    Why: after a kernel update the module may not have been built for the new kernel; then nothing
    loads at boot, and nvidia-smi says that it could not communicate with the driver. A loaded
    module without device files, or with files that this user may not open, looks the same to a
    program.

    Fix: build the module for the running kernel and load it; or create the device files; or let
    this user open them.
    """
    driver = snapshot.host.driver
    absent = driver.module_loaded is False or facts.said_not_loaded(snapshot)
    if not facts.driver_loaded(snapshot) and absent:
        if facts.in_container(snapshot):
            yield _host_module_absent(snapshot)
        elif driver.installed and not _without_gpu_by_choice(snapshot):
            yield _module_not_loaded(snapshot, matrix)
    elif facts.driver_loaded(snapshot) and facts.on_host(snapshot):
        closed = facts.closed_nodes(snapshot)
        if closed:
            yield _nodes_closed(snapshot, closed)
        elif facts.missing_nodes(snapshot):
            yield _nodes_missing(snapshot)


def _without_gpu_by_choice(snapshot: Snapshot) -> bool:
    """A hosted notebook without a GPU, whose image has the driver's tools all the same."""
    hosted = any(each.name == "on-colab" for each in snapshot.symptoms)
    return hosted and not facts.has_gpu(snapshot)


def _module_not_loaded(snapshot: Snapshot, matrix: Matrix) -> Finding:
    driver = snapshot.host.driver
    kernel = snapshot.host.os.kernel or "the running kernel"
    built = fixes.module_built(snapshot)
    evidence = [Evidence(label="nvidia module", value="not loaded", via="/sys/module/nvidia")]
    evidence += [
        Evidence(
            label=f"DKMS {each.name} {each.version}",
            value=f"{each.state}, for kernel {each.kernel}" if each.kernel else each.state,
            via="dkms status",
        )
        for each in driver.dkms or ()
    ]
    if built is not None:
        evidence.append(
            Evidence(
                label=f"module file for {kernel}",
                value=driver.module_file or ("present" if built else "none"),
                via="/lib/modules",
            )
        )
    evidence += facts.answers(snapshot)
    evidence += facts.log_evidence(facts.log_lines(snapshot, r"\bnvidia\b", r"NVRM"))
    if built is False:
        why = (
            f"No nvidia module exists for kernel {kernel}: it was not built after a kernel update, "
            "most often because that kernel's headers are not installed."
        )
        road: tuple[Fix, ...] = (fixes.rebuild_module(snapshot, matrix),)
    else:
        why = (
            "The driver is installed but its kernel module is not in the kernel, so no program can "
            "reach the GPU. Loading it by hand shows the kernel's reason if it refuses."
        )
        road = (fixes.load_module(), fixes.rebuild_module(snapshot, matrix))
    return finding(
        "driver-not-loaded",
        "error",
        "driver",
        facts.driver_subject(snapshot),
        "The NVIDIA driver is installed, but its kernel module is not loaded",
        found="nvidia kernel module not loaded",
        needed=f"the nvidia module, built for kernel {kernel}, loaded",
        why=why,
        fix=road,
        evidence=evidence,
    )


def _host_module_absent(snapshot: Snapshot) -> Finding:
    return finding(
        "driver-not-loaded",
        "error" if facts.needs_gpu(snapshot) else "warning",
        "driver",
        "NVIDIA driver of the host",
        "The host of this container has a GPU, but no NVIDIA kernel module is loaded",
        found="nvidia kernel module not loaded in the host's kernel",
        needed="a working NVIDIA driver on the host",
        why="Containers share the host's kernel, and it holds no nvidia module. Whether a driver "
        "is installed on the host cannot be seen from in here.",
        fix=(
            Fix(
                title="On the host, outside the container, see what is wrong with the driver",
                commands=("envcheck doctor", "nvidia-smi"),
            ),
        ),
        evidence=(
            Evidence(label="nvidia module", value="not loaded", via="/sys/module/nvidia"),
            *(
                Evidence(label="GPU", value=facts.pci_label(each), via="/sys/bus/pci/devices")
                for each in facts.usable_pci_gpus(snapshot)
            ),
        ),
    )


def _nodes_closed(snapshot: Snapshot, closed: tuple[str, ...]) -> Finding:
    return finding(
        "driver-not-loaded",
        "error",
        "driver",
        ", ".join(closed),
        "The driver is loaded, but this user may not open its device files",
        found=f"no permission for {', '.join(closed)}",
        needed="device files that this user may read and write",
        why="The kernel module is there and works for others; for this user every call to it "
        "fails, which programs report as a missing or unreachable driver.",
        fix=(
            Fix(
                title="See which group owns the files, join it, and log in again",
                commands=(
                    f"ls -l {' '.join(closed)}",
                    f'sudo usermod -aG "$(stat -c %G {closed[0]})" "$USER"',
                ),
            ),
            Fix(
                title="Or open them for every user until the next restart (what stays is set by "
                "the NVreg_DeviceFileMode option of the nvidia module)",
                commands=(f"sudo chmod a+rw {' '.join(closed)}",),
            ),
        ),
        evidence=(
            *(Evidence(label=path, value="not accessible", via="access") for path in closed),
            *facts.answers(snapshot),
        ),
    )


def _nodes_missing(snapshot: Snapshot) -> Finding:
    return finding(
        "driver-not-loaded",
        "error",
        "driver",
        "/dev/nvidia*",
        "The driver is loaded, but its device files do not exist",
        found="no /dev/nvidia0",
        needed="/dev/nvidiactl, /dev/nvidia-uvm and one /dev/nvidiaN a GPU",
        why="Without a display server nothing creates the device files at boot; nvidia-modprobe or "
        "the persistence daemon does.",
        fix=(
            Fix(title="Create them now", commands=("sudo nvidia-modprobe -c 0 -u",)),
            Fix(
                title="And at every boot",
                commands=("sudo systemctl enable --now nvidia-persistenced",),
            ),
        ),
        evidence=(
            Evidence(label="/dev/nvidia*", value="none", via="/dev"),
            *facts.answers(snapshot),
        ),
    )
