"""Reports say when their tables are old, or older than what is installed."""

from __future__ import annotations

import dataclasses
from datetime import date, timedelta

from envcheck.engine import judge
from envcheck.matrix.loader import Matrix
from envcheck.model.environment import Framework
from envcheck.model.finding import Report
from envcheck.report import FORMATS, render
from envcheck.report.view import View
from envcheck.rules import all_rules
from tests.support import machine, torch


def report(today: str | None = None, **facts: object) -> Report:
    snapshot = dataclasses.replace(
        machine(**facts),  # type: ignore[arg-type]
        taken_at="2026-12-01T10:00:00Z",
    )
    return judge(snapshot, Matrix.shipped(), all_rules(), today=today)


def _later(days: int) -> str:
    newest = max(date.fromisoformat(day) for _, day in report().tables)
    return (newest + timedelta(days=days)).isoformat()


def test_young_tables_are_not_spoken_of() -> None:
    assert report(frameworks=(torch("2.8.0+cu128"),)).notes == ()
    oldest = min(date.fromisoformat(day) for _, day in report().tables)
    assert report((oldest + timedelta(days=90)).isoformat()).notes == ()


def test_old_tables_are() -> None:
    (note,) = report(_later(91)).notes
    assert note.startswith("tables are up to 9")
    assert "driver" in note


def test_what_is_newer_than_its_table_is_named() -> None:
    frameworks = (
        torch("99.1.0", cuda="13.0", origin="index"),
        Framework(name="jax", version="98.0", origin="index"),
        Framework(name="tensorflow", version="97.0", origin="index"),
    )
    notes = report(driver="999.10.01", cuda="13.0", frameworks=frameworks).notes
    assert notes[0] == "driver 999.10.01 is of a newer branch than the tables know"
    assert [note.partition(" is newer than")[0] for note in notes[1:]] == [
        "torch 99.1.0",
        "jax 98.0",
        "tensorflow 97.0",
    ]
    (toolkit,) = report(frameworks=(torch("2.8.0", cuda="77.0"),)).notes
    assert toolkit == "CUDA 77.0, which torch uses, is newer than the tables know"


def test_every_format_says_so() -> None:
    found = report(frameworks=(torch("99.1.0", cuda="13.0", origin="index"),))
    for form in FORMATS:
        text = render(form, found, View(version="1"))
        assert "99.1.0 is newer than" in " ".join(text.split()), form
