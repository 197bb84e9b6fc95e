"""Reports of recorded machines."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

from tests.cli.runner import run_cli

MACHINES = Path(__file__).parents[1] / "machines"


@functools.cache
def report_text(machine: str) -> str:
    """What `envcheck doctor --json` says of a recorded machine."""
    done = run_cli("doctor", "--machine", str(MACHINES / machine), "--json")
    assert done.returncode in (0, 1), done.stderr
    return str(done.stdout)


def report(machine: str) -> dict[str, Any]:
    """The same as data that may be changed."""
    data: dict[str, Any] = json.loads(report_text(machine))
    return data
