"""Refuses folders that hold anything but folders and plain files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.errors import RecordingError

if TYPE_CHECKING:
    from pathlib import Path


def refuse_links(folder: Path) -> None:
    """Links and devices could lead a reader out of the folder, or never end.

    Raises:
        RecordingError: there is one, or a folder cannot be looked at.
    """
    import os

    # Not by recursion: folders may be nested deeper than Python counts.
    waiting = [str(folder)]
    while waiting:
        place = waiting.pop()
        try:
            with os.scandir(place) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    elif not entry.is_file(follow_symlinks=False):
                        msg = (
                            f"{entry.path}: a recording holds plain files only, no links or devices"
                        )
                        raise RecordingError(msg)
        except OSError as error:
            msg = f"{place[:200]}: {error.strerror or error}"
            raise RecordingError(msg) from error
