"""Driver files and packages on disk, loaded or not."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING

from envcheck.model.base import model
from envcheck.model.host import DkmsModule, SystemPackage
from envcheck.probe.source import Command
from envcheck.versions import Release

if TYPE_CHECKING:
    from collections.abc import Mapping

    from envcheck.probe.quiet import Quiet
    from envcheck.probe.source import Result

LDCONFIG = Command(name="ldconfig", argv=("ldconfig", "-p"), timeout=5.0)
DPKG = Command(
    name="dpkg",
    argv=(
        "dpkg-query",
        "-W",
        "-f",
        "${Package} ${Version} ${db:Status-Want} ${db:Status-Status}\n",
        "*nvidia*",
        "cuda-drivers*",
        "cuda-compat*",
        "libcuda1*",
        "libcudnn*",
        "libnccl*",
        "nvlsm",
        "datacenter-gpu-manager*",
    ),
    timeout=8.0,
)
RPM = Command(
    name="rpm",
    argv=("rpm", "-qa", "--qf", "%{NAME} %{EPOCHNUM}:%{VERSION}-%{RELEASE}\n"),
    timeout=8.0,
)
_RPM_DATABASES = (
    "/var/lib/rpm/rpmdb.sqlite",
    "/usr/lib/sysimage/rpm/rpmdb.sqlite",
    "/var/lib/rpm/Packages",
)

_LIBRARY_FOLDERS = (
    "/usr/local/nvidia/lib64",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib/wsl/lib",
    "/usr/lib",
    "/run/opengl-driver/lib",
    "/usr/lib/aarch64-linux-gnu/nvidia",
)
_COMPAT = re.compile(r"/(?:cuda-)?compat(?:-[\d.-]+)?(?:/|$)")
"""Folder of a cuda-compat libcuda: `/usr/local/cuda-13.0/compat`, `$CONDA_PREFIX/cuda-compat`."""

_PACKAGE_NAMES = re.compile(
    r"nvidia-(?:driver|dkms|kernel|fabricmanager|open|headless|utils|compute|settings|persistenced"
    r"|container-toolkit|docker|imex|smi|modprobe|alternative|legacy|graphics|gds|fs|current|tesla)"
    r"|libnvidia-|linux-(?:modules|objects|signatures)-nvidia|cuda-(?:drivers|compat|keyring)"
    r"|kmod-nvidia|akmod-nvidia|xserver-xorg-video-nvidia|libcuda1|libcudnn|cudnn|libnccl|nvlsm"
    r"|nvidia-l4t-(?:core|cuda|kernel)|xorg-x11-drv-nvidia|dkms-nvidia|datacenter-gpu-manager"
)
_DRIVER_PACKAGES = re.compile(
    r"nvidia-(?:driver|dkms|kernel-(?:open|dkms|source|common)|open|headless|utils|smi|compute)"
    r"|libnvidia-(?:compute|ml)|linux-(?:modules|objects)-nvidia|cuda-drivers|(?:a|dkms-|kmod-)+nvidia"
    r"|kmod-nvidia|akmod-nvidia|libcuda1|xorg-x11-drv-nvidia|nvidia-l4t-core"
)


@model
class DriverFiles:
    """What of a driver is on disk."""

    libcuda_path: str | None = None
    libcuda_version: str | None = None
    nvml_version: str | None = None
    compat_path: str | None = None
    compat_version: str | None = None
    packages: tuple[SystemPackage, ...] | None = None
    dkms: tuple[DkmsModule, ...] | None = None
    module_file: str | None = None
    installed: bool | None = None


def package_commands(source: Quiet) -> tuple[Command, ...]:
    """What must be run to list the packages of this distribution."""
    if source.stat("/var/lib/dpkg/status") is not None:
        return (DPKG,)
    return (RPM,) if any(source.stat(path) for path in _RPM_DATABASES) else ()


@model
class LibcudaFiles:
    """The libcuda of the driver, and a cuda-compat one in front of it: path and release of each."""

    own: tuple[str, str | None] | None = None
    compat: tuple[str, str | None] | None = None


def find_libcuda(source: Quiet, results: Mapping[str, Result]) -> LibcudaFiles:
    """Look where the loader looks: LD_LIBRARY_PATH, its cache, then the usual folders.

    Args:
        source: the machine.
        results: of `LDCONFIG`.
    """
    cached = cached_libraries(results.get(LDCONFIG.name)).get("libcuda.so.1", ())
    places = (*_searched_folders(source), *cached)
    own = _first_library(source, "libcuda.so", places)
    compat = own if own and _is_compat(source, own[0]) else None
    if compat:
        rest = [place for place in places if not _is_compat(source, place)]
        own = _first_library(source, "libcuda.so", (*rest, *_LIBRARY_FOLDERS))
    return LibcudaFiles(
        own=own or _first_library(source, "libcuda.so", _LIBRARY_FOLDERS), compat=compat
    )


def read_driver_files(
    source: Quiet,
    kernel_release: str | None,
    libcuda: LibcudaFiles,
    results: Mapping[str, Result],
) -> DriverFiles:
    """Look for libraries, packages, DKMS state and a module file for the running kernel.

    Args:
        source: the machine.
        kernel_release: the running kernel's.
        libcuda: what `find_libcuda` found.
        results: of `LDCONFIG`, `DPKG` and `RPM`.
    """
    cache = cached_libraries(results.get(LDCONFIG.name))
    searched = _searched_folders(source)
    cuda, compat = libcuda.own, libcuda.compat
    nvml = _first_library(
        source,
        "libnvidia-ml.so",
        (*searched, *cache.get("libnvidia-ml.so.1", ()), *_LIBRARY_FOLDERS),
    )
    packages = _dpkg(results.get(DPKG.name))
    if packages is None:
        packages = _rpm(results.get(RPM.name))
    dkms = _dkms(source)
    module_file = _module_file(source, kernel_release)
    installed: bool | None = bool(
        cuda
        or nvml
        or module_file
        or dkms
        or any(_DRIVER_PACKAGES.match(each.name) for each in packages or ())
    )
    lists = [results[each.name] for each in (DPKG, RPM) if each.name in results]
    if not installed and (dkms is None or (packages is None and lists)):
        # Where a list of packages could not be had, their absence is not known.
        installed = None
    return DriverFiles(
        libcuda_path=cuda[0] if cuda else None,
        libcuda_version=cuda[1] if cuda else None,
        nvml_version=nvml[1] if nvml else None,
        compat_path=compat[0] if compat else None,
        compat_version=compat[1] if compat else None,
        packages=packages,
        dkms=dkms,
        module_file=module_file,
        installed=installed,
    )


def cached_libraries(result: Result | None) -> Mapping[str, tuple[str, ...]]:
    """The loader's cache: SONAME to files, in the order in which they are tried."""
    return {} if result is None or result.code != 0 else _cached(result.stdout)


@functools.lru_cache(maxsize=2)
def _cached(text: str) -> dict[str, tuple[str, ...]]:
    """Remembered: the text is long, and several collectors ask."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        match = re.match(r"\s+(\S+) \((\S[^)]*)\) => (\S+)", line)
        # 64-bit libraries have it in their flags: `libc6,x86-64`, `libc6,AArch64`, `libc6,64bit`.
        if match and "64" in match.group(2):
            found.setdefault(match.group(1), []).append(match.group(3))
    return {name: tuple(paths) for name, paths in found.items()}


def _searched_folders(source: Quiet) -> tuple[str, ...]:
    return tuple(
        folder
        for folder in source.variables.get("LD_LIBRARY_PATH", "").split(":")
        if folder.startswith("/")
    )


def _first_library(
    source: Quiet, stem: str, places: tuple[str, ...]
) -> tuple[str, str | None] | None:
    """First file of a library in folders or at paths, with the release that its full name tells."""
    for place in places:
        path = place if ".so" in place.rpartition("/")[2] else f"{place.rstrip('/')}/{stem}.1"
        facts = source.stat(path)
        if facts is None:
            continue
        real = _follow(source, path)
        version = re.fullmatch(re.escape(stem) + r"\.(\d+\.[\d.]+)", real.rpartition("/")[2])
        return real, version.group(1) if version else _beside(source, path, stem)
    return None


def _beside(source: Quiet, path: str, stem: str) -> str | None:
    """Release told by a sibling file, when the library is no link to its full name."""
    names = source.list(path.rpartition("/")[0]) or ()
    found = {
        match.group(1)
        for name in names
        if (match := re.fullmatch(re.escape(stem) + r"\.(\d{3,}\.[\d.]+)", name))
    }
    return found.pop() if len(found) == 1 else None


def _follow(source: Quiet, path: str, limit: int = 8) -> str:
    for _ in range(limit):
        facts = source.stat(path)
        if facts is None or facts.kind != "link" or not facts.target:
            return path
        folder = path.rpartition("/")[0]
        path = facts.target if facts.target.startswith("/") else f"{folder}/{facts.target}"
    return path


def _is_compat(source: Quiet, path: str) -> bool:
    return any(_COMPAT.search(each) for each in (path, _follow(source, path)))


def _dpkg(result: Result | None) -> tuple[SystemPackage, ...] | None:
    # It ends with 1 when one of the patterns matches nothing, and prints the others all the same.
    if result is None or result.outcome != "ok" or result.code not in {0, 1}:
        return None
    found = []
    for line in result.stdout.splitlines():
        name, version, want, state = (*line.split(" "), "", "", "", "")[:4]
        if state and state not in {"config-files", "not-installed"} and _PACKAGE_NAMES.match(name):
            held = want == "hold" and state == "installed"
            found.append(SystemPackage(name=name, version=version, state="held" if held else state))
    return tuple(sorted(found, key=lambda each: each.name))


def _rpm(result: Result | None) -> tuple[SystemPackage, ...] | None:
    if result is None or result.code != 0:
        return None
    pairs = (line.split(" ", 1) for line in result.stdout.splitlines() if " " in line)
    return tuple(
        SystemPackage(name=name, version=re.sub("^0:", "", version))
        for name, version in sorted(pairs)
        if _PACKAGE_NAMES.match(name)
    )


def _dkms(source: Quiet) -> tuple[DkmsModule, ...] | None:
    """DKMS keeps its state as folders: module/version/kernel/arch/module."""
    modules = source.list("/var/lib/dkms")
    if modules is None:
        return () if "/var/lib/dkms" not in source.refused else None
    found = []
    for module in modules:
        if "nvidia" not in module:
            continue
        for version in source.list(f"/var/lib/dkms/{module}") or ():
            if Release.maybe(version) is None:
                continue
            place = f"/var/lib/dkms/{module}/{version}"
            kernels = [name for name in source.list(place) or () if name not in {"source", "build"}]
            found += [
                DkmsModule(
                    name=module,
                    version=version,
                    kernel=kernel,
                    state=_dkms_state(source, place, kernel),
                )
                for kernel in kernels
            ] or [DkmsModule(name=module, version=version, state="added")]
    return tuple(found)


def _dkms_state(source: Quiet, place: str, kernel: str) -> str:
    for arch in source.list(f"{place}/{kernel}") or ():
        if source.list(f"{place}/{kernel}/{arch}/module"):
            return "built"
    return "failed"


_MODULE_FOLDERS = (
    "updates/dkms",
    "updates",
    "extra",
    "extra/nvidia",
    "weak-updates/nvidia",
    "kernel/drivers/video",
    "kernel/drivers/video/nvidia",
)


def _module_file(source: Quiet, kernel_release: str | None) -> str | None:
    """A module file for the running kernel, in the folders where packages and DKMS put it."""
    if not kernel_release:
        return None
    base = f"/lib/modules/{kernel_release}"
    prebuilt = [
        f"kernel/{name}"
        for name in source.list(f"{base}/kernel") or ()
        if name.startswith("nvidia")
    ]
    for folder in (*_MODULE_FOLDERS, *prebuilt):
        for name in source.list(f"{base}/{folder}") or ():
            if re.fullmatch(r"nvidia(?:-current)?\.ko(?:\.\w+)?", name):
                return f"{base}/{folder}/{name}"
    return None
