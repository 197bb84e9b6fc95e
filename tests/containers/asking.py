"""Runs envcheck against an engine, and reads what it answers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.cli.runner import environment

if TYPE_CHECKING:
    from tests.containers.engine import Engine

Done = subprocess.CompletedProcess[str]


def envcheck(
    engine: Engine,
    *args: str | Path,
    timeout: float = 600.0,
    stdin: str | None = None,
    **variables: str | None,
) -> Done:
    """Run `envcheck` as a user of this engine does."""
    return subprocess.run(
        [sys.executable, "-m", "envcheck", *map(str, args)],
        cwd=Path(__file__).anchor,
        env=environment(**{**engine.variables, **variables}),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def report(done: Done) -> dict[str, Any]:
    """The report that was printed; what went wrong otherwise."""
    try:
        data = json.loads(done.stdout)
    except ValueError as error:
        raise AssertionError(f"exit {done.returncode}\n{done.stdout}\n{done.stderr}") from error
    assert isinstance(data, dict), done.stdout
    assert "error" not in data, data
    return data


def said(data: dict[str, Any]) -> list[tuple[str, str]]:
    """(id, severity) of each finding."""
    return [(each["id"], each["severity"]) for each in data["findings"]]
