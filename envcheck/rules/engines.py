"""Commands that give GPUs to containers, for the engine at hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.model.finding import Fix
from envcheck.rules import fixes

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.model.host import Engine
    from envcheck.model.snapshot import Snapshot

IMAGE = "<image>"
CONTAINER = "<container>"

_RUN = {
    "docker": "docker run --gpus all{options} " + IMAGE,
    "podman": "podman run --device nvidia.com/gpu=all{options} " + IMAGE,
    "containerd": "nerdctl run --gpus all{options} " + IMAGE,
    "apptainer": "apptainer exec --nv " + IMAGE + " <command>",
    "singularity": "singularity exec --nv " + IMAGE + " <command>",
}

_COMPOSE = Fix(
    title="In a compose file, reserve the GPU in the service: "
    "deploy.resources.reservations.devices with driver: nvidia, count: all, capabilities: [gpu]; "
    "then start it anew",
    commands=("docker compose up -d --force-recreate",),
)


def with_gpu(snapshot: Snapshot, setting: str | None = None) -> tuple[Fix, ...]:
    """Ways to start this container anew with its GPUs.

    Args:
        snapshot: says which engine runs it.
        setting: an environment variable to pass, `NAME=value`.
    """
    kind = snapshot.host.container.kind or "unknown"
    options = f" -e {setting}" if setting else ""
    if kind == "kubernetes":
        roads = [
            Fix(
                title="Ask for a GPU in the pod's container: resources.limits with nvidia.com/gpu: "
                "1 (the cluster needs NVIDIA's device plugin); see what the nodes offer",
                commands=("kubectl describe nodes | grep nvidia.com/gpu",),
            )
        ]
        if setting:
            roads.append(Fix(title=f"Set {setting} in the container's env"))
        return tuple(roads)
    if kind == "lxc":
        return (
            Fix(
                title="On the host, add the GPU and the driver's files to the container, and "
                "restart it",
                commands=(
                    f"lxc config device add {CONTAINER} gpu gpu",
                    f"lxc config set {CONTAINER} nvidia.runtime true",
                    f"lxc restart {CONTAINER}",
                ),
            ),
        )
    if kind == "systemd-nspawn":
        return (
            Fix(
                title="On the host, bind the device files and the driver's libraries into the "
                "container",
                commands=(
                    f"sudo systemd-nspawn -M {CONTAINER} --bind=/dev/nvidia0 --bind=/dev/nvidiactl "
                    "--bind=/dev/nvidia-uvm",
                ),
            ),
        )
    if kind in _RUN:
        first = Fix(
            title="On the host, start the container with its GPUs",
            commands=(_RUN[kind].format(options=options),),
        )
        return (first, _COMPOSE) if kind == "docker" else (first,)
    return (
        Fix(
            title="On the host, start the container with its GPUs; with docker",
            commands=(_RUN["docker"].format(options=options),),
        ),
        Fix(
            title="With podman or another engine with CDI",
            commands=(_RUN["podman"].format(options=options),),
        ),
    )


def regain_access(snapshot: Snapshot) -> tuple[Fix, ...]:
    """Ways to get device access back, and to keep it."""
    kind = snapshot.host.container.kind or "unknown"
    if kind == "kubernetes":
        restart = Fix(
            title="Delete the pod, so that its controller starts a new one",
            commands=("kubectl delete pod <pod>",),
        )
    elif kind == "podman":
        restart = Fix(
            title="On the host, restart the container", commands=(f"podman restart {CONTAINER}",)
        )
    else:
        restart = Fix(
            title="On the host, restart the container", commands=(f"docker restart {CONTAINER}",)
        )
    keep = Fix(
        title="To keep it from happening, create the links by which systemd knows the devices, or "
        "pass the GPU by CDI",
        commands=(
            "sudo nvidia-ctk system create-dev-char-symlinks --create-all",
            _RUN["podman"].format(options="")
            if kind == "podman"
            else f"docker run --device nvidia.com/gpu=all {IMAGE}",
        ),
    )
    label = Fix(
        title="If a new container has no access from its start, SELinux may refuse it: see whether "
        "it works without the label",
        commands=(
            (_RUN["podman"] if kind == "podman" else _RUN["docker"]).format(
                options=" --security-opt=label=disable"
            ),
        ),
    )
    return (restart, keep) if kind == "kubernetes" else (restart, keep, label)


def more_shm(snapshot: Snapshot) -> tuple[Fix, ...]:
    """Ways to start this container anew with more shared memory."""
    kind = snapshot.host.container.kind or "unknown"
    if kind == "kubernetes":
        return (
            Fix(
                title="Mount a memory volume at /dev/shm in the pod: volumes with emptyDir: "
                "{medium: Memory}, volumeMounts with mountPath: /dev/shm",
            ),
        )
    gpu = "--device nvidia.com/gpu=all" if kind == "podman" else "--gpus all"
    engine = "podman" if kind == "podman" else "docker"
    return (
        Fix(
            title="Start the container with more shared memory",
            commands=(f"{engine} run {gpu} --shm-size=16g {IMAGE}",),
        ),
        Fix(
            title="Or share the host's",
            commands=(f"{engine} run {gpu} --ipc=host {IMAGE}",),
        ),
    )


def install_toolkit(snapshot: Snapshot, matrix: Matrix) -> tuple[str, ...]:
    """Commands that install the NVIDIA Container Toolkit from NVIDIA's repository."""
    name = fixes.package(snapshot, matrix, "container-toolkit") or "nvidia-container-toolkit"
    return (
        *fixes.toolkit_repository(snapshot, matrix),
        *fixes.install(snapshot, name),
    )


def configure(engine: Engine) -> tuple[str, ...]:
    """Commands that make an engine use the toolkit, and restart it."""
    if engine.name == "podman":
        return ("sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml",)
    name = "crio" if engine.name == "cri-o" else engine.name
    if engine.rootless and name == "docker":
        return (
            "nvidia-ctk runtime configure --runtime=docker "
            '--config="$HOME/.config/docker/daemon.json"',
            "systemctl --user restart docker",
            "sudo nvidia-ctk config --set nvidia-container-cli.no-cgroups --in-place",
        )
    return (
        f"sudo nvidia-ctk runtime configure --runtime={name}",
        f"sudo systemctl restart {name}",
    )


def try_out(engine: Engine) -> str:
    """A command that shows whether a container of this engine sees the GPU."""
    if engine.name == "podman":
        return "podman run --rm --device nvidia.com/gpu=all ubuntu nvidia-smi"
    if engine.name in {"containerd", "cri-o", "crio"}:
        return "sudo nerdctl run --rm --gpus all ubuntu nvidia-smi"
    return "docker run --rm --gpus all ubuntu nvidia-smi"


def install_docker(snapshot: Snapshot) -> tuple[str, ...]:
    """Commands that install the distribution's own docker engine; none where it has none."""
    names = {"debian": "docker.io", "arch": "docker", "suse": "docker", "amazon": "docker"}
    name = names.get(fixes.family(snapshot.host.os))
    if name is None:
        return ()
    return (*fixes.install(snapshot, name), "sudo systemctl enable --now docker")
