"""What a caller asks of the engine: certain findings only, a GPU that must be there, a status."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from envcheck.engine import FailOn, exit_code, judge
from envcheck.model.environment import Environment
from envcheck.model.finding import Finding, Unknown
from envcheck.model.snapshot import Snapshot
from envcheck.rules.base import finding, rule
from tests.engine.test_judge import MATRIX, says
from tests.support import evolve, machine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from envcheck.matrix.loader import Matrix

CHAIN = (says("root", "error", explains=("leaf",)), says("leaf", "error"))


def test_an_ignored_cause_does_not_take_its_consequences_with_it() -> None:
    report = judge(machine(), MATRIX, CHAIN, chosen={"leaf"})
    assert [(each.id, each.consequences) for each in report.findings] == [("leaf", ())]


def test_a_check_that_is_not_chosen_is_not_run() -> None:
    @rule("breaks", component="driver")
    def breaks(_snapshot: Snapshot, _matrix: Matrix) -> Iterator[Finding | Unknown]:
        raise ZeroDivisionError
        yield

    report = judge(machine(), MATRIX, (*CHAIN, breaks), chosen={"root"})
    assert ([each.id for each in report.findings], report.unknown) == (["root"], ())


def test_of_a_rule_with_two_ids_only_the_chosen_one_is_given() -> None:
    @rule("one", "two", component="driver")
    def both(_snapshot: Snapshot, _matrix: Matrix) -> Iterator[Finding | Unknown]:
        for id in ("one", "two"):
            yield finding(id, "warning", "driver", "it", id, found="a", needed="b", why="c")

    report = judge(machine(), MATRIX, (both,), chosen={"two"})
    assert [each.id for each in report.findings] == ["two"]


def test_a_crash_is_shown_even_when_a_finding_explains_the_check() -> None:
    @rule("leaf", component="driver")
    def crashes(_snapshot: Snapshot, _matrix: Matrix) -> Iterator[Finding | Unknown]:
        raise ZeroDivisionError("no")
        yield

    report = judge(machine(), MATRIX, (CHAIN[0], crashes))
    assert report.unknown == (
        Unknown(check="leaf", reason="ZeroDivisionError: no", kind="crashed"),
    )


def test_a_required_gpu_makes_its_absence_an_error() -> None:
    rules = (says("no-gpu", "warning"), says("other", "warning"))
    report = judge(machine(), MATRIX, rules, require_gpu=True)
    assert [(each.id, each.severity) for each in report.findings] == [
        ("no-gpu", "error"),
        ("other", "warning"),
    ]
    assert report.verdict == "error"


@pytest.mark.parametrize("gpus", [None, ()])
def test_a_required_gpu_that_nobody_saw_is_not_ok(gpus: tuple[()] | None) -> None:
    report = judge(evolve(machine(), {"host.gpus": gpus}), MATRIX, (), require_gpu=True)
    assert report.verdict == "unknown"
    assert exit_code(report, require_gpu=True) == 3
    assert exit_code(report) == 0


def test_nothing_known_is_unknown_though_no_rule_spoke() -> None:
    report = judge(Snapshot(), MATRIX, ())
    assert (report.verdict, exit_code(report)) == ("unknown", 3)


def test_an_environment_alone_can_be_judged() -> None:
    report = judge(Snapshot(env=Environment(packages=())), MATRIX, ())
    assert (report.verdict, exit_code(report)) == ("ok", 0)


@pytest.mark.parametrize(
    ("severity", "fail_on", "status"),
    [
        ("error", "error", 1),
        ("error", "warning", 1),
        ("error", "never", 0),
        ("warning", "error", 0),
        ("warning", "warning", 1),
        ("warning", "never", 0),
        ("info", "warning", 0),
    ],
)
def test_status_follows_the_mildest_failing_severity(
    severity: str, fail_on: FailOn, status: int
) -> None:
    report = judge(machine(), MATRIX, (says("it", severity),))  # type: ignore[arg-type]
    assert exit_code(report, fail_on) == status
