"""Reads what shells print about a machine: system files, package lists, variables, services."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from envcheck.intake import values

if TYPE_CHECKING:
    from envcheck.intake.collected import Collected

_MODULE = re.compile(
    r"NVRM version:[ \t]*NVIDIA UNIX (Open )?(?:\w+ )?Kernel Module(?: for \S+)?[ \t]+"
    r"(\d{2,3}\.\d{2,3}(?:\.\d{1,3})?)"
)
_MODINFO = re.compile(r"^version:[ \t]+(\d{3}\.\d{2,3}(?:\.\d{1,3})?)[ \t]*$", re.MULTILINE)
_DPKG = re.compile(
    r"^(ii|hi|rc|iU|iF)[ \t]+(\S*(?:nvidia|libcuda|cuda|libcudnn|libnccl)\S*?)(?::\w+)?[ \t]+(\S+)",
    re.MULTILINE,
)
_RUNFILE = re.compile(r"NVIDIA-Linux-\w+-(\d{3}\.\d{2,3}(?:\.\d{1,3})?)(?:-\S*)?\.run")
_OPEN_SOURCE = re.compile(r"open-gpu-kernel-modules-(\d{3}\.\d{2,3}(?:\.\d{1,3})?)")
_UNAME = re.compile(r"^Linux \S+ (\d+\.\d+\S*) .*?\b(x86_64|aarch64|ppc64le)\b", re.MULTILINE)
_OS_RELEASE = re.compile(r'^(ID|VERSION_ID|PRETTY_NAME)="?([^"\n]+?)"?$', re.MULTILINE)
_L4T = re.compile(
    r"#[ \t]*R(\d{2}) \(release\), REVISION: (\d+(?:\.\d+)?)"
    r"|\bL4T\b[^\n\d]{0,24}R?(\d{2}\.\d+(?:\.\d+)?)"
    r"|\bJetson ?Linux[ \t]*(\d{2}\.\d+(?:\.\d+)?)"
)
_JETPACK = re.compile(r"\bjetpack(?: version)?[ \t:=]*v?(\d\.\d(?:\.\d)?)", re.IGNORECASE)
_KERNEL_LINE = re.compile(
    r"NVRM|\bXid\b|nvidia-(?:nvlink|modeset|uvm|drm|fs)\b|\bnouveau\b|nvidia: |pcieport|AER: |"
    r"PCIe Bus Error|module verification failed|Key was rejected|nvlink|RmInitAdapter",
)
_VARIABLE = re.compile(
    r"""(?:^|[ \t;(\["'])(?:export[ \t]+|setenv[ \t]+|ENV[ \t]+|-e[ \t]+|\$env:|set[ \t]+)?"""
    r"""(?:os\.environ\[["'])?((?:CUDA|NVIDIA|NCCL|GLOO|LD|TORCH|XLA|TF)_[A-Z0-9_]+)(?:["']\])?"""
    r"""[ \t]*[=:][ \t]*["']?([^"'\n]*?)["']?(?=[ \t;]|$|["'])""",
    re.MULTILINE,
)
_ECHOED = re.compile(
    r"\becho[ \t]+[\"']?\$\{?([A-Z_]{4,40})\}?[\"']?[ \t]*\n[ \t]*([^\s$>#][^\n]{0,1999}|-1)$",
    re.MULTILINE,
)
_WANTED = re.compile(
    r"LD_LIBRARY_PATH|LD_PRELOAD|CUDA_(?:VISIBLE_DEVICES|HOME|PATH|DEVICE_ORDER)|NVIDIA_\w+|NCCL_\w+"
    r"|GLOO_\w+"
)
_CONTAINER_PROMPT = re.compile(r"^\(?\w*\)?[ \t]*root@[0-9a-f]{12}:|\(container\)", re.MULTILINE)
_LSPCI = re.compile(
    r"^(?:([0-9a-f]{4}):)?([0-9a-f]{2}:[0-9a-f]{2}\.[0-7])[ \t]+"
    r"(VGA compatible controller|3D controller|Display controller|Bridge)"
    r"(?:[ \t]*\[([0-9a-f]{4})\])?:[ \t]*NVIDIA[^\n\[]*(?:\[([^\]\n]*)\])?"
    r"(?:[^\n]*\[10de:([0-9a-f]{4})\])?",
    re.MULTILINE | re.IGNORECASE,
)
_KERNEL_DRIVER = re.compile(r"Kernel driver in use:[ \t]*(\S+)")
_SHM = re.compile(
    r"^(?:shm|tmpfs)[ \t]+([\d.]+[KMGT]?)[ \t]+\S+[ \t]+\S+[ \t]+\d+%[ \t]+/dev/shm", re.MULTILINE
)
_SHM_REPORT = re.compile(r"shared memory \(/dev/shm\) size[ .]*[ \t]([\d.]+ ?[KMGT]i?B)")
_NVCC = re.compile(r"Cuda compilation tools, release (\d+\.\d+)(?:, V([\d.]+))?")
_GCC = re.compile(
    r"^(gcc|g\+\+|clang)(?:-\d+)? (?:version |\([^)\n]*\) )(\d+\.\d+(?:\.\d+)?)", re.M
)
_FABRIC = re.compile(
    r"nvidia-fabricmanager(?:\.service)?[^\n]{0,160}\n(?:[^\n]*\n){0,4}?[ \t]*Active:[ \t]*(\w+)"
)
_RUNTIMES = re.compile(r"^[ \t]*Runtimes:[ \t]*(\S[^\n]*)$", re.MULTILINE)
_SERVER = re.compile(r"^[ \t]*Server Version:[ \t]*(\S+)", re.MULTILINE)
_CDI_DEVICE = re.compile(r"^[ \t]*(nvidia\.com/gpu=[\w:.-]+)[ \t]*$", re.MULTILINE)


def read(found: Collected) -> None:
    """Collect facts about the machine."""
    _driver_files(found)
    _system(found)
    _kernel_log(found)
    _variables(found)
    _engines(found)
    _devices(found)
    _building(found)


def _driver_files(found: Collected) -> None:
    for match in _MODULE.finditer(found.text):
        found.recognised = True
        found.driver.setdefault("open_module", bool(match[1]))
        found.driver.setdefault("module_version", match[2])
        found.driver["module_loaded"] = True
    if found.has("filename:") and "modinfo" in found.lower:
        file = _MODINFO.search(found.text)
        if file is not None:
            found.driver.setdefault("module_file_version", file[1])
    if re.search(r"^(?:ii|hi|rc) ", found.text, re.MULTILINE):
        for match in _DPKG.finditer(found.text):
            state = {"ii": "installed", "hi": "held", "rc": "removed"}.get(match[1], "broken")
            found.system_packages.append((match[2], match[3], state))
            found.recognised = True
    run = _RUNFILE.search(found.text)
    source = _OPEN_SOURCE.search(found.text)
    if run:
        found.driver.setdefault("userspace_version", run[1])
    if run and source:
        # Modules that were built apart from the installer that brought the libraries.
        found.driver.setdefault("module_version", source[1])


def _system(found: Collected) -> None:
    match = _UNAME.search(found.text)
    if match:
        found.recognised = True
        values.read_kernel(found, match[1])
        found.first(found.os, "machine", match[2])
    if "PRETTY_NAME=" in found.text or "VERSION_ID=" in found.text:
        known = dict(_OS_RELEASE.findall(found.text))
        values.read_os(found, known.get("PRETTY_NAME"))
        found.first(found.os, "id", known.get("ID"))
        found.first(found.os, "version", known.get("VERSION_ID"))
    if found.has("l4t", "nv_tegra", "(release), revision", "jetson linux"):
        match = _L4T.search(found.text)
        if match:
            found.jetson = f"{match[1]}.{match[2]}" if match[1] else match[3] or match[4]
            found.recognised = True
    if found.has("jetson", "jetpack", "tegra"):
        pack = _JETPACK.search(found.text)
        tegra = found.os.get("tegra") or re.search(
            r"\b(?:\d+\.\d+\.\d+-tegra|nvgpu)\b", found.lower
        )
        aarch = found.has("aarch64", "arm64") or found.os.get("machine") == "aarch64"
        if found.jetson is None and (pack or tegra or (aarch and "jetson" in found.lower)):
            found.jetson = f"of JetPack {pack[1]}" if pack else "of unknown release"
            found.recognised = True
    if found.wsl is None and found.has("wsl2", "/usr/lib/wsl/", "wsl 2", "microsoft-standard"):
        found.wsl = 2
    windows = found.has("c:\\", "d:\\", "e:\\", "windows 10", "windows 11", "win_amd64")
    if windows and found.wsl is None and "id" not in found.os:
        found.os["id"] = "windows"
        edition = re.search(r"windows (10|11)", found.lower)
        found.first(found.os, "version", edition[1] if edition else None)


def _kernel_log(found: Collected) -> None:
    if not found.has("nvrm", "xid", "nvlink", "nouveau", "aer:", "pcie bus error", "rejected"):
        return
    for line in found.lines:
        if _KERNEL_LINE.search(line) and len(found.kernel_log) < 2000:
            found.kernel_log.append(line.strip())
            found.recognised = True
    if any("nouveau" in line.lower() for line in found.kernel_log) and found.has(
        "kernel driver in use: nouveau"
    ):
        found.driver["nouveau_loaded"] = True


def _variables(found: Collected) -> None:
    if not found.has("cuda_", "nvidia_", "ld_", "nccl_", "gloo_"):
        return
    for match in (*_VARIABLE.finditer(found.text), *_ECHOED.finditer(found.text)):
        name, value = match[1], match[2].strip()
        if name == "CUDA_VISIBLE_DEVICES":
            value = value.strip("[]")  # as Lightning prints it
        if _WANTED.fullmatch(name) and name not in found.variables and len(value) < 2000:
            found.variables[name] = value
            found.recognised = True
    if found.wsl is None and "/usr/lib/wsl/lib" in found.variables.get("LD_LIBRARY_PATH", ""):
        found.wsl = 2


def _engines(found: Collected) -> None:
    if _CONTAINER_PROMPT.search(found.text) or "/.dockerenv" in found.text:
        found.container["kind"] = "docker"
    for name, key in (
        ("NVIDIA_VISIBLE_DEVICES", "visible_devices"),
        ("NVIDIA_DRIVER_CAPABILITIES", "driver_capabilities"),
        ("NVIDIA_REQUIRE_CUDA", "require_cuda"),
    ):
        if name in found.variables:
            found.container.setdefault(key, found.variables[name])
    server, runtimes = _SERVER.search(found.text), _RUNTIMES.search(found.text)
    if server or runtimes:
        found.recognised = True
        engine = found.engines.setdefault("docker", {})
        if server:
            engine.setdefault("version", server[1])
        if runtimes:
            engine.setdefault("runtimes", tuple(sorted(runtimes[1].split())))
        default = re.search(r"^[ \t]*Default Runtime:[ \t]*(\S+)", found.text, re.MULTILINE)
        if default:
            engine.setdefault("default_runtime", default[1])
    if found.has(
        "desktop-linux *", "operating system: docker desktop", "docker/desktop/docker.sock"
    ):
        found.engines.setdefault("docker", {})["desktop"] = True
        found.recognised = True
    found.cdi_devices += _CDI_DEVICE.findall(found.text)


def _devices(found: Collected) -> None:
    if "NVIDIA" in found.text:
        for match in _LSPCI.finditer(found.text):
            found.recognised = True
            following = found.text[match.end() : match.end() + 400]
            stop = re.search(r"\n[0-9a-f]{2}:[0-9a-f]{2}\.", following)
            driver = _KERNEL_DRIVER.search(following[: stop.start() if stop else None])
            kind = {"vga": "0300", "3d ": "0302", "dis": "0380", "bri": "0680"}
            found.pci.append(
                {
                    "address": f"{match[1] or '0000'}:{match[2]}",
                    "class_code": match[4] or kind[match[3][:3].lower()],
                    "name": match[5],
                    "device": match[6],
                    "kernel_driver": driver[1] if driver else None,
                }
            )
    mounted = _SHM.search(found.text) or _SHM_REPORT.search(found.text)
    if mounted is not None:
        found.shm_bytes = values.size(mounted[1])
    fabric = _FABRIC.search(found.text)
    if fabric is not None:
        found.fabric_manager.update(installed=True, running=fabric[1] == "active")
        found.recognised = True


def _building(found: Collected) -> None:
    for match in _NVCC.finditer(found.text):
        found.recognised = True
        found.toolkits.append({"version": match[1], "via": "nvcc", "on_path": True})
    for match in _GCC.finditer(found.text):
        found.compilers.append((match[1].replace("g++", "gcc"), match[2]))
