"""What makes a row of the table of messages unfit."""

from __future__ import annotations

from typing import Any

import pytest

from envcheck.matrix.symptoms import pattern_problem, row_problems

GOOD: dict[str, Any] = {
    "name": "some-message",
    "pattern": r"(?i)driver (?P<version>\d{3}) is too old",
    "needles": ["too old"],
    "finding": "driver-too-old",
    "severity": "error",
    "strength": "cause",
    "example": "the driver 470 is too old",
}


def test_a_good_row_has_no_problem() -> None:
    assert list(row_problems(GOOD)) == []


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        (
            "strength",
            "certain",
            "strength: 'certain' is not one of cause, hint, context, program, noise",
        ),
        ("severity", "fatal", "severity: 'fatal' is not one of error, warning, info"),
        ("name", "Some_Message", "name: 'Some_Message' is not in kebab case"),
        ("finding", "none", "finding: 'none' does not go with strength 'cause'"),
        ("needles", [], "needles: there is none"),
        ("needles", ["older"], "needles: none stands in the example"),
        (
            "needles",
            ["Too-old"],
            "needles: 'Too-old' is not words in lower case with a blank between them",
        ),
        ("example", "driver too old", "example: the pattern does not match it"),
        ("pattern", "(", "pattern: not a regular expression"),
    ],
)
def test_a_bad_field_is_named(field: str, value: Any, problem: str) -> None:
    found = list(row_problems({**GOOD, field: value}))
    assert [each[: len(problem)] for each in found[:1]] == [problem]


@pytest.mark.parametrize(
    "pattern",
    [
        r"(a+)+b",
        r"(?:\w+ )*x",
        r"(?:a|b+)*",
        r"(?:x\d*){2,9}",
        r"a.*b",
        r"a.{0,4000}b",
        r"(?:.+?)x",
    ],
)
def test_what_could_take_without_bound_is_refused(pattern: str) -> None:
    assert pattern_problem(pattern) is not None


@pytest.mark.parametrize(
    "pattern", [r"a.{0,200}b", r"(?:x\d{1,3},){1,9}", r"[^:]*: cannot", r"\S+ failed", r"(?=\d+)x"]
)
def test_what_is_bounded_is_accepted(pattern: str) -> None:
    assert pattern_problem(pattern) is None
