"""Where the output goes: standard output or a file, in any locale, whoever is listening."""

from __future__ import annotations

import os
import sys

from envcheck.errors import UsageError
from envcheck.report.foreign import clean, fit

DEFAULT_WIDTH = 100
WIDEST = 120
"""Prose that is wider is hard to read."""
NARROWEST = 40


def emit(text: str, path: str | None) -> None:
    """Write the result of a run.

    Args:
        text: the whole of it.
        path: file to write, None or `-` for standard output.

    Raises:
        UsageError: it cannot be written. A reader that has closed its end is no error.
    """
    if path is None or path == "-":
        _write_stdout(text)
    else:
        try:
            _write_file(text, path)
        except OSError as error:
            msg = f"cannot write {path}: {error.strerror or error}"
            raise UsageError(msg) from error


def say(text: str) -> None:
    """Print a line for the person at the screen on standard error, if there is one."""
    if sys.stderr is None:
        return
    try:
        sys.stderr.write(fit(clean(text, lines=True), sys.stderr.encoding or "ascii") + "\n")
    except (OSError, ValueError):
        return


def write_failure(message: str, code: int, path: str | None) -> None:
    """Write the JSON of a failed run to where the report would have gone, else to stdout."""
    from envcheck.report.json_report import failure

    text = failure(message, code)
    try:
        emit(text, path)
    except UsageError:
        try:
            _write_stdout(text)
        except UsageError:
            return


def _write_stdout(text: str) -> None:
    stream = sys.stdout
    if stream is None:
        return
    try:
        stream.write(fit(text, stream.encoding or "ascii"))
        stream.flush()
    except BrokenPipeError:
        # The reader has what it wanted; the rest goes nowhere, also at the interpreter's exit.
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)
    except (OSError, ValueError) as error:
        msg = f"cannot write to standard output: {error}"
        raise UsageError(msg) from error


def _write_file(text: str, path: str) -> None:
    import contextlib
    import tempfile
    from pathlib import Path

    # A link is followed, so that it still is one afterwards.
    place = Path(path).resolve()
    if place.exists() and not place.is_file():
        if place.is_dir():
            raise IsADirectoryError(21, "is a folder")
        place.write_text(text, encoding="utf-8")  # a device or a pipe cannot be replaced
        return
    mode = place.stat().st_mode & 0o7777 if place.exists() else 0o666 & ~_umask()
    descriptor, draft = tempfile.mkstemp(prefix=f".{place.name}.", dir=place.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        Path(draft).chmod(mode)
        Path(draft).replace(place)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(draft).unlink()
        raise


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def width() -> int:
    """Columns that text may take: `COLUMNS`, else the terminal's, else 100; between 40 and 120."""
    try:
        columns = int(os.environ.get("COLUMNS", ""))
    except ValueError:
        columns = 0
    if columns <= 0:
        try:
            columns = os.get_terminal_size(sys.stdout.fileno()).columns
        except (OSError, ValueError, AttributeError):
            columns = DEFAULT_WIDTH
    return max(NARROWEST, min(columns, WIDEST))


def wants_colour(*, refused: bool, path: str | None) -> bool:
    """Whether text goes to a screen that shows colour.

    Args:
        refused: `--no-color` was given.
        path: the file that output goes to, None for standard output.
    """
    if refused or os.environ.get("NO_COLOR") or path not in (None, "-") or sys.stdout is None:
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    try:
        return os.environ.get("TERM") != "dumb" and sys.stdout.isatty()
    except ValueError:
        return False


def today() -> str:
    """The day, in UTC: `2026-12-01`."""
    from datetime import datetime, timezone

    return datetime.now(timezone.utc).date().isoformat()
