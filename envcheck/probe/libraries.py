"""Which copy of a CUDA library a framework would load, decided as the dynamic loader decides.

For a name that an object needs, glibc's loader tries, in this order (ld.so(8)): an object of that
name that is already loaded; DT_RPATH of the object and of the objects that caused it to be loaded,
unless the object has a DT_RUNPATH; LD_LIBRARY_PATH; DT_RUNPATH of the object itself; the cache; the
default folders. What a library opens by dlopen is searched in the same way, starting at that
library.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from envcheck.model.base import model
from envcheck.model.environment import Library

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_NAME = re.compile(r"lib(\w+?)(?:-[0-9a-f]{8})?\.so(?:\.(\d+(?:\.\d+)*))?$")
_CANONICAL = {"nvJitLink": "nvjitlink", "cusparseLt": "cusparselt", "nvshmem_host": "nvshmem"}
_CUDA_NAMES = re.compile(
    r"lib(?:cudart|cublas|cublasLt|cudnn\w*|nccl|cufft|curand|cusolver|cusparse|cusparseLt|nvrtc"
    r"|nvJitLink|cupti|nvshmem_host)\.so"
)
_DEFAULT_FOLDERS = (
    "/lib/aarch64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
)


@model
class File:
    """A shared object as its headers describe it."""

    path: str
    real: str
    soname: str
    needed: tuple[str, ...] = ()
    rpath: tuple[str, ...] | None = None
    runpath: tuple[str, ...] | None = None
    readable: bool = True
    owners: tuple[str, ...] = ()
    header: tuple[tuple[str, str], ...] = ()


@model
class Choice:
    """The copy that wins, and by which step of the search."""

    path: str
    via: str


@model
class Search:
    """Everything outside the objects themselves that steers the loader."""

    library_path: tuple[str, ...] = ()
    cache: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """SONAME to paths, in the order tried."""
    preload: tuple[str, ...] = ()
    """Paths that LD_PRELOAD names."""
    executable: File | None = None
    """The interpreter: its DT_RPATH is searched for everything that has no DT_RUNPATH."""


def file_of(data: Mapping[str, Any]) -> File:
    """A shared object out of what the payload printed."""
    path = data["path"]
    folder = path.rpartition("/")[0]

    def folders(text: str | None) -> tuple[str, ...] | None:
        if text is None:
            return None
        expanded = (
            each.replace("${ORIGIN}", folder).replace("$ORIGIN", folder) for each in text.split(":")
        )
        return tuple(_flat(each) for each in expanded if each.startswith("/"))

    return File(
        path=path,
        real=data.get("real") or path,
        soname=data.get("soname") or path.rpartition("/")[2],
        needed=tuple(data.get("needed") or ()),
        rpath=folders(data.get("rpath")),
        runpath=folders(data.get("runpath")),
        readable=not data.get("unreadable"),
        owners=tuple(data.get("owners") or ()),
        header=tuple(sorted((data.get("header") or {}).items())),
    )


def _flat(path: str) -> str:
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in {"", "."}:
            parts.append(part)
    return "/" + "/".join(parts)


class Loader:
    """Plays the dynamic loader of one process."""

    def __init__(self, files: Iterable[File], search: Search) -> None:
        """Take the objects that exist and what steers the search; load what LD_PRELOAD names."""
        self._files = {each.path: each for each in files}
        self._search = search
        self._cache = dict(search.cache)
        self.loaded: dict[str, Choice] = {}
        self._chains: dict[str, tuple[File, ...]] = {}
        for path in search.preload:
            if path in self._files:
                self.load(self._files[path], "LD_PRELOAD")

    def load(self, root: File, via: str = "root") -> None:
        """Load an object and, breadth first as the loader does, all it needs."""
        self._chains[root.path] = ()
        self.loaded.setdefault(root.soname, Choice(path=root.path, via=via))
        queue = [root]
        while queue:
            asking = queue.pop(0)
            for soname in asking.needed:
                found = self.open(asking, soname)
                if found is not None:
                    queue.append(found)

    def open(self, asking: File, soname: str) -> File | None:
        """Resolve a name for an object; the file when this made it load, None otherwise."""
        if soname in self.loaded:
            return None
        choice = self._find(asking, soname)
        if choice is None:
            return None
        self.loaded[soname] = choice
        found = self._files.get(choice.path)
        if found is not None:
            self._chains[found.path] = (asking, *self._chains.get(asking.path, ()))
        return found

    def load_by_name(self, asking: File, sonames: Iterable[str]) -> None:
        """What an object opens by dlopen, each with all it needs."""
        for soname in sonames:
            found = self.open(asking, soname)
            queue = [found] if found is not None else []
            while queue:
                current = queue.pop(0)
                queue += [
                    each
                    for name in current.needed
                    if (each := self.open(current, name)) is not None
                ]

    def _find(self, asking: File, soname: str) -> Choice | None:
        if asking.runpath is None:
            executable = () if self._search.executable is None else (self._search.executable,)
            for each in (asking, *self._chains.get(asking.path, ()), *executable):
                # A loader with a DT_RUNPATH of its own lends no DT_RPATH to what it loads.
                if each.runpath is None:
                    found = self._in(each.rpath or (), soname, "rpath")
                    if found is not None:
                        return found
        return (
            self._in(self._search.library_path, soname, "LD_LIBRARY_PATH")
            or self._in(asking.runpath or (), soname, "runpath")
            or next((Choice(path=path, via="cache") for path in self._cache.get(soname, ())), None)
            or self._in(_DEFAULT_FOLDERS, soname, "default")
        )

    def _in(self, folders: Iterable[str], soname: str, via: str) -> Choice | None:
        for folder in folders:
            path = f"{folder.rstrip('/')}/{soname}"
            if path in self._files:
                return Choice(path=path, via=via)
        return None


def torch_choices(files: tuple[File, ...], search: Search, site: str) -> dict[str, Choice] | None:
    """What a process that imports torch would load; None when torch's headers were not read."""
    roots = []
    # Conda keeps torch's libraries with all others; the package folder may hold links to them.
    folders = (f"{site}/torch/lib", f"{site.partition('/lib/python')[0]}/lib")
    # torch opens the first with RTLD_GLOBAL to bring its dependencies in before anything else.
    for name in ("libtorch_global_deps.so", "libc10_cuda.so", "libtorch_cuda.so"):
        root = next(
            (each for folder in folders for each in files if each.path == f"{folder}/{name}"), None
        )
        if root is not None:
            if not root.readable:
                return None
            roots.append(root)
    if not any(each.soname == "libtorch_cuda.so" for each in roots):
        return None
    loader = Loader(files, search)
    for root in roots:
        loader.load(root)
    _load_cudnn_parts(loader, files)
    return loader.loaded


def plugin_choices(
    files: tuple[File, ...], search: Search, plugin: File
) -> dict[str, Choice] | None:
    """What a plugin that opens all its CUDA libraries by dlopen (as XLA's does) would load."""
    if not plugin.readable:
        return None
    loader = Loader(files, search)
    loader.load(plugin)
    near = {
        each.soname
        for each in files
        if each.path.rpartition("/")[0] in (plugin.rpath or plugin.runpath or ())
        and _CUDA_NAMES.match(each.soname)
        and not each.soname.startswith("libcudnn_")
    }
    loader.load_by_name(plugin, sorted(near))
    _load_cudnn_parts(loader, files)
    return loader.loaded


def _load_cudnn_parts(loader: Loader, files: tuple[File, ...]) -> None:
    """cuDNN's front library opens its parts by dlopen: its own search path decides."""
    for major in ("8", "9"):
        choice = loader.loaded.get(f"libcudnn.so.{major}")
        front = next((each for each in files if choice and each.path == choice.path), None)
        if front is not None:
            parts = {
                each.soname
                for each in files
                if each.soname.startswith("libcudnn_") and each.soname.endswith(f".so.{major}")
            }
            loader.load_by_name(front, sorted(parts))


def rows(
    files: tuple[File, ...],
    winners: Mapping[str, Mapping[str, Choice]],
    versions: Mapping[str, str],
    environment_folders: tuple[str, ...],
    search: Search,
) -> tuple[Library, ...]:
    """Copies of CUDA libraries as snapshot rows, one per real file.

    Args:
        files: all shared objects that were read.
        winners: framework to what it would load.
        versions: version by distribution name, for wheels' files.
        environment_folders: site folders and prefix of the environment.
        search: to tell a copy of LD_LIBRARY_PATH from others.
    """
    won: dict[str, list[tuple[str, str]]] = {}
    for framework, loaded in winners.items():
        for choice in loaded.values():
            real = next((each.real for each in files if each.path == choice.path), choice.path)
            won.setdefault(real, []).append((framework, choice.via))
    found: dict[str, Library] = {}
    for each in files:
        match = _NAME.fullmatch(each.path.rpartition("/")[2])
        if match is None or not _CUDA_NAMES.match(
            each.path.rpartition("/")[2].split("-")[0] + ".so"
        ):
            continue
        if each.real in found:
            continue
        name = _CANONICAL.get(match.group(1), match.group(1))
        wins = won.get(each.real, [])
        version = _version(each, versions)
        found[each.real] = Library(
            name=name,
            soname=each.soname,
            version=version,
            cuda_major=_cuda_major(name, each),
            path=each.path,
            origin=_origin(each, environment_folders, search),
            package=each.owners[0] if each.owners else None,
            wins_for=tuple(dict.fromkeys(framework for framework, _ in wins)),
            via=wins[0][1] if wins else None,
        )
    return tuple(sorted(found.values(), key=lambda each: (each.name, each.path)))


def _version(file: File, versions: Mapping[str, str]) -> str | None:
    owned = {
        versions[owner]
        for owner in file.owners
        if owner.startswith("nvidia-") and owner in versions
    }
    # Of several distributions that claim one file, the last one installed won: nobody knows which.
    if len(owned) == 1:
        return owned.pop()
    for path in (file.real, file.path):
        match = re.search(r"\.so\.(\d+\.\d+(?:\.\d+)*)$", path)
        # Some releases of cuRAND are named .so.0.0.0.0.
        if match and match.group(1).strip("0."):
            return match.group(1)
    parts = dict(file.header)
    numbers = [
        next((value for macro, value in parts.items() if macro.endswith(part)), None)
        for part in ("_MAJOR", "_MINOR", "_PATCHLEVEL")
    ]
    numbers[2] = numbers[2] or next((v for m, v in parts.items() if m.endswith("_PATCH")), None)
    if not all(numbers[:2]) or not file.soname.endswith(f".so.{numbers[0]}"):
        # No header, or the header of another copy's major.
        return None
    return ".".join(each for each in numbers if each is not None)


_BOUND_TO_CUDA = frozenset({"cudart", "cublas", "cublasLt", "nvrtc", "nvjitlink"})


def _cuda_major(name: str, file: File) -> int | None:
    """CUDA major that a copy belongs to, by its SONAME, its owner's name or its folder."""
    if name in _BOUND_TO_CUDA:
        match = re.search(r"\.so\.(\d+)", file.soname)
        return int(match.group(1)) if match and int(match.group(1)) >= 10 else None
    for texts in (file.owners, (file.real,)):
        matches = [
            re.search(r"-cu(\d\d)$|/cu(\d\d)/|/cuda-(\d\d)(?:\.\d+)?/", text) for text in texts
        ]
        majors = {next(each for each in match.groups() if each) for match in matches if match}
        if majors:
            return int(majors.pop()) if len(majors) == 1 else None
    return None


def _origin(file: File, environment_folders: tuple[str, ...], search: Search) -> Any:
    folder = file.path.rpartition("/")[0]
    if file.path.startswith(tuple(f"{each}/" for each in environment_folders)):
        if re.search(r"/(?:site|dist)-packages/nvidia/", file.path):
            return "wheel"
        inside = re.search(r"/(?:site|dist)-packages/|/torch/lib/", file.path)
        return "bundled" if inside else "conda"
    if re.search(r"/cuda(?:-[\d.]+)?/", file.path):
        return "toolkit"
    if folder in search.library_path:
        return "variable"
    return "system" if folder.startswith(("/usr/lib", "/lib", "/usr/local/lib")) else "other"
