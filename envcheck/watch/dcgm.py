"""SM, tensor and memory activity through DCGM, for GPUs that have no GPM (before Hopper)."""

from __future__ import annotations

import re
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from subprocess import Popen

FIELDS = {
    1002: ("sm", 100.0),
    1003: ("occ", 100.0),
    1004: ("tensor", 100.0),
    1005: ("dram", 100.0),
    1006: ("fp64", 100.0),
    1007: ("fp32", 100.0),
    1008: ("fp16", 100.0),
    1009: ("pcie_out", 1e-6),
    1010: ("pcie_in", 1e-6),
    1011: ("nvl_out", 1e-6),
    1012: ("nvl_in", 1e-6),
}
"""DCGM's profiling fields: our name, and the factor to percent or MB/s from shares and bytes/s."""

_ROW = re.compile(r"\s*GPU\s+(\d+)\s+(.*)")


def parse(line: str) -> tuple[int, dict[str, float]] | None:
    """A row of `dcgmi dmon`: the GPU's index and its counters; None for headings and messages."""
    match = _ROW.match(line)
    if match is None:
        return None
    cells = match.group(2).split()
    found = {}
    for cell, (name, factor) in zip(cells, FIELDS.values(), strict=False):
        try:
            found[name] = round(float(cell) * factor, 2)
        except ValueError:
            continue  # N/A: this GPU has no such unit
    return int(match.group(1)), found


class Dcgm:
    """`dcgmi dmon` as a child; its latest counters by GPU."""

    def __init__(self, program: str, interval: float) -> None:
        """Start it.

        Args:
            program: path of dcgmi.
            interval: seconds between its samples; DCGM takes a tenth of a second at least.
        """
        import subprocess

        self._latest: dict[int, dict[str, float]] = {}
        fields = ",".join(map(str, FIELDS))
        delay = max(100, round(interval * 1000))
        self._child: Popen[str] = subprocess.Popen(
            [program, "dmon", "-e", fields, "-d", str(delay)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            errors="replace",
            start_new_session=True,
            cwd="/",
        )
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self._child.stdout or ():
            row = parse(line)
            if row is not None and row[1]:
                self._latest[row[0]] = row[1]

    def latest(self) -> dict[int, dict[str, float]]:
        """Counters by GPU index; empty while no host engine has answered."""
        return dict(self._latest)

    def close(self) -> None:
        """End the child."""
        self._child.kill()
        self._child.wait()
