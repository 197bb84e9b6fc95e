"""Series that were recorded on a GPU get the verdict that their workload must get."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.runner import run_cli

FOLDER = Path(__file__).parent / "series"
WORKLOADS = Path(__file__).parents[2] / "benchmarks" / "workloads" / "expected.json"
RECORDED = sorted(FOLDER.glob("*.jsonl"))


def expected(path: Path) -> str:
    """The verdict of the workload that a file is named after."""
    known = json.loads(WORKLOADS.read_text(encoding="utf-8"))
    verdict: str = known[path.stem.rpartition("-")[0]]["verdict"]
    return verdict


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_recorded_workloads_get_their_verdict(path: Path) -> None:
    done = run_cli("watch", "--replay", str(path), "--json")
    report = json.loads(done.stdout)
    assert [each["id"] for each in report["findings"]] == [expected(path)]
    assert report["unknown"] == []
