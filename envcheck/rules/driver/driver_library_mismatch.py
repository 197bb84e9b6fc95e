"""driver-library-mismatch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.model.finding import Evidence, Fix
from envcheck.rules import facts, fixes
from envcheck.rules.base import finding, rule
from envcheck.versions import Release

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.model.snapshot import Snapshot
    from envcheck.rules.base import Answer


def _versions_differ(snapshot: Snapshot) -> bool:
    driver = snapshot.host.driver
    module = Release.maybe(driver.module_version)
    files = Release.maybe(driver.userspace_version)
    return module is not None and files is not None and not module.starts_like(files)


def _could_mismatch(snapshot: Snapshot) -> bool:
    """Not where the driver's libraries come from Windows or L4T, nor where both sides answer."""
    return facts.discrete(snapshot) and not (facts.nvml_ok(snapshot) and facts.cuda_ok(snapshot))


@rule(
    "driver-library-mismatch",
    component="driver",
    when=_could_mismatch,
    explains=(*facts.AFTER_DRIVER, "driver-not-loaded"),
)
def driver_library_mismatch(snapshot: Snapshot, matrix: Matrix) -> Answer:
    """The loaded kernel module and the driver's user-space libraries are of one release.

    Told by NVML itself (error 18), or by unequal releases of the loaded module and of the files on
    disk while the driver does not answer. Libraries of cuda-compat are not counted.

    Why: an update replaced the files on disk while the old module stayed in the kernel. The
    libraries refuse to talk to a module of another release.

    Fix: load the new module, by a restart or by reloading the modules. Reinstalling helps only when
    the module file on disk is of another release too.
    """
    driver = snapshot.host.driver
    told = facts.said_mismatch(snapshot)
    differ = _versions_differ(snapshot)
    if not told and (not differ or facts.driver_works(snapshot)):
        return
    module = driver.module_version or "unknown release"
    files = driver.userspace_version if differ else None
    evidence = []
    if driver.module_version:
        evidence.append(
            Evidence(label="loaded kernel module", value=module, via="/proc/driver/nvidia/version")
        )
    if driver.userspace_version:
        evidence.append(
            Evidence(
                label="user-space libraries",
                value=driver.userspace_version,
                via="libraries on disk",
            )
        )
    evidence += facts.answers(snapshot)
    evidence += facts.log_evidence(facts.log_lines(snapshot, r"API mismatch"))
    road = (
        _container_road() if facts.in_container(snapshot) else _host_road(snapshot, matrix, files)
    )
    yield finding(
        "driver-library-mismatch",
        "error",
        "driver",
        facts.driver_subject(snapshot),
        "The loaded kernel module and the driver's libraries are of different releases",
        found=f"kernel module {module}, libraries {files or 'of another release'}",
        needed="one release of both",
        why="The driver was updated on disk while the module of the release before stayed in the "
        "kernel, and its libraries refuse to talk to it.",
        fix=road,
        evidence=evidence,
    )


def _host_road(snapshot: Snapshot, matrix: Matrix, files: str | None) -> tuple[Fix, ...]:
    on_disk = fixes.module_on_disk(snapshot)
    wanted = Release.maybe(files)
    if on_disk is not None and wanted is not None and not on_disk.starts_like(wanted):
        return (
            fixes.rebuild_module(snapshot, matrix),
            fixes.reboot(f"Then restart, so that the {files} module is loaded"),
            Fix(
                title=f"If the module on disk stays {on_disk}, install kernel module and libraries "
                "of one release",
                commands=fixes.reinstall_driver(snapshot),
            ),
        )
    return (
        fixes.reload_modules(),
        fixes.reboot("Or restart the machine, which loads the module that is on disk"),
        Fix(
            title="Only if both still differ afterwards, the files on disk differ too: compare "
            "them, then install kernel module and libraries of one release",
            commands=(
                "modinfo -F version nvidia",
                "ls -l $(ldconfig -p | awk '/libcuda.so.1/{print $NF}')",
            ),
        ),
    )


def _container_road() -> tuple[Fix, ...]:
    return (
        Fix(
            title="Recreate the container: it still holds the libraries of the driver that the "
            "host had when it was started",
        ),
        Fix(
            title="If it persists in a new container, the image carries driver libraries of its "
            "own; remove them from the image",
            commands=("find / -xdev -name 'libcuda.so.*' -o -xdev -name 'libnvidia-ml.so.*'",),
        ),
        Fix(
            title="If nvidia-smi fails on the host as well, the host needs a restart to load its "
            "new kernel module",
            commands=("nvidia-smi",),
        ),
    )
