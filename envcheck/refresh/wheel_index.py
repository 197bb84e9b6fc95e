"""Wheels of the configured index, or of saved pages: lists, metadata, single members.

Of a wheel only the directory at its end and the members asked for are fetched.
"""

from __future__ import annotations

import hashlib
import re
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast
from urllib.parse import quote, unquote, urlsplit

from envcheck.refresh import metadata, page
from envcheck.refresh.client import AbsentError, Answer, without_login
from envcheck.refresh.remote_file import RemoteFile

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from envcheck.refresh.client import Client
    from envcheck.refresh.metadata import Metadata
    from envcheck.refresh.page import Wheel
    from envcheck.refresh.store import Store

LARGEST_MEMBER = 16 << 20
"""Bytes of the largest text member that is read."""
LONGEST_SCAN = 512 << 20
"""Bytes of a library that are searched at most."""
_CHUNK = 1 << 20
_LONGEST_MATCH = 2048
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, KeyError)


class WheelIndex:
    """Answers questions about wheels, from the store first, else from the index."""

    def __init__(
        self,
        store: Store,
        client: Client | None = None,
        urls: Sequence[str] = (),
        progress: Callable[[str], None] = lambda _name: None,
    ) -> None:
        """Prepare; nothing is read yet.

        Args:
            store: what was read before; what is read now is added to it.
            client: asks the index; without one, the store is all there is.
            urls: the main index, then those for projects that it does not have.
            progress: is told the name of each page and wheel that is about to be fetched.
        """
        self._store = store
        self._client = client
        self._urls = urls
        self._progress = progress
        self._pages: dict[str, tuple[Wheel, ...]] = {}
        self._open: tuple[str, zipfile.ZipFile] | None = None

    def wheels(self, project: str) -> tuple[Wheel, ...]:
        """All wheels of a project.

        Raises:
            AbsentError: the project is not there.
            UnreachableError: its page cannot be had.
        """
        if project not in self._pages:
            if self._client is None:
                self._pages[project] = self._saved_page(project)
            else:
                self._pages[project] = self._fetched_page(self._client, project)
                text = page.saved(self._pages[project])
                self._store.write(text.encode(), project, "index.json")
        return self._pages[project]

    def metadata(self, wheel: Wheel) -> Metadata:
        """What a wheel says of itself.

        Raises:
            AbsentError: the wheel is not there, or damaged.
            UnreachableError: the index does not answer.
        """
        place = (wheel.project, f"{wheel.filename}.metadata")
        data = self._store.read(*place)
        if data is None and self._client is not None and wheel.metadata is not None:
            data = self._separate_metadata(self._client, wheel)
        if data is None:
            archive = self._archive(wheel)
            name = next(
                (each for each in archive.namelist() if re.fullmatch(_METADATA, each)), None
            )
            if name is None:
                msg = f"{wheel.filename} has no METADATA"
                raise AbsentError(msg)
            data = self._read(wheel, archive, name)
        self._store.write(data, *place)
        return metadata.parse(data.decode("utf-8", "replace"))

    def member(self, wheel: Wheel, name: str) -> str | None:
        """Text of a file in a wheel, None when it holds no such file.

        Raises:
            AbsentError: the wheel is not there, or damaged.
            UnreachableError: the index does not answer.
        """
        return self._kept(wheel, f"{name}.txt", lambda archive: self._text(wheel, archive, name))

    def names(self, wheel: Wheel) -> tuple[str, ...]:
        """Names of all files in a wheel.

        Raises:
            AbsentError: the wheel is not there, or damaged.
            UnreachableError: the index does not answer.
        """
        text = self._kept(wheel, "names.txt", lambda archive: "\n".join(archive.namelist()))
        return tuple((text or "").splitlines())

    def search(
        self, wheel: Wheel, name: str, pattern: re.Pattern[bytes], keep: str
    ) -> tuple[str, ...] | None:
        """Different matches of a pattern in a file of a wheel; None when it holds no such file.

        Args:
            wheel: the wheel.
            name: the file, which is read from its start until `LONGEST_SCAN` bytes were seen.
            pattern: what to look for; no match is longer than 2048 bytes.
            keep: name under which the matches are kept.

        Raises:
            AbsentError: the wheel is not there, or damaged.
            UnreachableError: the index does not answer.
        """
        text = self._kept(wheel, keep, lambda archive: self._matches(wheel, archive, name, pattern))
        return None if text is None else tuple(text.splitlines())

    # -- pages -------------------------------------------------------------------------------------

    def _saved_page(self, project: str) -> tuple[Wheel, ...]:
        for name, kind in (("index.json", "json"), ("index.html", "html")):
            data = self._store.read(project, name)
            if data is not None:
                return page.parse(project, data, kind, "")
        msg = f"{self._store.folder}: no saved page {project}/index.json or {project}/index.html"
        raise AbsentError(msg)

    def _fetched_page(self, client: Client, project: str) -> tuple[Wheel, ...]:
        self._progress(project)
        missing: AbsentError | None = None
        for base in self._urls:
            url = f"{base.rstrip('/')}/{quote(project)}/"
            try:
                answer = _local_page(url) or client.get(url, page.ACCEPT)
            except AbsentError as error:
                missing = missing or error
                continue
            return page.parse(project, answer.data, answer.kind, answer.url)
        raise missing or AbsentError(f"no package index is configured that could have {project}")

    def _separate_metadata(self, client: Client, wheel: Wheel) -> bytes | None:
        """The metadata file beside a wheel, None when it is not what the page says."""
        self._progress(wheel.filename)
        try:
            data = client.get(f"{wheel.url}.metadata").data
        except AbsentError:
            return None
        digest = (wheel.metadata or "").partition("=")[2]
        matches = not digest or hashlib.sha256(data).hexdigest() == digest.lower()
        return data if matches else None

    # -- files in wheels ---------------------------------------------------------------------------

    def _kept(
        self, wheel: Wheel, keep: str, make: Callable[[zipfile.ZipFile], str | None]
    ) -> str | None:
        """A text from the store, else made from the wheel and stored."""
        data = self._store.read(wheel.project, wheel.filename, keep)
        if data is not None:
            return data.decode("utf-8", "replace")
        text = make(self._archive(wheel))
        if text is not None:
            self._store.write(text.encode(), wheel.project, wheel.filename, keep)
        return text

    def _archive(self, wheel: Wheel) -> zipfile.ZipFile:
        """A wheel opened; the last one stays open, since several members are asked for in turn."""
        if self._open is None or self._open[0] != wheel.filename:
            self._open = None
            path = self._store.file(wheel.project, wheel.filename) or _local(wheel.url)
            try:
                if path is not None:
                    archive = zipfile.ZipFile(path)
                elif self._client is not None:
                    self._progress(wheel.filename)
                    remote = RemoteFile(self._client, without_login(wheel.url))
                    archive = zipfile.ZipFile(cast("BinaryIO", remote))
                else:
                    msg = f"{self._store.folder}: nothing was saved of {wheel.filename}"
                    raise AbsentError(msg)
            except (*_BROKEN, OSError, ValueError) as error:
                msg = f"{wheel.filename} cannot be read: {error}"
                raise AbsentError(msg) from error
            self._open = (wheel.filename, archive)
        return self._open[1]

    def _read(self, wheel: Wheel, archive: zipfile.ZipFile, name: str) -> bytes:
        try:
            if archive.getinfo(name).file_size > LARGEST_MEMBER:
                msg = f"{wheel.filename}: {name} is larger than {LARGEST_MEMBER >> 20} MiB"
                raise AbsentError(msg)
            return archive.read(name)
        except (*_BROKEN, OSError) as error:
            msg = f"{wheel.filename}: {name} cannot be read: {error}"
            raise AbsentError(msg) from error

    def _text(self, wheel: Wheel, archive: zipfile.ZipFile, name: str) -> str | None:
        if name not in archive.NameToInfo:
            return None
        return self._read(wheel, archive, name).decode("utf-8", "replace")

    def _matches(
        self, wheel: Wheel, archive: zipfile.ZipFile, name: str, pattern: re.Pattern[bytes]
    ) -> str | None:
        if name not in archive.NameToInfo:
            return None
        found: dict[str, None] = {}
        seen, text = 0, b""
        # Each window overlaps the one before by twice the longest match. A match belongs to the
        # window in which it starts beyond the first half of an overlap, so that none is cut.
        try:
            with archive.open(name) as file:
                while seen < LONGEST_SCAN and (chunk := file.read(_CHUNK)):
                    begin = _LONGEST_MATCH if seen else 0
                    seen += len(chunk)
                    text += chunk
                    found.update(_between(pattern, text, begin, len(text) - _LONGEST_MATCH))
                    text = text[-2 * _LONGEST_MATCH :]
                found.update(_between(pattern, text, len(text) - _LONGEST_MATCH, len(text)))
        except (*_BROKEN, OSError) as error:
            msg = f"{wheel.filename}: {name} cannot be read: {error}"
            raise AbsentError(msg) from error
        return "\n".join(found)


def _local(url: str) -> Path | None:
    """The path that a `file:` address means."""
    parts = urlsplit(url)
    return Path(unquote(parts.path)) if parts.scheme == "file" else None


def _local_page(url: str) -> Answer | None:
    """The page of a project in a folder laid out as an index.

    Raises:
        AbsentError: the folder does not have it.
    """
    folder = _local(url)
    if folder is None:
        return None
    for name, kind in (("index.json", "json"), ("index.html", "html")):
        if (folder / name).is_file():
            return Answer(data=(folder / name).read_bytes(), url=url, kind=kind)
    msg = f"the package index does not have {folder.name}"
    raise AbsentError(msg)


def _between(pattern: re.Pattern[bytes], text: bytes, begin: int, end: int) -> dict[str, None]:
    """Matches that start within bounds, in order."""
    return {
        match.group().decode("ascii", "replace"): None
        for match in pattern.finditer(text)
        if begin <= match.start() < end
    }


_METADATA = r"[^/]+\.dist-info/METADATA"
