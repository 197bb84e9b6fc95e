"""Every recorded machine, pasted as text, is judged as it is when it is read live."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

from envcheck.engine import judge
from envcheck.intake import read
from envcheck.matrix.loader import Matrix
from envcheck.model.finding import Report
from envcheck.model.snapshot import Snapshot
from envcheck.probe.record import Recorded
from envcheck.probe.snapshot import take_snapshot
from envcheck.rules import all_rules
from tests.intake import render

MACHINES = Path(__file__).parent.parent / "machines"
NAMES = sorted(path.parent.name for path in MACHINES.glob("*/machine.toml"))

CANNOT_SHOW = {
    # Which copy of a library the loader takes is on no list.
    "h200-foreign-cudnn",
}


@functools.cache
def tables() -> Matrix:
    return Matrix.shipped()


@functools.cache
def live(name: str) -> Snapshot:
    return take_snapshot(Recorded(str(MACHINES / name)))


def judged(snapshot: Snapshot) -> Report:
    report = judge(snapshot, tables(), all_rules())
    assert [each for each in report.unknown if each.kind == "crashed"] == []
    return report


def said(report: Report) -> list[tuple[str, str]]:
    return [(each.id, each.severity) for each in report.findings if each.severity == "error"]


def texts(snapshot: Snapshot, *, works: bool) -> dict[str, str]:
    collect = render.collect_env(snapshot, works=works)
    smi = render.nvidia_smi(snapshot) + render.lspci(snapshot)
    return {
        "both": f"{collect}\n$ nvidia-smi\n{smi}",
        "renamed": render.nvidia_smi(snapshot, renamed=True) + render.lspci(snapshot) + collect,
        "quoted": "\n".join(f"> {line}" for line in f"{collect}\n{smi}".splitlines()),
        "windows line ends": f"{collect}\n{smi}".replace("\n", "\r\n"),
        "compose": "\n".join(f"trainer-1  | {line}" for line in f"{collect}\n{smi}".splitlines()),
    }


def test_there_are_machines() -> None:
    assert len(NAMES) >= 16


@pytest.mark.parametrize("name", [each for each in NAMES if each not in CANNOT_SHOW])
def test_a_pasted_machine_is_judged_as_the_live_one(name: str) -> None:
    snapshot = live(name)
    expected = said(judged(snapshot))
    for how, text in texts(snapshot, works=not expected).items():
        report = judged(read(text, tables()))
        assert said(report) == expected, (how, report.findings)
        if not expected:
            assert report.verdict in {"ok", "warning"}, (how, report.unknown)


@pytest.mark.parametrize("name", sorted(CANNOT_SHOW))
def test_what_a_text_cannot_show_is_no_alarm(name: str) -> None:
    for how, text in texts(live(name), works=True).items():
        assert said(judged(read(text, tables()))) == [], how
