"""wsl-gpu-unavailable, wsl-linux-driver: the two ways in which WSL loses its GPU."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from envcheck.model.finding import Evidence, Fix
from envcheck.rules import facts, fixes
from envcheck.rules.base import finding, rule

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.model.finding import Severity
    from envcheck.model.snapshot import Snapshot
    from envcheck.rules.base import Answer

WSL_LIBRARIES = "/usr/lib/wsl/"

_LINUX_DRIVER = re.compile(
    r"(nvidia-driver|libnvidia-(compute|gl|cfg|decode|encode|fbc)|nvidia-(utils|kernel|dkms|open|headless|"
    r"compute-utils)|cuda-drivers|libcuda1|linux-modules-nvidia|xserver-xorg-video-nvidia)([-:].*)?"
)


@rule(
    "wsl-gpu-unavailable",
    component="driver",
    when=facts.in_wsl,
    explains=("driver-state-stale", "cuda-visible-devices-invalid", "driver-too-old"),
)
def wsl_gpu_unavailable(snapshot: Snapshot, _matrix: Matrix) -> Answer:
    """WSL passes the GPU of Windows through.

    Fires under WSL 1, and under WSL 2 when the libraries that Windows provides are there but do not
    start. WSL 2 without those libraries is a machine without a GPU (`no-gpu`).

    Why: WSL 1 has no Linux kernel and no GPU. WSL 2 reaches the GPU through /dev/dxg and libcuda of
    the Windows driver.

    Fix: convert the distribution to WSL 2; update the Windows driver and WSL, then restart WSL.
    """
    needed = facts.needs_gpu(snapshot)
    if snapshot.host.wsl == 1:
        yield finding(
            "wsl-gpu-unavailable",
            "error" if needed else "warning",
            "driver",
            "WSL 1",
            "WSL 1 cannot use a GPU",
            found="WSL 1",
            needed="WSL 2, if GPU work is meant to run here",
            why="WSL 1 translates system calls and has no way to a GPU; WSL 2 has.",
            fix=(
                Fix(
                    title="Convert this distribution, from PowerShell (its name: wsl --list)",
                    commands=("wsl --set-version <distribution> 2",),
                ),
            ),
            evidence=(
                Evidence(
                    label="kernel", value=snapshot.host.os.kernel or "WSL 1", via="/proc/version"
                ),
            ),
        )
        return
    driver = snapshot.host.driver
    broken = driver.libcuda.outcome == "error" or (
        driver.nvml.outcome == "error" and not facts.cuda_ok(snapshot)
    )
    hidden = (
        driver.libcuda.code == facts.CUDA_NO_DEVICE
        and snapshot.env.variable("CUDA_VISIBLE_DEVICES") is not None
    )
    if not broken or hidden or not driver.installed:
        return
    yield finding(
        "wsl-gpu-unavailable",
        "error",
        "driver",
        "WSL 2",
        "The GPU of Windows does not come through into WSL",
        found="; ".join(f"{e.label}: {e.value}" for e in facts.answers(snapshot)),
        needed="cuInit succeeds through the Windows driver",
        why="The libraries of the Windows driver are mounted, but they cannot open the GPU.",
        fix=(
            Fix(
                title="Update WSL and restart it, from PowerShell; update the NVIDIA driver on "
                "Windows as well",
                commands=("wsl --update", "wsl --shutdown"),
            ),
            Fix(
                title="Then check that the device and the libraries are there",
                commands=("ls -l /dev/dxg /usr/lib/wsl/lib/libcuda.so.1",),
            ),
        ),
        evidence=facts.answers(snapshot),
    )


def _wsl2(snapshot: Snapshot) -> bool:
    return snapshot.host.wsl == 2


@rule(
    "wsl-linux-driver",
    component="driver",
    when=_wsl2,
    explains=("wsl-gpu-unavailable", "driver-library-mismatch", "driver-state-stale"),
)
def wsl_linux_driver(snapshot: Snapshot, _matrix: Matrix) -> Answer:
    """No Linux driver is installed inside WSL 2.

    An error when CUDA fails to start, a warning when the foreign libcuda is the one that loads,
    information when the one of Windows still wins.

    Why: Windows mounts its own libcuda under /usr/lib/wsl/lib. A Linux driver package brings a
    second one, which cannot work here, and the loader may take it.

    Fix: remove the driver packages; the CUDA toolkit packages may stay.
    """
    driver = snapshot.host.driver
    names = tuple(
        each.name
        for each in driver.packages or ()
        if _LINUX_DRIVER.fullmatch(each.name) and each.state == "installed"
    )
    path = driver.libcuda.path
    foreign = path is not None and path.startswith("/") and not path.startswith(WSL_LIBRARIES)
    if not names:
        return
    severity: Severity
    if driver.libcuda.outcome in {"error", "crash", "timeout"}:
        severity = "error"
    elif foreign or path is None:
        severity = "warning"
    else:
        severity = "info"
    yield finding(
        "wsl-linux-driver",
        severity,
        "driver",
        ", ".join(names),
        "A Linux driver is installed inside WSL, where the Windows driver is the one to use",
        found=f"Linux driver packages: {', '.join(names)}",
        needed="no Linux driver inside WSL 2",
        why="WSL gets libcuda from Windows; that of a Linux driver cannot work here.",
        fix=(
            Fix(title="Remove the packages", commands=fixes.remove(snapshot, *names)),
            Fix(title="Then restart WSL, from PowerShell", commands=("wsl --shutdown",)),
        ),
        evidence=(
            *(Evidence(label="package", value=name, via="package database") for name in names),
            *((Evidence(label="libcuda", value=path, via="loader"),) if path else ()),
            *facts.answers(snapshot),
        ),
    )
