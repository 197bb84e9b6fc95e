"""Drift of many reports from one lock."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from envcheck.model.plan import Lock, Pin, PlannedFramework, Stack, Target
from envcheck.planner.lock import lock_text
from tests.cli.runner import run_cli
from tests.fleet.recorded import report

LOCK = Lock(
    envcheck="0.1.0",
    target=Target(gpus=("NVIDIA H200",), arches=("9.0",), driver="580.159.04", os="ubuntu24.04"),
    want=("torch",),
    stack=Stack(
        frameworks=(
            PlannedFramework(name="torch", version="2.11.0", variant="cu130", cuda="13.0"),
        ),
        pins=(Pin(name="torch", version="2.11.0"),),
        python="3.12",
        platform="linux_x86_64",
        os="ubuntu24.04",
        min_driver="580.65.06",
    ),
)


@pytest.fixture
def reports(tmp_path: Path) -> Path:
    folder = tmp_path / "reports"
    folder.mkdir()
    for host, machine in (("a", "h200x1"), ("b", "h200x1"), ("c", "h200-r610-torch215")):
        data = report(machine)
        if host == "b":
            data["snapshot"]["host"]["driver"]["module_version"] = "580.95.05"
        (folder / f"{host}.json").write_text(json.dumps(data))
    (tmp_path / "stack.lock").write_text(lock_text(LOCK))
    return folder


def test_each_field_that_differs_names_its_hosts(reports: Path) -> None:
    lock = str(reports.parent / "stack.lock")
    done = run_cli("fleet", "report", "--json", str(reports), "--against", lock)
    data = json.loads(done.stdout)
    assert done.returncode == 1
    assert data["lock"] == lock
    drift = {(each["field"], each["found"]): each["hosts"] for each in data["drift"]}
    assert drift["driver", "580.95.05"] == ["b"]
    assert drift["driver", "610.47"] == ["c"]
    assert drift["torch.cuda", "13.2"] == ["c"]
    assert "a" not in [host for hosts in drift.values() for host in hosts]


def test_without_a_lock_the_reports_say_it_themselves(reports: Path) -> None:
    data = json.loads(run_cli("fleet", "report", "--json", str(reports)).stdout)
    assert data["drift"] is None
    changed = report("h200x1")
    changed["drift"] = [{"field": "torch", "locked": "2.8.0", "found": "2.11.0"}]
    (reports / "d.json").write_text(json.dumps(changed))
    done = run_cli("fleet", "report", "--json", str(reports))
    assert json.loads(done.stdout)["drift"] == [
        {"field": "torch", "locked": "2.8.0", "found": "2.11.0", "hosts": ["d"]}
    ]
    assert done.returncode == 1


def test_a_damaged_lock_ends_the_run(reports: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.lock").write_text("schema = 1\nenvcheck = '$(x)'\n")
    done = run_cli("fleet", "report", str(reports), "--against", str(tmp_path / "bad.lock"))
    assert (done.returncode, done.stdout) == (4, "")
