"""A folder of what was read from an index: the cache of one run, the saved pages of another.

`<project>/index.json` or `index.html` lists a project's wheels, `<project>/<wheel>.metadata` is the
METADATA of one, and `<project>/<wheel>/<member>.txt` another member of it. The wheel itself may
stand there too. What is in a wheel never changes, so nothing here grows old but the list.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

_SAFE = re.compile(r"[A-Za-z0-9_.!-]+(?:/[A-Za-z0-9_.!-]+)*\Z")
LARGEST = 64 << 20
"""Bytes of the largest saved file that is read."""


class Store:
    """Files below a folder, each written as a whole or not at all."""

    def __init__(self, folder: Path) -> None:
        """Point at a folder, which need not exist yet."""
        self.folder = folder

    def read(self, *place: str) -> bytes | None:
        """A file's content, None when it is not there.

        Args:
            *place: parts of its path below the folder.
        """
        path = self._path(*place)
        try:
            if path.stat().st_size > LARGEST:
                return None
            return path.read_bytes()
        except OSError:
            return None

    def write(self, data: bytes, *place: str) -> None:
        """Keep a file; a folder that cannot be written to keeps nothing, which is no error."""
        import contextlib
        import tempfile

        path = self._path(*place)
        draft: Path | None = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor, name = tempfile.mkstemp(dir=path.parent)
            draft = Path(name)
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
            draft.replace(path)
        except OSError:
            if draft is not None:
                with contextlib.suppress(OSError):
                    draft.unlink()

    def file(self, *place: str) -> Path | None:
        """Path of a file that is there."""
        path = self._path(*place)
        return path if path.is_file() else None

    def _path(self, *place: str) -> Path:
        name = "/".join(place)
        if not _SAFE.match(name) or ".." in name.split("/"):
            msg = f"not a name of a saved file: {name!r}"
            raise ValueError(msg)
        return self.folder / name


def default_cache(index: str) -> Path:
    """Cache folder of an index below `XDG_CACHE_HOME`; its name does not give the address away."""
    import hashlib

    home = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(home) if Path(home).is_absolute() else Path("~/.cache").expanduser()
    return base / "envcheck" / hashlib.sha256(index.encode()).hexdigest()[:16]
