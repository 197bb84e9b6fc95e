"""Every finding has a page."""

from __future__ import annotations

import pytest

from envcheck.cli import main
from envcheck.rules import all_rules

IDS = tuple(id for rule in all_rules() for id in rule.ids)


@pytest.mark.parametrize("id", IDS)
def test_every_id_has_a_page(id: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", id]) == 0
    page = capsys.readouterr().out
    assert page.startswith(f"{id} (")
    assert "\nWhy:" in page
    assert "\nFix:" in page


def test_the_list_names_each_id_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    assert main(["explain", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    named = [line.split()[0] for line in lines if line.startswith("  ") and line[2] != " "]
    assert named == list(IDS)
