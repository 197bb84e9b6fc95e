"""Wording of findings about containers that rest on messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.model.finding import Fix
from envcheck.model.host import Engine
from envcheck.rules import engines
from envcheck.rules.told.wording import Wording

if TYPE_CHECKING:
    from envcheck.model.symptom import Symptom
    from envcheck.rules.told.heard import Heard


def _engine(heard: Heard, symptoms: tuple[Symptom, ...]) -> Engine:
    installed = next((each for each in heard.snapshot.host.engines or () if not each.desktop), None)
    if installed is not None:
        return installed
    said = " ".join(each.text for each in symptoms).lower()
    name = "podman" if "podman" in said or "crun" in said else "docker"
    return Engine(name="containerd" if "runtimehandler" in said else name)


def _toolkit(heard: Heard, symptoms: tuple[Symptom, ...]) -> tuple[Fix, ...]:
    engine = _engine(heard, symptoms)
    return (
        Fix(
            title="Install the NVIDIA Container Toolkit, configure the engine, restart it",
            commands=(
                *engines.install_toolkit(heard.snapshot, heard.matrix),
                *engines.configure(engine),
            ),
        ),
        Fix(title="Then a container must see the GPU", commands=(engines.try_out(engine),)),
    )


def _with_gpu(heard: Heard, _symptoms: tuple[Symptom, ...]) -> tuple[Fix, ...]:
    return engines.with_gpu(heard.snapshot)


def _native(heard: Heard, symptoms: tuple[Symptom, ...]) -> tuple[Fix, ...]:
    return (
        Fix(
            title="Switch to the native engine, installing it when it is not there",
            commands=(*engines.install_docker(heard.snapshot), "docker context use default"),
        ),
        *_toolkit(heard, symptoms),
    )


def _specification(heard: Heard, symptoms: tuple[Symptom, ...]) -> tuple[Fix, ...]:
    return (
        Fix(
            title="Write the specification for the driver that is installed now",
            commands=(
                "sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml",
                "nvidia-ctk cdi list",
            ),
        ),
        Fix(
            title="Then a container must see the GPU",
            commands=(engines.try_out(_engine(heard, symptoms)),),
        ),
    )


def _access(heard: Heard, _symptoms: tuple[Symptom, ...]) -> tuple[Fix, ...]:
    return engines.regain_access(heard.snapshot)


def _compute(heard: Heard, _symptoms: tuple[Symptom, ...]) -> tuple[Fix, ...]:
    return engines.with_gpu(heard.snapshot, "NVIDIA_DRIVER_CAPABILITIES=compute,utility")


def _shm(heard: Heard, _symptoms: tuple[Symptom, ...]) -> tuple[Fix, ...]:
    return engines.more_shm(heard.snapshot)


WORDS: dict[str, Wording] = {
    "container-toolkit-missing": Wording(
        component="container",
        subject="container engine",
        title="The container engine cannot give GPUs to containers",
        needed="NVIDIA Container Toolkit, installed and configured",
        why="The engine hands GPUs to containers through NVIDIA's toolkit only.",
        roads=_toolkit,
    ),
    "container-without-gpu": Wording(
        component="container",
        subject="container",
        title="This container was started without the host's GPUs",
        needed="GPUs given to the container when it is started",
        why="Device files and driver libraries are put into a container only when it is started "
        "with GPUs; --privileged alone brings no libraries.",
        roads=_with_gpu,
    ),
    "docker-desktop-no-gpu": Wording(
        component="container",
        subject="Docker Desktop",
        title="Docker Desktop for Linux cannot give GPUs to containers",
        needed="the native engine",
        why="It runs containers in a virtual machine that has neither the GPU nor the driver's "
        "files.",
        roads=_native,
    ),
    "cdi-spec-missing": Wording(
        component="container",
        subject="CDI specification",
        title="The engine finds no CDI specification that fits the driver",
        needed="a current CDI specification in /etc/cdi or /var/run/cdi",
        why="A specification lists the driver's files by their full names. Without one, or after a "
        "driver update, the device cannot be resolved.",
        roads=_specification,
    ),
    "container-device-access-lost": Wording(
        component="container",
        subject="container",
        title="The container has device files of the GPU but may not open them",
        needed="device access, as it was when the container started",
        why="The rules that let the container use the GPU are gone, most often because systemd "
        "reloaded its units while it ran. The host's driver is not affected.",
        roads=_access,
    ),
    "driver-capabilities-missing": Wording(
        component="container",
        subject="container",
        title="The container did not get the driver's compute libraries",
        needed="NVIDIA_DRIVER_CAPABILITIES=compute,utility",
        why="libcuda is mounted into a container only for the capability compute; nvidia-smi works "
        "without it.",
        roads=_compute,
    ),
    "shm-too-small": Wording(
        component="container",
        subject="shared memory",
        title="The shared memory is too small for NCCL or for data-loader workers",
        needed="several GiB, more with more GPUs and workers",
        why="NCCL and data-loader workers exchange data through /dev/shm and fail when it is full; "
        "container engines give 64 MiB when nothing else is asked for.",
        roads=_shm,
    ),
}
