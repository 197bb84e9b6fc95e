"""A file on a server as a seekable file object that fetches only what is read."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from envcheck.refresh.client import LARGEST, UnreachableError

if TYPE_CHECKING:
    from envcheck.refresh.client import Client

TAIL = 128 << 10
"""Bytes fetched first, from the end: a zip's directory, or at least what says where it is."""
FIRST = 64 << 10
LONGEST = 4 << 20
"""Bytes of the smallest and the largest request; they double while reading goes straight on."""
KEPT = 8
"""Fetched pieces that stay in memory."""


class RemoteFile(io.RawIOBase):
    """Reads a remote file piece by piece, for `zipfile`.

    Attributes:
        size: bytes of the whole file.
    """

    def __init__(self, client: Client, url: str) -> None:
        """Fetch the end of the file, which also tells its size.

        Raises:
            AbsentError: there is no such file.
            UnreachableError: the server does not answer, or gives whole files only.
        """
        super().__init__()
        self._client = client
        self._url = url
        self._at = 0
        self._step = FIRST
        answer = client.part(url, -TAIL, 0)
        self.size = answer.total or 0
        self._pieces = [(self.size - len(answer.data), answer.data)]

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is."""
        return True

    def tell(self) -> int:
        """Where the next byte is read."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move; nothing is fetched."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self.size}[whence]
        if start + offset < 0:
            msg = "negative position"
            raise ValueError(msg)
        self._at = start + offset
        return self._at

    def read(self, size: int | None = -1, /) -> bytes:
        """Read up to `size` bytes, fetching what is not there yet.

        Raises:
            UnreachableError: the server fails, the file has changed, or the piece is too large.
        """
        left = max(self.size - self._at, 0)
        wanted = left if size is None or size < 0 else min(size, left)
        if wanted > LARGEST:
            msg = f"more than {LARGEST >> 20} MiB of a wheel would have to be read at once"
            raise UnreachableError(msg)
        end = self._at + wanted
        parts = []
        while self._at < end:
            held = self._held(self._at)
            if held is None:
                held = self._fetch(self._at, end)
            start, data = held
            piece = data[self._at - start : end - start]
            parts.append(piece)
            self._at += len(piece)
        return b"".join(parts)

    def readinto(self, buffer: bytearray | memoryview, /) -> int:  # type: ignore[override]
        """Read into a buffer."""
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def _held(self, at: int) -> tuple[int, bytes] | None:
        for start, data in self._pieces:
            if start <= at < start + len(data):
                return start, data
        return None

    def _fetch(self, first: int, end: int) -> tuple[int, bytes]:
        goes_on = any(start + len(data) == first for start, data in self._pieces[1:])
        self._step = min(self._step * 2, LONGEST) if goes_on else FIRST
        end = min(max(end, first + self._step), self.size)
        later = [start for start, _ in self._pieces if first < start < end]
        end = min(later, default=end)
        answer = self._client.part(self._url, first, end - 1)
        if answer.total != self.size or len(answer.data) != end - first:
            msg = "the package index gave another part of a file than was asked for"
            raise UnreachableError(msg)
        # The end stays: the directory of a zip is there.
        self._pieces = [*self._pieces[:1], *self._pieces[1:][-(KEPT - 2) :], (first, answer.data)]
        return first, answer.data
