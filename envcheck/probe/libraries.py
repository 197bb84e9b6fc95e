"""Which copy of each CUDA library a framework would load, and the copies that there are.

A framework does not only need libraries by name. torch and JAX open those of NVIDIA's wheels by
their paths, in an order that differs from release to release, and cuDNN opens its own parts by
dlopen.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from envcheck.model.base import model
from envcheck.model.environment import Library
from envcheck.probe.loader import CUDA_NAMES, Loader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from envcheck.probe.loader import Choice, File, Search

_NAME = re.compile(r"lib(\w+?)(?:-[0-9a-f]{8})?\.so(?:\.(\d+(?:\.\d+)*))?$")
_CANONICAL = {"nvJitLink": "nvjitlink", "cusparseLt": "cusparselt", "nvshmem_host": "nvshmem"}
_TORCH_ROOTS = ("libtorch_python.so", "libc10_cuda.so", "libtorch_cuda.so")


@model
class Loading:
    """What a framework's Python code opens by path: folder below `nvidia`, file name or pattern.

    Attributes:
        always: opened after torch's first library, or before JAX's plugin.
        after_failure: opened when that first library could not be loaded.
        releases: CUDA releases for which `always` holds; None for all.
        marker: `always` holds only if the CUDA runtime that was loaded has this in its path.
    """

    always: tuple[tuple[str, str], ...] = ()
    after_failure: tuple[tuple[str, str], ...] = ()
    releases: tuple[str, ...] | None = None
    marker: str = ""


def torch_loading(data: Mapping[str, Any] | None) -> Loading:
    """Of what the payload read in torch's source; nothing when it could not tell."""
    if not data:
        return Loading()
    releases = data.get("releases")
    return Loading(
        always=_pairs(data.get("always")),
        after_failure=_pairs(data.get("after_failure")),
        releases=None if releases is None else tuple(releases),
        marker=str(data.get("marker") or ""),
    )


def jax_loading(data: Iterable[Iterable[str]] | None) -> Loading:
    """Of what the payload read in the source of JAX's plugin."""
    return Loading(always=_pairs(data))


def _pairs(data: Iterable[Iterable[str]] | None) -> tuple[tuple[str, str], ...]:
    pairs = [tuple(each) for each in data or ()]
    return tuple((each[0], each[1]) for each in pairs if len(each) == 2)


def torch_choices(
    files: tuple[File, ...],
    search: Search,
    site: str,
    *,
    loading: Loading | None = None,
    cuda: str | None = None,
    version: Callable[[File], str | None] = lambda _file: None,
) -> dict[str, Choice] | None:
    """What a process that imports torch would load; None when torch's headers were not read.

    Args:
        files: all shared objects that were read.
        search: what else steers the loader.
        site: folder that holds torch.
        loading: what its Python code opens by path.
        cuda: CUDA release that it was built for.
        version: of a file.
    """
    loading = loading or Loading()
    # Conda keeps torch's libraries with all others; the package folder may hold links to them.
    folders = (f"{site}/torch/lib", f"{site.partition('/lib/python')[0]}/lib")
    known = {each.path: each for each in files}

    def root(name: str) -> File | None:
        return next((known[p] for f in folders if (p := f"{f}/{name}") in known), None)

    first = root("libtorch_global_deps.so")
    roots = [each for name in _TORCH_ROOTS if (each := root(name)) is not None]
    if not all(each.readable for each in (*roots, *filter(None, (first,)))):
        return None
    if not any(each.name == "libtorch_cuda.so" for each in roots):
        return None
    loader = Loader(files, search)
    if first is not None:
        before = set(loader.missing)
        loader.load(first)
        if loader.missing - before:
            # Nothing stays loaded of a library that lacks one that it needs.
            loader = Loader(files, search)
            _by_path(loader, files, loading.after_failure, cuda)
            loader.load(first)
        elif _applies(loading, loader, cuda):
            _by_path(loader, files, loading.always, cuda)
    for each in roots:
        loader.load(each)
    _open_cudnn_parts(loader, files, version)
    return loader.loaded


def _applies(loading: Loading, loader: Loader, cuda: str | None) -> bool:
    """Whether torch goes on to open libraries by path after its first one was loaded."""
    if loading.releases is not None and cuda not in loading.releases:
        return False
    runtimes = [c.path for name, c in loader.loaded.items() if name.startswith("libcudart.so")]
    return any(loading.marker in each for each in runtimes)


def _by_path(
    loader: Loader,
    files: tuple[File, ...],
    pairs: Iterable[tuple[str, str]],
    cuda: str | None = None,
    *,
    all_needed: bool = True,
) -> None:
    """Open libraries of NVIDIA's wheels by path; for torch the first one not there ends it."""
    # In the order of the folders that Python imports from, which is that of the files.
    sites = tuple(
        dict.fromkeys(
            each.path.partition("/nvidia/")[0] for each in files if "/nvidia/" in each.path
        )
    )
    for folder, pattern in pairs:
        if not CUDA_NAMES.match(pattern):
            continue
        places = [
            f"{site}/nvidia/{each}/lib"
            for site in sites
            for each in (folder, *((f"cu{cuda.partition('.')[0]}",) if cuda else ()))
        ]
        found = next(
            (
                each
                for place in places
                for each in files
                if each.folder == place and fnmatchcase(each.name, pattern)
            ),
            None,
        )
        before = set(loader.missing)
        if found is not None:
            loader.load(found, "framework")
        if all_needed and (found is None or loader.missing - before):
            return


def plugin_choices(
    files: tuple[File, ...],
    search: Search,
    plugin: File,
    *,
    loading: Loading | None = None,
    version: Callable[[File], str | None] = lambda _file: None,
) -> dict[str, Choice] | None:
    """What a plugin that opens all its CUDA libraries by dlopen (as XLA's does) would load.

    Its Python code opens those of NVIDIA's wheels by path before. A library found so still looks
    for what it needs itself: that is how an older cuBLASLt on LD_LIBRARY_PATH gets in.

    Args:
        files: all shared objects that were read.
        search: what else steers the loader.
        plugin: the plugin.
        loading: what its Python code opens by path.
        version: of a file.
    """
    if not plugin.readable:
        return None
    loader = Loader(files, search)
    _by_path(loader, files, (loading or Loading()).always, all_needed=False)
    loader.load(plugin)
    near = {
        each.soname
        for each in files
        if each.folder in (plugin.rpath or plugin.runpath or ())
        and CUDA_NAMES.match(each.soname)
        and not each.soname.startswith("libcudnn_")
    }
    for each in sorted(near):
        loader.open(plugin, each)
    _open_cudnn_parts(loader, files, version)
    return loader.loaded


def _open_cudnn_parts(
    loader: Loader, files: tuple[File, ...], version: Callable[[File], str | None]
) -> None:
    """cuDNN's front library opens its parts by dlopen: its own search path decides.

    From cuDNN 9 on it asks for the file of its very own release first: `.so.9.1.0`, `.so.9.1`, then
    `.so.9`.
    """
    for major in ("8", "9"):
        choice = loader.loaded.get(f"libcudnn.so.{major}")
        front = loader.files.get(choice.path) if choice else None
        if front is None:
            continue
        end = f".so.{major}"
        parts = {
            each.soname
            for each in files
            if each.soname.startswith("libcudnn_") and each.soname.endswith(end)
        }
        release = (version(front) or "").split(".")[:3]
        ends = [".so." + ".".join(release[:length]) for length in (3, 2) if length <= len(release)]
        for part in sorted(parts):
            stem = part[: -len(end)]
            loader.open(front, *(stem + each for each in (ends if major != "8" else ())), part)


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
        match = _NAME.fullmatch(each.name)
        if match is None or not CUDA_NAMES.match(each.name):
            continue
        if each.real in found:
            continue
        name = _CANONICAL.get(match.group(1), match.group(1))
        wins = won.get(each.real, [])
        version = version_of(each, versions)
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


def version_of(file: File, versions: Mapping[str, str]) -> str | None:
    """Release of a file: its distribution's, else its full name's, else a header's beside it."""
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
