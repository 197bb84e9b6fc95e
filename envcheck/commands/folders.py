"""Folders that flags name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path


def overlay(folder: str | None, flag: str = "--tables") -> Path | None:
    """The folder that a flag names, None when it was not given.

    Raises:
        UsageError: there is no such folder.
    """
    if folder is None:
        return None
    from pathlib import Path

    path = Path(folder)
    if not path.is_dir():
        msg = f"{flag} {folder}: no such folder"
        raise UsageError(msg)
    return path
