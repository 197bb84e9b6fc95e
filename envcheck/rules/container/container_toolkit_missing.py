"""container-toolkit-missing, cdi-spec-missing, docker-desktop-no-gpu: engines of a GPU host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.model.finding import Evidence, Fix
from envcheck.rules import engines, facts
from envcheck.rules.base import finding, rule

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.model.host import Engine
    from envcheck.model.snapshot import Snapshot
    from envcheck.rules.base import Answer

RUNTIME_ENGINES = ("docker", "containerd", "cri-o", "crio", "podman")
"""Engines that can be given GPUs, in the order in which they are named."""


def working_host(snapshot: Snapshot) -> bool:
    """A host, not a container, with a GPU whose driver answers: containers could use it."""
    return (
        facts.on_host(snapshot)
        and not facts.on_jetson(snapshot)
        and bool(facts.gpus(snapshot))
        and facts.driver_works(snapshot)
        and bool(snapshot.host.engines)
    )


def _native(snapshot: Snapshot) -> tuple[Engine, ...]:
    installed = snapshot.host.engines or ()
    return tuple(
        each
        for name in RUNTIME_ENGINES
        for each in installed
        if each.name == name and not each.desktop
    )


def has_cdi(snapshot: Snapshot) -> bool:
    """Whether a CDI specification for NVIDIA GPUs is on disk."""
    cdi = snapshot.host.cdi
    return cdi is not None and bool(cdi.paths or cdi.devices)


def has_runtime(engine: Engine) -> bool:
    """Whether NVIDIA's runtime is registered with an engine, or its hook can be found by it."""
    return bool(engine.hook_path) or any("nvidia" in name for name in engine.runtimes or ())


def _cannot_tell(snapshot: Snapshot, natives: tuple[Engine, ...]) -> bool:
    """Whether a runtime or specification may exist that could not be read here."""
    unread = any(e.runtimes is None for e in natives if e.name != "podman")
    return snapshot.host.cdi is None or (
        unread
        and (
            snapshot.host.toolkit_version is not None
            or snapshot.gap("host.toolkit_version") is not None
        )
    )


@rule("container-toolkit-missing", component="container", when=working_host)
def container_toolkit_missing(snapshot: Snapshot, matrix: Matrix) -> Answer:
    """A container engine of this GPU host can hand GPUs to containers.

    Missing only when no NVIDIA runtime is registered, no CDI specification exists and NVIDIA's
    runtime hook is not on the engine's path. The host itself is well, so this is a warning for
    docker, and information for engines that come with an operating system. When what is configured
    could not be read, the check stays silent.

    Why: containers get device files and driver libraries from the host through NVIDIA's container
    toolkit; without it every container runs on the CPU.

    Fix: install the toolkit, configure the engine, restart it.
    """
    natives = _native(snapshot)
    if not natives or has_cdi(snapshot) or any(map(has_runtime, snapshot.host.engines or ())):
        return
    if _cannot_tell(snapshot, natives):
        return
    engine = natives[0]
    installed = snapshot.host.toolkit_version is not None
    if installed and engine.name == "podman":
        return
    names = ", ".join(each.name for each in natives)
    roads = [
        Fix(
            title="Configure the engine for the toolkit that is installed, and restart it"
            if installed
            else "Install the toolkit, configure the engine, restart it",
            commands=(
                *(() if installed else engines.install_toolkit(snapshot, matrix)),
                *engines.configure(engine),
            ),
        ),
        Fix(
            title="Then a container must see the GPU",
            commands=(engines.try_out(engine),),
        ),
    ]
    yield finding(
        "container-toolkit-missing",
        "warning" if any(each.name == "docker" for each in natives) else "info",
        "container",
        names,
        f"{names} cannot give GPUs to containers",
        found="NVIDIA Container Toolkit installed but not configured"
        if installed
        else "no NVIDIA runtime, no CDI specification, no runtime hook",
        needed="NVIDIA Container Toolkit, if containers are meant to use the GPU",
        why="The engine hands GPUs to containers through NVIDIA's toolkit only. Programs outside "
        "containers are not affected.",
        fix=roads,
        evidence=(
            *(
                Evidence(
                    label=f"{each.name} runtimes",
                    value=", ".join(each.runtimes) if each.runtimes else "none known",
                    via=each.name,
                )
                for each in natives
            ),
            Evidence(label="CDI specifications", value="none", via="/etc/cdi, /var/run/cdi"),
            Evidence(
                label="NVIDIA Container Toolkit",
                value=snapshot.host.toolkit_version or "not found",
                via="nvidia-ctk",
            ),
        ),
    )


@rule("cdi-spec-missing", component="container", when=working_host)
def cdi_spec_missing(snapshot: Snapshot, _matrix: Matrix) -> Answer:
    """CDI specifications, where containers rely on them, are there and name files that exist.

    Fires for a specification that mounts driver files which are gone (after a driver update), and
    for podman with the toolkit installed but no specification at all.

    Why: a specification lists the driver's files by their full names, release included. After an
    update a container that asks for the GPU fails to start.

    Fix: write the specification anew.
    """
    cdi = snapshot.host.cdi
    if cdi is None:
        return
    generate = Fix(
        title="Write the specification for the driver that is installed now",
        commands=(
            "sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml",
            "nvidia-ctk cdi list",
        ),
    )
    if cdi.missing_paths:
        yield finding(
            "cdi-spec-missing",
            "warning",
            "container",
            ", ".join(cdi.paths) or "CDI specification",
            "The CDI specification names driver files that do not exist",
            found=f"{len(cdi.missing_paths)} missing, such as {cdi.missing_paths[0]}",
            needed="a specification for the driver that is installed now",
            why="It was written for another driver release; a container that asks for the GPU "
            "through it fails to start.",
            fix=(
                generate,
                Fix(
                    title="And after every driver update (toolkits that ship the service)",
                    commands=("sudo systemctl enable --now nvidia-cdi-refresh.path",),
                ),
            ),
            evidence=(
                *(Evidence(label="specification", value=path, via="disk") for path in cdi.paths),
                *(
                    Evidence(label="missing", value=path, via="CDI specification")
                    for path in cdi.missing_paths[:5]
                ),
            ),
        )
        return
    natives = _native(snapshot)
    if (
        not has_cdi(snapshot)
        and natives
        and natives[0].name == "podman"
        and snapshot.host.toolkit_version is not None
        and not any(map(has_runtime, natives))
    ):
        yield finding(
            "cdi-spec-missing",
            "warning",
            "container",
            "podman",
            "podman finds no CDI specification for the GPU",
            found=f"NVIDIA Container Toolkit {snapshot.host.toolkit_version}, no specification",
            needed="a CDI specification in /etc/cdi or /var/run/cdi",
            why="podman gives GPUs to containers by CDI; without a specification the device "
            "nvidia.com/gpu=all cannot be resolved.",
            fix=(
                generate,
                Fix(
                    title="Then a container must see the GPU",
                    commands=(engines.try_out(natives[0]),),
                ),
            ),
            evidence=(
                Evidence(label="CDI specifications", value="none", via="/etc/cdi, /var/run/cdi"),
            ),
        )


def _desktop(snapshot: Snapshot) -> bool:
    return (
        working_host(snapshot)
        and not facts.in_wsl(snapshot)
        and any(each.desktop for each in snapshot.host.engines or ())
    )


@rule(
    "docker-desktop-no-gpu",
    component="container",
    when=_desktop,
    explains=("container-toolkit-missing",),
)
def docker_desktop_no_gpu(snapshot: Snapshot, matrix: Matrix) -> Answer:
    """The container engine in use on this Linux host is a native one.

    Why: Docker Desktop for Linux runs containers in a virtual machine that has no GPU and none of
    the host's driver files. On Windows it works, through WSL 2.

    Fix: use the native engine.
    """
    native = next((e for e in _native(snapshot) if e.name == "docker"), None)
    roads = [
        Fix(
            title="Switch to the native engine that is installed beside it"
            if native
            else "Install the native engine, then switch to it",
            commands=(
                *(() if native else engines.install_docker(snapshot)),
                "docker context use default",
            ),
        )
    ]
    if native is not None and not has_runtime(native) and not has_cdi(snapshot):
        roads.append(
            Fix(
                title="Give the native engine the NVIDIA Container Toolkit",
                commands=(
                    *engines.install_toolkit(snapshot, matrix),
                    *engines.configure(native),
                ),
            )
        )
    desktop = next(e for e in snapshot.host.engines or () if e.desktop)
    yield finding(
        "docker-desktop-no-gpu",
        "warning",
        "container",
        "Docker Desktop",
        "Docker Desktop for Linux cannot give GPUs to containers",
        found=f"Docker Desktop {desktop.version or ''}".strip(),
        needed="the native engine, if containers are meant to use the GPU",
        why="It runs containers in a virtual machine that has neither the GPU nor the driver's "
        "files.",
        fix=roads,
        evidence=(Evidence(label="engine", value="Docker Desktop", via="docker context"),),
    )
