"""Workloads on a real GPU get the verdict that they must get: `pytest -m gpu`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.cli.runner import run_cli

pytestmark = pytest.mark.gpu

WORKLOADS = Path(__file__).parents[2] / "benchmarks" / "workloads"
EXPECTED = json.loads((WORKLOADS / "expected.json").read_text(encoding="utf-8"))
SKIPPED = 77


@pytest.mark.parametrize("name", list(EXPECTED))
def test_workloads_get_their_verdict(name: str, tmp_path: Path) -> None:
    out = tmp_path / "report.json"
    script = str(WORKLOADS / f"{name}.py")
    done = run_cli("watch", "--json", "-o", str(out), "--", sys.executable, script)
    if done.returncode == SKIPPED:
        pytest.skip(done.stdout.strip())
    report = json.loads(out.read_text(encoding="utf-8"))
    assert (done.returncode, report["unknown"]) == (0, [])
    watched = [each["id"] for each in report["findings"] if each["id"] != "gpu-idle"]
    assert watched == [EXPECTED[name]["verdict"]]
