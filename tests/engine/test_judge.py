"""The engine keeps what rules say, folds consequences, and never hides a check that crashed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import pytest

from envcheck.engine import judge
from envcheck.errors import TableError
from envcheck.matrix.loader import Matrix
from envcheck.model.finding import Finding, Severity, Unknown
from envcheck.model.snapshot import Gap, Snapshot
from envcheck.rules.base import Rule, finding, rule, unknown
from tests.support import evolve, machine


class NoTables:
    """A matrix of which the rules below ask nothing."""

    branches = ()

    def dates(self) -> dict[str, str]:
        """No table was read."""
        return {}


MATRIX = cast("Matrix", NoTables())


def says(id: str, severity: Severity, **declared: object) -> Rule:
    """A rule that always gives one finding."""

    def body(_snapshot: Snapshot, _matrix: Matrix) -> Iterator[Finding | Unknown]:
        yield finding(id, severity, "driver", "it", id, found="a", needed="b", why="c")

    return rule(id, component="driver", **declared)(body)  # type: ignore[arg-type]


def test_a_consequence_is_named_under_its_cause_and_not_repeated() -> None:
    """Of three findings in a chain, the first stands and names the other two."""
    rules = (
        says("root", "error", explains=("middle",)),
        says("middle", "error", explains=("leaf",)),
        says("leaf", "warning"),
        says("other", "info"),
    )
    report = judge(machine(), MATRIX, rules)
    assert [(each.id, each.consequences) for each in report.findings] == [
        ("root", ("middle", "leaf")),
        ("other", ()),
    ]
    assert report.verdict == "error"


def test_a_warning_never_hides_an_error() -> None:
    """The cause is only a warning, so the error stands by itself, first."""
    rules = (says("mild", "warning", explains=("bad",)), says("bad", "error"))
    assert [each.id for each in judge(machine(), MATRIX, rules).findings] == ["bad", "mild"]


def test_two_rules_that_explain_each_other_do_not_vanish() -> None:
    """One of the two stays."""
    rules = (says("one", "error", explains=("two",)), says("two", "error", explains=("one",)))
    report = judge(machine(), MATRIX, rules)
    assert len(report.findings) == 1
    assert len(report.findings[0].consequences) == 1


def test_a_crash_keeps_what_was_said_before_and_is_shown() -> None:
    """The finding given before the crash stays, the crash is an unknown, other rules still run."""

    @rule("breaks", component="driver")
    def breaks(_snapshot: Snapshot, _matrix: Matrix) -> Iterator[Finding | Unknown]:
        yield finding("breaks", "warning", "driver", "it", "t", found="a", needed="b", why="c")
        raise ZeroDivisionError("no")

    report = judge(machine(), MATRIX, (breaks, says("after", "info")))
    assert [each.id for each in report.findings] == ["breaks", "after"]
    assert report.unknown == (
        Unknown(check="breaks", reason="ZeroDivisionError: no", kind="crashed"),
    )


def test_a_crash_alone_is_never_ok() -> None:
    """Nothing found and one check crashed: the verdict is unknown."""

    @rule("breaks", component="driver")
    def breaks(_snapshot: Snapshot, _matrix: Matrix) -> Iterator[Finding | Unknown]:
        raise ZeroDivisionError
        yield

    assert judge(machine(), MATRIX, (breaks,)).verdict == "unknown"


def test_a_damaged_table_ends_the_run() -> None:
    """It is the tool that is broken then, not the machine."""

    @rule("reads", component="driver")
    def reads(_snapshot: Snapshot, _matrix: Matrix) -> Iterator[Finding | Unknown]:
        raise TableError("cuda.toml: row 3: cuda: missing")
        yield

    with pytest.raises(TableError):
        judge(machine(), MATRIX, (reads,))


def test_a_missing_fact_gives_the_reason_of_its_gap() -> None:
    """`needs` that are None answer unknown, with the reason noted nearest to the fact."""
    snapshot = evolve(
        machine(), {"host.gpus": None, "gaps": (Gap(path="host", reason="no permission"),)}
    )
    report = judge(snapshot, MATRIX, (says("wants", "error", needs=("host.gpus",)),))
    assert report.unknown == (Unknown(check="wants", reason="no permission"),)
    assert report.findings == ()


def test_a_question_that_makes_no_sense_here_is_not_asked() -> None:
    """`when` false: neither a finding nor an unknown, and the verdict stays ok."""
    never = says("wants", "error", when=lambda _snapshot: False, needs=("host.gpus",))
    report = judge(evolve(machine(), {"host.gpus": None}), MATRIX, (never,))
    assert (report.verdict, report.unknown, report.findings) == ("ok", (), ())


def test_a_version_newer_than_the_table_does_not_spoil_the_verdict() -> None:
    """It is said, and the verdict stays ok."""

    @rule("new", component="framework")
    def new(_snapshot: Snapshot, _matrix: Matrix) -> Iterator[Finding | Unknown]:
        yield unknown("new", "torch 9 is newer than the table", "newer-than-table")

    report = judge(machine(), MATRIX, (new,))
    assert (report.verdict, len(report.unknown)) == ("ok", 1)
