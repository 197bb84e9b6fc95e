"""Texts as people paste them come to the finding that they show, and healthy ones to none."""

from __future__ import annotations

from typing import Any

import pytest

from envcheck import intake
from envcheck.engine import judge
from envcheck.rules import all_rules
from tests.symptoms.data import read, tables

TEXTS = read("texts.toml", "text")


@pytest.mark.parametrize("case", TEXTS, ids=lambda case: str(case["name"]))
def test_the_first_finding(case: dict[str, Any]) -> None:
    report = judge(intake.read(case["text"], tables()), tables(), all_rules())
    first = case["first"]
    assert [each for each in report.unknown if each.kind == "crashed"] == []
    if first == "unknown":
        assert report.findings == ()
        assert report.verdict == "unknown"
        assert report.ask
    elif first:
        assert report.findings[0].id in first
        assert report.findings[0].fix
        assert report.findings[0].evidence
    else:
        assert [each.id for each in report.findings if each.severity != "info"] == []
        assert report.verdict == "ok"
