"""Plays glibc's dynamic loader over what the headers of shared objects say.

For a name that an object needs, the loader tries, in this order (ld.so(8)): an object of that name
that is already loaded; DT_RPATH of the object and of those that caused it to be loaded, unless the
object has a DT_RUNPATH; LD_LIBRARY_PATH; DT_RUNPATH of the object itself; the cache; default
folders. What an object opens by dlopen is searched in the same way, starting at that object; what
is opened by a path is loaded from there, and serves all who ask for its name later.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from envcheck.model.base import model

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

CUDA_NAMES = re.compile(
    r"lib(?:cudart|cublas|cublasLt|cudnn\w*|nccl|cufft|curand|cusolver|cusparse|cusparseLt|nvrtc"
    r"|nvJitLink|cupti|nvshmem_host)(?:-[0-9a-f]{8})?\.so"
)
"""Beginnings of the file names and SONAMEs of CUDA's libraries."""

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

    @property
    def folder(self) -> str:
        """The folder that it lies in, links not followed."""
        return self.path.rpartition("/")[0]

    @property
    def name(self) -> str:
        """Its file name."""
        return self.path.rpartition("/")[2]


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
            each.replace("${ORIGIN}", folder).replace("$ORIGIN", folder)
            for each in dict.fromkeys(text.split(":"))
        )
        return tuple(dict.fromkeys(_flat(each) for each in expanded if each.startswith("/")))

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
    """One process.

    Attributes:
        loaded: the copy that a name stands for; of several with one name the first.
        missing: names of CUDA's libraries that somebody needed and that were not found.
    """

    def __init__(self, files: Iterable[File], search: Search) -> None:
        """Take the objects that exist and what steers the search; load what LD_PRELOAD names."""
        self.files = {each.path: each for each in files}
        self.loaded: dict[str, Choice] = {}
        self.missing: set[str] = set()
        self._search = search
        self._cache = dict(search.cache)
        self._scanned = {each.folder for each in self.files.values()}
        self._chains: dict[str, tuple[File, ...]] = {}
        for path in search.preload:
            if path in self.files:
                self.load(self.files[path], "LD_PRELOAD")

    def load(self, root: File, via: str = "root") -> None:
        """Load an object by its path and, breadth first as the loader does, all it needs."""
        if root.path in self._chains:
            return
        self._chains[root.path] = ()
        self._name(root.soname, root, Choice(path=root.path, via=via))
        self._with_needs(root)

    def open(self, asking: File, *names: str) -> None:
        """Let an object open the first of several names that there is, by dlopen."""
        for name in names:
            if name in self.loaded:
                return
            found = self._resolve(asking, name)
            if found is not None:
                if found.path in self.files:
                    self._with_needs(self.files[found.path])
                return

    def _with_needs(self, root: File) -> None:
        queue = [root]
        while queue:
            asking = queue.pop(0)
            for name in asking.needed:
                if name in self.loaded:
                    continue
                found = self._resolve(asking, name)
                if found is not None and found.path in self.files:
                    queue.append(self.files[found.path])
                elif found is None and CUDA_NAMES.match(name):
                    self.missing.add(name)

    def _resolve(self, asking: File, name: str) -> Choice | None:
        choice = self._find(asking, name)
        if choice is not None:
            found = self.files.get(choice.path)
            self._name(name, found, choice)
            if found is not None:
                self._chains[found.path] = (asking, *self._chains.get(asking.path, ()))
        return choice

    def _name(self, name: str, file: File | None, choice: Choice) -> None:
        """From now on a name, and the object's own, stand for this copy."""
        self.loaded.setdefault(name, choice)
        if file is not None:
            self.loaded.setdefault(file.soname, choice)

    def _find(self, asking: File, name: str) -> Choice | None:
        if asking.runpath is None:
            executable = () if self._search.executable is None else (self._search.executable,)
            for each in (asking, *self._chains.get(asking.path, ()), *executable):
                # A loader with a DT_RUNPATH of its own lends no DT_RPATH to what it loads.
                if each.runpath is None:
                    found = self._in(each.rpath or (), name, "rpath")
                    if found is not None:
                        return found
        return (
            self._in(self._search.library_path, name, "LD_LIBRARY_PATH")
            or self._in(asking.runpath or (), name, "runpath")
            or self._in_cache(name)
            or self._in(_DEFAULT_FOLDERS, name, "default")
        )

    def _in(self, folders: Iterable[str], name: str, via: str) -> Choice | None:
        for folder in folders:
            path = f"{folder.rstrip('/')}/{name}"
            if path in self.files:
                return Choice(path=path, via=via)
        return None

    def _in_cache(self, name: str) -> Choice | None:
        """The cache may name files that are gone: of folders that were read, those are left out."""
        for path in self._cache.get(name, ()):
            if path in self.files or path.rpartition("/")[0] not in self._scanned:
                return Choice(path=path, via="cache")
        return None
