"""Reads the file of a table, compiled or as people write it."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from envcheck.errors import TableError

if TYPE_CHECKING:
    from pathlib import Path

Raw = dict[str, Any]
"""Plain content of a table, or of a row."""


def read_compiled(path: Path) -> Raw:
    """A table of the compiled form; empty when it is not there."""
    import json

    try:
        found = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        msg = f"{path.name}: cannot be read: {error}"
        raise TableError(msg) from error
    if not isinstance(found, dict):
        msg = f"{path.name}: holds no table"
        raise TableError(msg)
    return found


def read_toml(folder: Path, name: str) -> Raw:
    """A table as people write it, validated; empty when it is not there."""
    path = folder / f"{name}.toml"
    try:
        stat = path.stat()
    except OSError as error:
        absent = isinstance(error, (FileNotFoundError, NotADirectoryError))
        if absent and not path.is_symlink():
            return {}
        msg = f"{name}.toml: cannot be read: {error.strerror or error}"
        raise TableError(msg) from error
    return _parse(path, name, stat.st_mtime_ns, stat.st_size)


@functools.lru_cache(maxsize=64)
def _parse(path: Path, name: str, _changed: int, _size: int) -> Raw:
    """Parse and validate; remembered per file, so that many matrices share one parse."""
    from envcheck.matrix.validate import parsed

    return parsed(path, name)
