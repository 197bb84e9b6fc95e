"""What the tests of sick machines share."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.cli.runner import environment
from tests.probe.conftest import stubs

__all__ = ["stubs"]


class Ran(NamedTuple):
    """How a run of the doctor ended."""

    code: int
    report: dict[str, Any]
    stderr: str


def doctor(
    *arguments: str,
    prefix: tuple[str, ...] = (),
    python: tuple[str, ...] = (sys.executable, "-m", "envcheck"),
    cwd: str | Path = "/",
    variables: dict[str, str | None] | None = None,
) -> Ran:
    """Run `envcheck doctor --json` as a process; what must hold on every machine is checked.

    Args:
        arguments: further ones.
        prefix: a program that runs it, with its arguments.
        python: what stands for `envcheck`.
        cwd: working folder.
        variables: changes of the environment; None takes one away.
    """
    done = subprocess.run(
        [*prefix, *python, "doctor", "--json", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        timeout=60,
        env=environment(**(variables or {})),
    )
    assert "Traceback" not in done.stderr, done.stderr
    assert "internal error" not in done.stderr, done.stderr
    report = json.loads(done.stdout)
    assert done.returncode == report.get("exit_code", done.returncode)
    assert [each for each in report.get("unknown", ()) if each["kind"] == "crashed"] == []
    return Ran(done.returncode, report, done.stderr)


@pytest.fixture(scope="session")
def undisturbed() -> Ran:
    """The doctor on this machine as it is."""
    ran = doctor()
    assert (ran.code, ran.stderr) in {(0, ""), (1, "")}
    return ran
