"""Several files written into a folder: all of them or none."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from envcheck.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

SHOWN = 5


def write_files(folder: Path, files: Mapping[str, bytes], *, force: bool = False) -> set[str]:
    """Write files below a folder, which is made if need be.

    Every file is drafted beside its place before the first is put there, so that a full disk leaves
    nothing behind; what was put there already is taken back when a later one fails.

    Args:
        folder: where to.
        files: path relative to the folder -> content.
        force: overwrite files whose content is another.

    Returns:
        Those that were written; the others were there with the same content.

    Raises:
        UsageError: a file would be overwritten, or something cannot be written.
    """
    try:
        changed = _changed(folder, files)
        existing = [path for path, old in changed.items() if old is not None]
        if existing and not force:
            more = f" and {len(existing) - SHOWN} more" if len(existing) > SHOWN else ""
            names = ", ".join(existing[:SHOWN]) + more
            msg = f"{folder} has other content in {names}: --force overwrites it"
            raise UsageError(msg)
        _replace(folder, {path: files[path] for path in changed}, changed)
    except OSError as error:
        place = error.filename or folder
        msg = f"cannot write {place}: {error.strerror or error}"
        raise UsageError(msg) from error
    return set(changed)


def _changed(folder: Path, files: Mapping[str, bytes]) -> dict[str, bytes | None]:
    """Path -> content so far, None for a new file, of each file that is not as it should be."""
    found: dict[str, bytes | None] = {}
    for path, content in sorted(files.items()):
        place = folder / path
        if place.is_symlink() or (place.exists() and not place.is_file()):
            msg = f"{place}: is no ordinary file"
            raise UsageError(msg)
        old = place.read_bytes() if place.exists() else None
        if old != content:
            found[path] = old
    return found


def _replace(folder: Path, files: Mapping[str, bytes], before: Mapping[str, bytes | None]) -> None:
    import contextlib

    made: list[Path] = []
    drafts: dict[str, Path] = {}
    done: list[str] = []
    try:
        for path, content in files.items():
            place = folder / path
            _make_folders(place.parent, made)
            drafts[path] = place.with_name(f".{place.name}.{os.getpid()}")
            with drafts[path].open("xb") as file:
                file.write(content)
        for path, draft in drafts.items():
            draft.replace(folder / path)
            done.append(path)
    except BaseException:
        # Undone as far as possible: what is raised is why it was not done.
        for path, draft in drafts.items():
            with contextlib.suppress(OSError):
                draft.unlink()
            with contextlib.suppress(OSError):
                if path in done:
                    _restore(folder / path, before[path])
        for each in reversed(made):
            with contextlib.suppress(OSError):
                each.rmdir()
        raise


def _make_folders(folder: Path, made: list[Path]) -> None:
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    for each in reversed(missing):
        each.mkdir()
        made.append(each)


def _restore(place: Path, content: bytes | None) -> None:
    if content is None:
        place.unlink()
    else:
        place.write_bytes(content)
