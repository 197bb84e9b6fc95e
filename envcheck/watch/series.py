"""A series: what was sampled, tick by tick, as JSON lines that can be kept and judged again.

The first line holds what does not change (`envcheck_series`, the GPUs, and the versions of what ran
on them), then comes one line per tick (`t` in seconds, `gpus`, `host`), lines that the program's
own `step` wrote (`steps`), and at last what sampling cost (`end`). It holds no names of hosts,
users or programs, only those of threads.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from envcheck.errors import RecordingError

FORMAT = 1

LIMIT = 256 << 20
"""Bytes of the largest file that is taken for a series."""

Tick = dict[str, Any]


class Series:
    """Everything that was sampled."""

    def __init__(self, head: dict[str, Any]) -> None:
        """Start with the first line."""
        self.head = head
        self.ticks: list[Tick] = []
        self.steps: list[dict[str, Any]] = []
        self.end: dict[str, Any] = {}

    def text(self) -> str:
        """The file."""
        lines: list[dict[str, Any]] = [
            {"envcheck_series": FORMAT, **self.head},
            *self.ticks,
            *({"steps": each} for each in self.steps),
        ]
        if self.end:
            lines.append({"end": self.end})
        return "".join(json.dumps(each, separators=(",", ":")) + "\n" for each in lines)


def read_series(path: str) -> Series:
    """Read a file that `Series.text` gave.

    Raises:
        RecordingError: it cannot be read, or is no such file; the message names the line.
    """
    place = Path(path)
    try:
        if place.is_file() and place.stat().st_size > LIMIT:
            msg = f"{path}: larger than any series"
            raise RecordingError(msg)
        lines = place.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        msg = f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}"
        raise RecordingError(msg) from error
    series: Series | None = None
    for number, text in enumerate(lines, 1):
        data = _object(path, number, text)
        if series is None:
            if data.pop("envcheck_series", None) != FORMAT:
                msg = f"{path}: no series of this version of envcheck"
                raise RecordingError(msg)
            series = Series(data)
        elif "t" in data:
            series.ticks.append(_tick(path, number, data))
        elif isinstance(data.get("steps"), dict):
            series.steps.append(data["steps"])
        elif isinstance(data.get("end"), dict):
            series.end = data["end"]
    if series is None:
        msg = f"{path}: is empty"
        raise RecordingError(msg)
    return series


def _object(path: str, number: int, text: str) -> dict[str, Any]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        msg = f"{path}: line {number} is not JSON: {error}"
        raise RecordingError(msg) from error
    if not isinstance(data, dict):
        msg = f"{path}: line {number} is no object"
        raise RecordingError(msg)
    return data


def _tick(path: str, number: int, data: Tick) -> Tick:
    gpus, host = data.get("gpus", []), data.get("host", {})
    sound = (
        isinstance(data["t"], (int, float))
        and isinstance(gpus, list)
        and all(isinstance(each, dict) and isinstance(each.get("i"), int) for each in gpus)
        and isinstance(host, dict)
    )
    if not sound:
        msg = f"{path}: line {number} is no tick"
        raise RecordingError(msg)
    return data
