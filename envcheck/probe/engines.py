"""Container engines, NVIDIA's container toolkit, CDI specifications, fabric manager, tools."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from envcheck.model.host import Cdi, Engine, FabricManager, Tool
from envcheck.probe.source import TOOL_FOLDERS, Command

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from envcheck.model.host import SystemPackage
    from envcheck.probe.quiet import Quiet
    from envcheck.probe.source import Result

_DAEMON_FILE = "/etc/docker/daemon.json"
_HOOKS = ("nvidia-container-runtime-hook", "nvidia-container-toolkit")
_TOOLS = ("nvidia-smi", "nvidia-ctk", "nsys", "ncu", "dcgmi", "nvitop", "nvcc")
_VERSION_ARGUMENTS = {"nvidia-smi": ("--version",), "nvcc": ("--version",)}
CDI_FOLDERS = ("/etc/cdi", "/var/run/cdi", "/run/cdi")
_PIECE = re.compile(r"\d+\.\d+(?:\.\d+)*")


def find(source: Quiet, program: str) -> str | None:
    """First place of a program: the user's PATH, then the usual folders."""
    own = [each for each in source.variables.get("PATH", "").split(":") if each.startswith("/")]
    for folder in dict.fromkeys((*own, *TOOL_FOLDERS)):
        path = f"{folder.rstrip('/')}/{program}"
        facts = source.stat(path)
        if facts is not None and facts.kind in {"file", "link"}:
            return path
    return None


def version_commands(source: Quiet, *, deep: bool) -> tuple[Command, ...]:
    """`--version` of the tools that are there; they are slow, so only when asked to look deep."""
    if not deep:
        return ()
    programs = (*_TOOLS, "docker", "podman", "containerd")
    return tuple(
        Command(
            name=f"version:{program}",
            argv=(path, *_VERSION_ARGUMENTS.get(program, ("--version",))),
            timeout=8.0,
        )
        for program in programs
        if (path := find(source, program)) is not None
    )


def _version(results: Mapping[str, Result], program: str) -> str | None:
    result = results.get(f"version:{program}")
    match = _PIECE.search(result.stdout) if result is not None and result.code == 0 else None
    return match.group() if match else None


def read_tools(source: Quiet, results: Mapping[str, Result]) -> tuple[Tool, ...]:
    """Tools that are installed."""
    return tuple(
        Tool(name=name, path=path, version=_version(results, name))
        for name in _TOOLS
        if (path := find(source, name)) is not None
    )


def read_engines(source: Quiet, results: Mapping[str, Result]) -> tuple[Engine, ...]:
    """Engines that are installed, with what their configuration says of NVIDIA's runtime."""
    hook = next((path for name in _HOOKS if (path := find(source, name)) is not None), None)
    found = []
    daemon, client = find(source, "dockerd"), find(source, "docker")
    if (
        daemon is not None
        or source.stat(_DAEMON_FILE) is not None
        or (client is not None and source.stat("/run/docker.sock") is not None)
    ):
        found.append(_docker(source, results, hook))
    elif client is not None and source.stat("/opt/docker-desktop") is not None:
        # Beside a native engine it is not known which of them is in use: then it is not named.
        found.append(Engine(name="docker", version=_version(results, "docker"), desktop=True))
    if find(source, "podman") is not None:
        hooks = source.list("/usr/share/containers/oci/hooks.d") or ()
        found.append(
            Engine(
                name="podman",
                version=_version(results, "podman"),
                runtimes=_podman_runtimes(source),
                hook_path=hook if any("nvidia" in name for name in hooks) else None,
            )
        )
    if find(source, "containerd") is not None and source.stat("/etc/containerd") is not None:
        # The container toolkit registers its runtime in a file of its own below conf.d.
        extra = (f"conf.d/{each}" for each in source.list("/etc/containerd/conf.d") or ())
        texts = [source.read(f"/etc/containerd/{each}") for each in ("config.toml", *extra)]
        runtimes = re.findall(
            r"runtimes\.[\"']?([\w-]+)[\"']?\]", "\n".join(each or "" for each in texts)
        )
        found.append(
            Engine(
                name="containerd",
                version=_version(results, "containerd"),
                runtimes=tuple(sorted(set(runtimes))),
                hook_path=hook,
            )
        )
    return tuple(found)


def _docker(source: Quiet, results: Mapping[str, Result], hook: str | None) -> Engine:
    files = [_DAEMON_FILE]
    home = source.variables.get("HOME", "").rstrip("/")
    if home:
        files.append(f"{home}/.config/docker/daemon.json")
    if (find(source, "docker") or "").startswith("/snap/"):
        files.append("/var/snap/docker/current/config/daemon.json")
    runtimes: set[str] | None = set()
    default: str | None = None
    cgroup: str | None = None
    for path in files:
        text = source.read(path)
        if text is None and path not in source.refused:
            continue
        try:
            data = json.loads(text or "")
            names = (data.get("runtimes") or {}).keys()
            told = data.get("default-runtime")
            options = data.get("exec-opts") or ()
            cgroup = cgroup or next(
                (each.partition("=")[2] for each in options if each.startswith("native.cgroup")),
                None,
            )
        except (ValueError, AttributeError, TypeError, RecursionError):
            runtimes = None
            continue
        default = default or (told if isinstance(told, str) else None)
        runtimes = None if runtimes is None else runtimes | set(names)
    return Engine(
        name="docker",
        version=_version(results, "docker"),
        runtimes=None if runtimes is None else tuple(sorted(runtimes)),
        default_runtime=default,
        hook_path=hook,
        cgroup_driver=cgroup,
    )


def _podman_runtimes(source: Quiet) -> tuple[str, ...]:
    texts = (
        source.read("/etc/containers/containers.conf"),
        source.read("/usr/share/containers/containers.conf"),
    )
    return tuple(
        name
        for name in ("nvidia",)
        if any(re.search(rf"^\s*{name}\s*=", text or "", re.M) for text in texts)
    )


def read_cdi(source: Quiet, folders: tuple[str, ...] = CDI_FOLDERS) -> Cdi:
    """CDI specifications of NVIDIA's devices: what they name, and which host files are gone."""
    paths: list[str] = []
    devices: list[str] = []
    missing: list[str] = []
    seen: set[tuple[str, str]] = set()
    for folder in folders:
        for name in source.list(folder) or ():
            text = source.read(f"{folder}/{name}") if name.endswith((".json", ".yaml")) else None
            kind = re.search(r"[\"']?kind[\"']?\s*:\s*[\"']?(nvidia\.com/[\w-]+)", text or "")
            # /var/run is a link to /run nearly everywhere: the same file is met twice.
            if text is None or kind is None or (name, text) in seen:
                continue
            seen.add((name, text))
            paths.append(f"{folder}/{name}")
            devices += [f"{kind.group(1)}={each}" for each in _cdi_names(text)]
            missing += [path for path in _cdi_host_paths(text) if source.stat(path) is None]
    return Cdi(
        paths=tuple(paths),
        devices=tuple(dict.fromkeys(devices)),
        missing_paths=tuple(dict.fromkeys(missing)),
    )


def _cdi_names(text: str) -> list[str]:
    """Device names: in both notations a name that follows the start of a list item."""
    try:
        return [str(each["name"]) for each in json.loads(text).get("devices", ())]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return re.findall(r"^\s*(?:- )?name:\s*[\"']?([^\s\"']+)", text, re.M)


def _cdi_host_paths(text: str) -> list[str]:
    return re.findall(r"\"?hostPath\"?:\s*[\"']?(/[^\s\"',]+)", text)


def read_fabric_manager(source: Quiet, packages: Iterable[SystemPackage] | None) -> FabricManager:
    """Whether the fabric manager is installed, of which release, and whether it runs."""
    path = find(source, "nv-fabricmanager")
    version = next(
        (
            each.version
            for each in packages or ()
            if "fabricmanager" in each.name and "dev" not in each.name
        ),
        None,
    )
    running: bool | None = None
    if path is not None or version is not None:
        running = source.stat("/run/nvidia-fabricmanager/nv-fabricmanager.pid") is not None
    return FabricManager(
        installed_version=version,
        installed=path is not None or version is not None,
        running=running,
    )


def toolkit_version(packages: Iterable[SystemPackage] | None) -> str | None:
    """Release of the NVIDIA Container Toolkit package."""
    return next(
        (
            match.group()
            for each in packages or ()
            if each.name == "nvidia-container-toolkit" and (match := _PIECE.search(each.version))
        ),
        None,
    )
