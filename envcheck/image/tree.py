"""The files of an image, unpacked from a tar stream: all their names, and what of them is read.

An image with a GPU framework has ten gigabytes; what says of what it is made has a few megabytes.
Of shared objects only the headers are kept, in files of full length that take no room.
"""

from __future__ import annotations

import posixpath
import re
from typing import IO, TYPE_CHECKING, Literal

from envcheck.image.trouble import EngineError
from envcheck.model.base import model
from envcheck.payloads import elf_headers
from envcheck.probe.loader import CUDA_NAMES

if TYPE_CHECKING:
    import tarfile
    from collections.abc import Callable
    from pathlib import Path

Kind = Literal["file", "directory", "link", "char", "block", "other"]

LARGEST_TEXT = 40_000_000
"""Bytes of a text that is kept; nothing that is read has more."""

_BUFFER = 1 << 16
"""Bytes read at a time. `tarfile` copies what is left of them at every header: more are slower."""

_MOST_LINKS = 40
"""Links that are followed on the way to one file, as the kernel does."""

_TEXT = re.compile(
    r"\.(?:dist|egg)-info(?:/(?:METADATA|WHEEL|RECORD|INSTALLER|direct_url\.json|PKG-INFO))?$"
    r"|\.egg-link$"
    r"|/(?:pyvenv\.cfg|pipx_metadata\.json|EXTERNALLY-MANAGED|patchlevel\.h)$"
    r"|/conda-meta/[^/]+\.json$"
    r"|/(?:torch|jaxlib|tensorflow|torchvision|torchaudio)/version\.py$"
    r"|/torch/__init__\.py$|/jax_plugins/[^/]+/__init__\.py$"
    r"|/tensorflow/python/platform/build_info\.py$"
    r"|/(?:cudnn_version|nccl)\.h$|/cuda[^/]*/version\.(?:json|txt)$"
    r"|^/etc/(?:os-release|debian_version|ld\.so\.cache|nv_tegra_release)$|^/usr/lib/os-release$"
)
_WHOLE = re.compile(r"/libtorch_python\.so$|/libc(?:-[\d.]+)?\.so(?:\.6)?$")
"""Code that is searched for what it says, and not only read in its headers."""
_NATIVE = re.compile(r"/(?:lib(?:torch|c10|shm|caffe2)\w*|xla_cuda_plugin)\.so$")
_INTERPRETER = re.compile(r"/bin/(?:python|pypy)[\d.]*t?$")


@model
class Entry:
    """What a path is."""

    kind: Kind
    mode: int = 0
    size: int = 0
    target: str | None = None
    """Of a link: its text."""
    kept: bool = False
    """Its text or its headers can be read below the tree's folder."""


class Tree:
    """The files of an image, below a folder of this machine."""

    def __init__(self, folder: Path) -> None:
        """Take the folder that what is kept is put into."""
        # As links of this machine resolve it, so that it can be cut off again.
        self.folder = folder.resolve()
        self.entries: dict[str, Entry] = {"/": Entry(kind="directory", mode=0o755)}
        self.names: dict[str, set[str]] = {"/": set()}
        self.bytes = 0

    def entry(self, path: str) -> Entry | None:
        """What a path is, a last link not followed."""
        head, _, name = _clean(path).rpartition("/")
        folder = self.resolve(head or "/")
        if folder is None:
            return None
        return self.entries.get(posixpath.join(folder, name) if name else folder)

    def resolve(self, path: str) -> str | None:
        """The real path behind links; None where there is nothing."""
        rest = [part for part in path.split("/") if part and part != "."]
        place, followed = "", 0
        while rest:
            part = rest.pop(0)
            if part == "..":
                place = place.rpartition("/")[0]
                continue
            entry = self.entries.get(f"{place}/{part}")
            if entry is None:
                return None
            if entry.kind != "link":
                place = f"{place}/{part}"
                continue
            followed += 1
            if followed > _MOST_LINKS:
                return None
            target = entry.target or ""
            if target.startswith("/"):
                place = ""
            rest[:0] = [part for part in target.split("/") if part and part != "."]
        return place or "/"

    def place(self, path: str) -> Path:
        """Where a real path lies on this machine."""
        return self.folder / path.lstrip("/")

    def add(self, path: str, entry: Entry) -> None:
        """Remember a path and the folders above it."""
        self.entries[path] = entry
        if entry.kind == "directory":
            self.names.setdefault(path, set())
        while path != "/":
            head, _, name = path.rpartition("/")
            head = head or "/"
            known = self.names.setdefault(head, set())
            if name in known:
                return
            known.add(name)
            self.entries.setdefault(head, Entry(kind="directory", mode=0o755))
            path = head


def unpack(
    stream: IO[bytes], tree: Tree, engine: str = "docker", progress: Callable[[int], object] = int
) -> None:
    """Read a tar stream to its end.

    Args:
        stream: what an engine exports.
        tree: where to put what is kept.
        engine: whose stream it is, for messages.
        progress: told from time to time how many bytes of files were read.

    Raises:
        EngineError: the stream is none, or ends too early.
    """
    import tarfile
    import tempfile

    try:
        with (
            tarfile.open(fileobj=stream, mode="r|", bufsize=_BUFFER) as archive,
            tempfile.TemporaryFile(dir=tree.folder) as spool,
        ):
            for member in archive:
                _take(tree, archive, member, spool)
                tree.bytes += member.size
                progress(tree.bytes)
    except (tarfile.TarError, EOFError) as error:
        raise EngineError("refused", engine, f"its export cannot be read: {error}") from error
    # What the daemon writes behind the end would otherwise keep it waiting.
    while stream.read(1 << 20):
        pass


def _take(tree: Tree, archive: tarfile.TarFile, member: tarfile.TarInfo, spool: IO[bytes]) -> None:
    path = _clean(member.name)
    if path == "/" or "\0" in path:
        return
    if member.islnk():
        _second_name(tree, path, _clean(member.linkname))
        return
    kind: Kind = "other"
    tests: tuple[tuple[bool, Kind], ...] = (
        (member.isreg(), "file"),
        (member.isdir(), "directory"),
        (member.issym(), "link"),
        (member.ischr(), "char"),
        (member.isblk(), "block"),
    )
    kind = next((name for test, name in tests if test), "other")
    kept = False
    if kind == "link":
        _link(tree, path, member.linkname)
    elif kind == "file" and _room(tree, path):
        kept = _file(tree, path, archive, member, spool)
    tree.add(
        path,
        Entry(
            kind=kind,
            mode=member.mode & 0o7777,
            size=member.size if kind == "file" else 0,
            target=member.linkname if kind == "link" else None,
            kept=kept,
        ),
    )


def _file(
    tree: Tree, path: str, archive: tarfile.TarFile, member: tarfile.TarInfo, spool: IO[bytes]
) -> bool:
    """Keep a file, or the part of it that is read; whether it was kept."""
    whole = _WHOLE.search(path) or (_TEXT.search(path) and member.size <= LARGEST_TEXT)
    native = _NATIVE.search(path) or CUDA_NAMES.match(posixpath.basename(path))
    if not whole and not native and not _INTERPRETER.search(path):
        return False
    content = archive.extractfile(member)
    if content is None:
        return False
    place = tree.place(path)
    place.parent.mkdir(parents=True, exist_ok=True)
    if whole:
        with place.open("wb") as file:
            _copy(content, file)
        return True
    spool.seek(0)
    spool.truncate()
    _copy(content, spool)
    with place.open("wb") as file:
        _headers(spool, file, member.size)
    return True


class _Noted:
    """A file that notes what is read of it."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._file.seek(0)
        self.pieces: list[tuple[int, bytes]] = []

    def seek(self, offset: int) -> None:
        self._file.seek(offset)

    def read(self, size: int) -> bytes:
        at = self._file.tell()
        data = self._file.read(size)
        self.pieces.append((at, data))
        return data


def _headers(spool: IO[bytes], file: IO[bytes], size: int) -> None:
    """Write a file of full length that holds what is read of a shared object, and nothing else."""
    import contextlib
    import struct

    noted = _Noted(spool)
    # What stops it will stop the reader of what is written here too.
    with contextlib.suppress(OSError, struct.error, ValueError, OverflowError):
        elf_headers.dynamic_section(noted)  # type: ignore[no-untyped-call]
    for at, data in noted.pieces:
        file.seek(at)
        file.write(data)
    file.truncate(size)


def _copy(source: IO[bytes], target: IO[bytes]) -> None:
    import shutil

    shutil.copyfileobj(source, target, 1 << 20)


def _second_name(tree: Tree, path: str, first: str) -> None:
    """A hard link: the same file under another name."""
    entry = tree.entries.get(first)
    if entry is None:
        return
    if entry.kept and _room(tree, path):
        place = tree.place(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.hardlink_to(tree.place(first))
    tree.add(path, entry)


def _room(tree: Tree, path: str) -> bool:
    """Whether a path can be written: nothing is there, and all above it are real folders."""
    if path in tree.entries:
        return False
    parts = path.split("/")
    above = ("/".join(parts[:length]) for length in range(2, len(parts)))
    return all(
        (entry := tree.entries.get(each)) is None or entry.kind == "directory" for each in above
    )


def _link(tree: Tree, path: str, target: str) -> None:
    """Make a link that leads to the same place below the tree's folder, and never out of it."""
    if not _room(tree, path) or not target or "\0" in target:
        return
    folder = posixpath.dirname(path)
    inside = _clean(target if target.startswith("/") else f"{folder}/{target}")
    place = tree.place(path)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(posixpath.relpath(inside, folder))


def _clean(path: str) -> str:
    """A path of the image in its shortest form; no step leads above `/`."""
    return posixpath.normpath("/" + path.lstrip("/"))
