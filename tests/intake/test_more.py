"""Texts after public threads are judged as these ended, texts made for their wrapping as meant."""

from __future__ import annotations

import functools
import sys
from pathlib import Path
from typing import Any

import pytest

from envcheck import intake
from envcheck.engine import judge
from envcheck.matrix.loader import Matrix
from envcheck.rules import all_rules

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = Path(__file__).parent
TEXTS: dict[str, dict[str, Any]] = tomllib.loads((HERE / "more.toml").read_text(encoding="utf-8"))


@functools.cache
def tables() -> Matrix:
    return Matrix.shipped()


def test_each_text_has_its_answer_and_each_answer_its_text() -> None:
    assert sorted(TEXTS) == sorted(path.stem for path in (HERE / "more").glob("*.txt"))


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_comes_to_the_answer_of_its_thread(name: str) -> None:
    wanted = TEXTS[name]
    text = (HERE / "more" / f"{name}.txt").read_bytes()
    report = judge(intake.read(text, tables()), tables(), all_rules())
    assert [each for each in report.unknown if each.kind == "crashed"] == []
    serious = [each for each in report.findings if each.severity != "info"]
    shown = [(each.id, each.severity) for each in serious]
    expected = wanted["expect"]
    if expected == "ok":
        assert shown == []
        assert report.verdict == "ok"
    elif expected == "no-error":
        assert [each for each in shown if each[1] == "error"] == []
    elif expected == "unknown" or (expected == "unknown-or" and not serious):
        assert shown == []
        assert report.verdict == "unknown"
        assert report.ask
    else:
        assert shown[0][0] in wanted["findings"]
        assert serious[0].fix
        assert serious[0].evidence
        if expected == "error":
            assert shown[0][1] == "error"
