"""Each row of the table: its message in other surroundings, and a line that is not it."""

from __future__ import annotations

from typing import Any

import pytest

from envcheck.matrix.symptoms import NOTHING
from envcheck.rules import all_rules
from envcheck.rules.told.weigh import WEIGHING
from envcheck.symptoms.scan import scan
from tests.symptoms.data import read, tables

MESSAGES = read("messages.toml", "message")
ROWS = {row.name: row for row in tables().symptoms}


def _named(message: dict[str, Any]) -> str:
    return str(message["name"])


def _recognised(*lines: str) -> set[str]:
    return {each.name for each in scan(lines, tables())}


def test_every_row_has_its_message_and_its_near_miss() -> None:
    assert sorted(map(_named, MESSAGES)) == sorted(ROWS)


@pytest.mark.parametrize("message", MESSAGES, ids=_named)
def test_a_message_is_recognised_in_other_surroundings(message: dict[str, Any]) -> None:
    assert message["elsewhere"] != ROWS[message["name"]].example
    assert message["name"] in _recognised(message["elsewhere"])


@pytest.mark.parametrize("message", MESSAGES, ids=_named)
def test_a_line_that_only_looks_like_it_is_not(message: dict[str, Any]) -> None:
    assert message["name"] not in _recognised(message["near_miss"])


@pytest.mark.parametrize("row", ROWS.values(), ids=lambda row: row.name)
def test_the_example_is_recognised_among_other_lines(row: Any) -> None:
    assert row.name in _recognised("Traceback (most recent call last):", row.example, "", "$ ls")


def test_findings_are_ids_of_rules() -> None:
    ids = {id for rule in all_rules() for id in rule.ids}
    assert {row.finding for row in ROWS.values()} - {NOTHING} - ids == set()


def test_hints_are_weighed_and_what_is_weighed_is_in_the_table() -> None:
    assert set(WEIGHING) - set(ROWS) == set()
    # A hint whose meaning does not change with the circumstances would be a cause.
    unweighed = {
        row.name for row in ROWS.values() if row.strength == "hint" and row.name not in WEIGHING
    }
    assert unweighed == set()
