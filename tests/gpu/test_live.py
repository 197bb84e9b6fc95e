"""On a real GPU, off by default: `pytest -m gpu`."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from envcheck.probe.live import Live
from envcheck.probe.snapshot import take_snapshot
from tests.machines.against_smi import differences

pytestmark = pytest.mark.gpu


def test_facts_are_those_of_nvidia_smi() -> None:
    done = subprocess.run(["nvidia-smi", "-q", "-x"], capture_output=True, text=True, check=True)
    assert differences(take_snapshot(Live()), done.stdout) == []


def test_a_healthy_machine_is_ok() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "envcheck", "doctor", "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    report = json.loads(done.stdout)
    assert (done.returncode, report["verdict"], report["findings"]) == (0, "ok", [])
