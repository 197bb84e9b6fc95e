"""The journal of a run: what it remembers, and what a cut-off line costs."""

from __future__ import annotations

import json
from pathlib import Path

from envcheck.fleet.journal import Journal
from envcheck.fleet.names import file_name
from tests.cli.runner import run_cli
from tests.fleet.recorded import report_text

OPTIONS = {"smoke": False}


def begun(folder: Path) -> Journal:
    journal = Journal(str(folder))
    journal.begin(("a", "b", "c/d", "e"), OPTIONS, anew=False)
    for host in ("a", "c/d"):
        (folder / file_name(host)).write_text(report_text("h200x1"))
        journal.note(host, "ok")
    journal.note("b", "unreachable", "No route to host")
    return journal


def test_who_is_done_and_who_is_not(tmp_path: Path) -> None:
    begun(tmp_path)
    journal = Journal(str(tmp_path))
    assert journal.options == OPTIONS
    assert [each for each in ("a", "b", "c/d", "e") if journal.done(each)] == ["a", "c/d"]
    assert [(each.name, each.kind, each.reason) for each in journal.absent()] == [
        ("b", "unreachable", "No route to host"),
        ("e", "not-asked", "the run ended before"),
    ]


def test_a_report_that_is_gone_is_not_done(tmp_path: Path) -> None:
    begun(tmp_path)
    (tmp_path / "a.json").unlink()
    assert not Journal(str(tmp_path)).done("a")


def test_a_line_that_was_cut_off_costs_that_line(tmp_path: Path) -> None:
    begun(tmp_path)
    path = tmp_path / "run.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    journal = Journal(str(tmp_path))
    assert [each.name for each in journal.absent()] == ["b", "e"]
    journal.note("e", "failed", "no Python")
    assert [(each.name, each.kind) for each in Journal(str(tmp_path)).absent()] == [
        ("b", "not-asked"),
        ("e", "failed"),
    ]


def test_foreign_lines_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "run.jsonl").write_text('[]\n{"host": 1}\n{"host": "x", "outcome": "fine"}\n\xff\n')
    assert Journal(str(tmp_path)).absent() == ()


def test_anew_forgets(tmp_path: Path) -> None:
    begun(tmp_path)
    journal = Journal(str(tmp_path))
    journal.begin(("a",), {"smoke": True}, anew=True)
    again = Journal(str(tmp_path))
    assert (again.options, again.outcomes, list(again.hosts)) == ({"smoke": True}, {}, ["a"])


def test_the_picture_says_who_did_not_answer(tmp_path: Path) -> None:
    journal = begun(tmp_path)
    journal.note("a", "unreachable", "Connection refused")
    done = run_cli("fleet", "report", str(tmp_path), "--json")
    data = json.loads(done.stdout)
    assert [each["name"] for each in data["nodes"]] == ["a", "c/d"]
    assert [(each["name"], each["kind"], each["report"]) for each in data["absent"]] == [
        ("e", "not-asked", False),
        ("a", "unreachable", True),
        ("b", "unreachable", False),
    ]
    assert done.returncode == 3
