"""Wording of findings about the driver that rest on messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.matrix import query
from envcheck.model.finding import Fix
from envcheck.rules import builds, drivers, fixes
from envcheck.rules.told.wording import Wording, captured, fixed
from envcheck.versions import Release

if TYPE_CHECKING:
    from envcheck.model.symptom import Symptom
    from envcheck.rules.told.heard import Heard

LOG = Fix(
    title="See the kernel's own words",
    commands=("sudo dmesg | grep -i -e nvrm -e nvidia -e nouveau",),
)


def _no_gpu(heard: Heard, _symptoms: tuple[Symptom, ...]) -> tuple[Fix, ...]:
    del heard
    return (
        Fix(title="Nothing to do when this machine is meant to work on its CPU"),
        Fix(
            title="Otherwise see whether the hardware shows a GPU at all",
            commands=("lspci -nn -d 10de:",),
        ),
    )


def _install(heard: Heard, _symptoms: tuple[Symptom, ...]) -> tuple[Fix, ...]:
    choice = drivers.choose(heard.snapshot, heard.matrix)
    return drivers.install_driver(heard.snapshot, heard.matrix, choice)


def _load(heard: Heard, _symptoms: tuple[Symptom, ...]) -> tuple[Fix, ...]:
    if heard.wsl():
        return (Fix(title="Install the NVIDIA driver on Windows; WSL takes it from there"),)
    return (fixes.load_module(), fixes.rebuild_module(heard.snapshot, heard.matrix))


def _mismatch(heard: Heard, _symptoms: tuple[Symptom, ...]) -> tuple[Fix, ...]:
    del heard
    return (
        fixes.reload_modules(),
        fixes.reboot("Or restart the machine, which loads the module that is on disk"),
        Fix(
            title="Only if both still differ afterwards, the files on disk differ too: compare "
            "them, then install kernel module and libraries of one release",
            commands=("cat /proc/driver/nvidia/version", "modinfo -F version nvidia"),
        ),
        Fix(title="In a container that was running during the update: recreate the container"),
    )


def _enrol(heard: Heard, _symptoms: tuple[Symptom, ...]) -> tuple[Fix, ...]:
    key = fixes.signing_key(heard.snapshot)
    return (
        Fix(
            title="Enrol the key that signed the module: choose a password now, restart, and pick "
            "Enroll MOK in the blue screen",
            commands=(f"sudo mokutil --import {key}", "sudo reboot"),
        ),
        *fixes.signed_modules(heard.snapshot),
        Fix(
            title="Or switch Secure Boot off in the firmware settings; booting through a loader "
            "that skips shim also loses the enrolled keys",
            commands=("mokutil --sb-state",),
        ),
    )


def _blacklist(heard: Heard, symptoms: tuple[Symptom, ...]) -> tuple[Fix, ...]:
    module = captured(symptoms, "rival") or "nouveau"
    return (
        Fix(
            title=f"Keep {module} from loading, also in the initial RAM disk, and restart",
            commands=fixes.blacklist(heard.snapshot, module),
        ),
        Fix(title="Afterwards this must name nvidia", commands=("lspci -nnk -d 10de:",)),
    )


def _uvm(heard: Heard, _symptoms: tuple[Symptom, ...]) -> tuple[Fix, ...]:
    del heard
    return (
        Fix(
            title="Reload the memory module of the driver (stop what uses the GPU first)",
            commands=("sudo modprobe -r nvidia_uvm", "sudo modprobe nvidia_uvm"),
        ),
        fixes.reboot("Or restart the machine"),
        Fix(
            title="When it comes back after suspend: let the driver save its state",
            commands=(
                "sudo systemctl enable nvidia-suspend nvidia-resume nvidia-hibernate",
                "echo options nvidia NVreg_PreserveVideoMemoryAllocations=1 | "
                "sudo tee /etc/modprobe.d/nvidia-suspend.conf",
            ),
        ),
    )


def _newer_driver(heard: Heard, symptoms: tuple[Symptom, ...]) -> tuple[Fix, ...]:
    snapshot, matrix = heard.snapshot, heard.matrix
    roads: list[Fix] = []
    torch = snapshot.env.framework("torch")
    found = _driver_cuda(symptoms)
    if captured(symptoms, "what"):
        roads.append(Fix(title="Use an image for an older CUDA release that this driver runs"))
    elif torch is not None and builds.known_machine(matrix, snapshot):
        build = builds.choose(matrix, snapshot, torch, "older")
        if build is not None:
            title = f"Install torch {build.version} for CUDA {build.cuda}, which this driver runs"
            roads.append(builds.install_fix(matrix, snapshot, torch, build, title))
    elif found is not None:
        roads.append(
            Fix(
                title=f"Install a build of the framework for CUDA {found} or older, which this "
                "driver runs",
            )
        )
    wanted = captured(symptoms, "version") if captured(symptoms, "what") == "cuda" else None
    floor = query.minor_floor(matrix, wanted) if wanted else None
    if heard.windows() or heard.wsl():
        newer: tuple[Fix, ...] = (Fix(title="Update the NVIDIA driver of Windows, then restart"),)
    else:
        newer = drivers.install_driver(snapshot, matrix, drivers.choose(snapshot, matrix))
    if floor is not None:
        roads.append(
            Fix(title=f"Or update the driver of the host to {floor.driver_linux} or newer")
        )
    return (*roads, *newer)


def _driver_cuda(symptoms: tuple[Symptom, ...]) -> str | None:
    """The CUDA interface that torch found: 12080 is 12.8."""
    number = captured(symptoms, "cuda")
    if number is None or not number.isdigit():
        return None
    return f"{int(number) // 1000}.{int(number) % 1000 // 10}"


def _legacy(heard: Heard, symptoms: tuple[Symptom, ...]) -> tuple[Fix, ...]:
    branch = captured(symptoms, "branch")
    release = Release.maybe(branch)
    at_most = release.major if release is not None else None
    choice = drivers.choose(heard.snapshot, heard.matrix, at_most=at_most)
    title = f"Install the last branch that supports this GPU{f', {branch}' if branch else ''}"
    if branch is not None and choice.branch != branch:
        return (Fix(title=f"{title}, with the packages of this distribution"), LOG)
    return drivers.install_driver(heard.snapshot, heard.matrix, choice)


def _flavour(heard: Heard, symptoms: tuple[Symptom, ...]) -> tuple[Fix, ...]:
    needs_open = any(each.name == "open-modules-required" for each in symptoms)
    choice = drivers.same_branch(heard.snapshot, heard.matrix, open_modules=needs_open)
    return drivers.install_driver(heard.snapshot, heard.matrix, choice)


def _inside_wsl(heard: Heard, _symptoms: tuple[Symptom, ...]) -> tuple[Fix, ...]:
    del heard
    return (
        Fix(
            title="Inside WSL, remove the Linux driver: the one of Windows serves it",
            commands=("sudo apt-get purge -y '^(lib)?nvidia-.*[0-9]{3}.*'", "sudo ldconfig"),
        ),
        Fix(title="Then restart WSL from PowerShell", commands=("wsl --shutdown",)),
    )


WORDS: dict[str, Wording] = {
    "no-gpu": Wording(
        component="driver",
        subject="GPU",
        title="No NVIDIA GPU is visible",
        needed="an NVIDIA GPU, if GPU work is meant to run here",
        why="Without an NVIDIA GPU frameworks run on the CPU.",
        roads=_no_gpu,
        severity="warning",
    ),
    "driver-missing": Wording(
        component="driver",
        subject="NVIDIA driver",
        title="No NVIDIA driver is found",
        needed="an installed NVIDIA driver: kernel module, libcuda and NVML",
        why="These libraries belong to the driver and come with no framework or toolkit.",
        roads=_install,
    ),
    "driver-not-loaded": Wording(
        component="driver",
        subject="NVIDIA driver",
        title="The NVIDIA kernel module is not loaded",
        needed="the nvidia module, built for the running kernel, loaded",
        why="The driver's programs find no kernel module to talk to. After a kernel update it may "
        "not have been built for the new kernel.",
        roads=_load,
    ),
    "driver-library-mismatch": Wording(
        component="driver",
        subject="NVIDIA driver",
        title="The loaded kernel module and the driver's libraries are of different releases",
        needed="one release of both",
        why="The driver was updated on disk while the module of the release before stayed in the "
        "kernel, or module and libraries were installed in different releases.",
        roads=_mismatch,
        names=("library", "client"),
    ),
    "driver-module-rejected": Wording(
        component="driver",
        subject="nvidia kernel module",
        title="The kernel refuses to load the NVIDIA module because of its signature",
        needed="a module signed with a key that this machine trusts",
        why="Secure Boot or kernel lockdown allows only modules signed with an enrolled key, and "
        "this one is not.",
        roads=_enrol,
    ),
    "nouveau-conflict": Wording(
        component="driver",
        subject="GPU",
        title="Another kernel driver holds the GPU",
        needed="the nvidia module bound to the GPU",
        why="Only one driver can own a device, and another one was there first.",
        roads=_blacklist,
        names=("rival",),
    ),
    "driver-state-stale": Wording(
        component="driver",
        subject="CUDA initialisation",
        title="CUDA does not initialise, and names no cause",
        needed="a driver whose modules are in a good state",
        why="After suspend and resume, or with a memory module of another build, the driver keeps "
        "a state that no longer fits the GPU; nvidia-smi may still look well.",
        roads=_uvm,
    ),
    "driver-too-old": Wording(
        component="driver",
        subject="NVIDIA driver",
        title="The driver is too old for the CUDA runtime in use",
        needed="a newer driver, or a build for an older CUDA",
        why="A CUDA build asks the driver for an interface version, and this driver offers an "
        "older one.",
        roads=_newer_driver,
    ),
    "gpu-dropped-by-driver": Wording(
        component="driver",
        subject="GPU",
        title="The installed driver branch no longer supports this GPU",
        needed="the last branch that supports it",
        why="Each branch ends support for old architectures; the driver then ignores the card.",
        roads=_legacy,
        names=("gpu",),
    ),
    "gpu-needs-newer-driver": Wording(
        component="driver",
        subject="GPU",
        title="The installed driver is older than this GPU",
        needed="a branch that supports it",
        why="A driver that was released before a GPU does not know it.",
        roads=_install,
    ),
    "driver-flavour-wrong": Wording(
        component="driver",
        subject="GPU",
        title="The installed kernel modules are of the wrong flavour for this GPU",
        needed="the other flavour, open or proprietary, of the same branch",
        why="The open kernel modules drive Turing and newer GPUs only, and GPUs from Blackwell on "
        "work with the open ones only.",
        roads=_flavour,
    ),
    "wsl-gpu-unavailable": Wording(
        component="driver",
        subject="GPU in WSL",
        title="WSL does not pass the GPU of Windows through",
        needed="WSL 2 with the NVIDIA driver of Windows",
        why="Inside WSL the GPU and libcuda come from the Windows driver; CUDA cannot start while "
        "that path is broken.",
        roads=fixed(
            Fix(
                title="Update WSL and restart it, from PowerShell",
                commands=("wsl --update", "wsl --shutdown"),
            ),
            Fix(title="Update the NVIDIA driver of Windows; install none inside WSL"),
            Fix(
                title="With several GPUs, see whether one of them alone works",
                commands=("nvidia-smi", "export CUDA_VISIBLE_DEVICES=0"),
            ),
        ),
    ),
    "wsl-linux-driver": Wording(
        component="driver",
        subject="Linux driver in WSL",
        title="A Linux driver inside WSL hides the one that Windows provides",
        needed="no NVIDIA driver package inside WSL",
        why="WSL mounts libcuda and nvidia-smi of the Windows driver; a Linux driver package puts "
        "its own in front, and has no module to talk to.",
        roads=_inside_wsl,
    ),
}
