"""Every recorded machine: read strictly, as its snapshot says, and judged as it must be.

The expectations are written by hand, from what is known of each machine, not taken from the tool.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from envcheck.model.codec import decode
from envcheck.model.snapshot import Snapshot
from envcheck.probe.record import Recorded
from envcheck.probe.snapshot import take_snapshot
from tests.machines import edit
from tests.machines.against_smi import differences

HERE = Path(__file__).parent


class Case(NamedTuple):
    """What must come out of a machine."""

    verdict: str
    first: str | None = None
    """Id of the finding that must stand first."""
    severity: str | None = None
    fix: tuple[str, ...] = ()
    """Parts of the first fix's commands or title, in order."""
    never_first: tuple[str, ...] = ()
    """Words that must not appear in the first fix."""


PIP = "/opt/torch/.venv/bin/python3 -m pip "
CASES = {
    "h200x1": Case("ok"),
    "debian12-toolkit-only": Case("warning", "no-gpu", "warning"),
    "h200-r610-torch215": Case("ok", "driver-branch-ended", "info"),
    "rtx4090-r550-torch28-cu128": Case("ok", "driver-branch-ended", "info"),
    "h200-toolkit-on-library-path": Case("ok"),
    "gtx1080ti-torch28-cu128": Case(
        "error", "gpu-older-than-build", "error", (PIP, "torch==2.8.0", "/whl/cu126")
    ),
    "v100-torch211-cu130": Case(
        "error", "gpu-older-than-build", "error", (PIP, "torch==2.11.0", "/whl/cu126")
    ),
    "rtx5090-torch25-cu121": Case("error", "gpu-newer-than-build", "error", (PIP, "/whl/cu128")),
    "rtx3090-r470-cu128": Case("error", "driver-too-old", "error", (PIP, "/whl/cu118")),
    "rtx4090-r575-cu130": Case(
        "error", "driver-too-old", "error", (PIP, "torch==2.9.0", "/whl/cu128")
    ),
    "rtx3090-library-mismatch": Case(
        "error",
        "driver-library-mismatch",
        "error",
        ("Reload", "modprobe -r", "modprobe nvidia"),
        ("reinstall", "apt-get", "purge"),
    ),
    "rtx3090-not-loaded": Case(
        "error", "driver-not-loaded", "error", ("modprobe nvidia",), ("purge", "reinstall")
    ),
    "rtx3090-driver-missing": Case(
        "error", "driver-missing", "error", ("apt-get install", "nvidia-")
    ),
    "rtx4090-torch-cpu": Case(
        "error", "framework-cpu-build", "error", (PIP, "torch==2.8.0", "/whl/cu")
    ),
    "h200-nccl-of-two-majors": Case(
        "error",
        "mixed-cuda-majors",
        "error",
        ("uninstall -y nvidia-nccl-cu12 nvidia-nccl-cu13", "nvidia-nccl-cu13==2.28.9"),
    ),
    "h200-foreign-cudnn": Case(
        "error", "library-path-shadows-cudnn", "error", ("LD_LIBRARY_PATH",), ("reinstall",)
    ),
}


def doctor(name: str, *arguments: str) -> tuple[int, dict[str, Any]]:
    """Exit status and JSON report of `envcheck doctor` on a machine, run as a user runs it."""
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "envcheck",
            "doctor",
            "--json",
            "--machine",
            str(HERE / name),
            *arguments,
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=HERE,
        env={"PATH": os.defpath},
    )
    assert done.stderr == ""
    report: dict[str, Any] = json.loads(done.stdout)
    return done.returncode, report


def test_every_machine_has_an_expectation() -> None:
    """No recording lies about unjudged, and none is missing."""
    folders = {each.name for each in HERE.iterdir() if (each / "machine.toml").is_file()}
    assert folders == set(CASES)


@pytest.mark.parametrize("name", sorted(CASES))
def test_verdict_and_root_cause(name: str) -> None:
    """The first finding is the known cause, its fix goes the right way, no other is an error."""
    case = CASES[name]
    code, report = doctor(name)
    findings = report["findings"]
    errors = [each["id"] for each in findings if each["severity"] == "error"]
    assert report["verdict"] == case.verdict
    assert code == report["exit_code"] == (1 if case.verdict == "error" else 0)
    assert report["unknown"] == []
    assert errors == ([case.first] if case.severity == "error" else [])
    if case.first is None:
        assert findings == []
        return
    first = findings[0]
    assert (first["id"], first["severity"]) == (case.first, case.severity)
    if case.fix:
        said = "\n".join((first["fix"][0]["title"], *first["fix"][0]["commands"]))
        places = [said.find(part) for part in case.fix]
        assert -1 not in places, said
        assert places == sorted(places), said
        assert not [word for word in case.never_first if word in said]


@pytest.mark.parametrize("name", sorted(CASES))
def test_replay_gives_the_recorded_snapshot(name: str) -> None:
    """What the probe makes of the recorded answers today is what it made when it was recorded."""
    saved = decode(Snapshot, json.loads((HERE / name / "snapshot.json").read_text("utf-8")))
    replayed = take_snapshot(Recorded(str(HERE / name)))
    assert replayed.host == saved.host
    assert replayed.env == saved.env
    assert replayed.gaps == saved.gaps


@pytest.mark.parametrize("name", sorted(edit.EDITS))
def test_edited_machines_are_fresh(name: str, tmp_path: Path) -> None:
    """Editing the real machine again gives the same folder, byte for byte."""
    edit.build(name, tmp_path / name)
    made = {
        str(each.relative_to(tmp_path / name)): each.read_bytes()
        for each in (tmp_path / name).rglob("*")
        if each.is_file()
    }
    kept = {
        str(each.relative_to(HERE / name)): each.read_bytes()
        for each in (HERE / name).rglob("*")
        if each.is_file()
    }
    assert made == kept


def test_recorded_facts_are_those_of_nvidia_smi() -> None:
    """The facts of the real machine against `nvidia-smi -q -x` of the same minute."""
    snapshot = take_snapshot(Recorded(str(HERE / "h200x1")))
    xml = (HERE / "h200x1-nvidia-smi-q.xml").read_text("utf-8")
    assert differences(snapshot, xml) == []
    wrong = xml.replace("NVIDIA H200<", "NVIDIA H100<").replace("580.159.04<", "580.95.05<")
    assert [each.partition(":")[0] for each in differences(snapshot, wrong)] == [
        "driver",
        "GPU 0 name",
    ]


def test_no_gpu_is_an_error_for_who_requires_one() -> None:
    """`--require-gpu` turns the warning into an error, with the exit status of one."""
    code, report = doctor("debian12-toolkit-only", "--require-gpu")
    assert (code, report["verdict"]) == (1, "error")
    assert [(each["id"], each["severity"]) for each in report["findings"]] == [("no-gpu", "error")]
