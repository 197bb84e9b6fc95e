"""The registry of rules: complete, consistent, documented, tested."""

from __future__ import annotations

import dataclasses
import graphlib
import re
import typing
from pathlib import Path
from typing import Any

import pytest

import envcheck.rules
from envcheck.model.snapshot import Snapshot
from envcheck.rules import all_rules
from envcheck.rules.base import Rule

RULES = all_rules()
IDS = [id for rule in RULES for id in rule.ids]
TESTS = Path(__file__).parents[1] / "rules"
COMPONENTS = {"driver", "gpu", "cuda", "cudnn", "nccl", "framework", "container"}
COMPONENTS |= {"smoke", "activity"}


def _named(rule: Rule) -> str:
    return rule.id


def test_ids_are_kebab_case_and_unique() -> None:
    assert len(IDS) == len(set(IDS))
    assert [id for id in IDS if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", id)] == []


def test_every_module_with_a_rule_is_registered() -> None:
    folder = Path(envcheck.rules.__file__ or "").parent
    declared = {
        id
        for path in folder.rglob("*.py")
        for call in re.findall(
            r"^@rule\((.*?)\n?\)$", path.read_text("utf-8"), re.MULTILINE | re.DOTALL
        )
        for id in re.findall(
            r'^\s*"([a-z0-9-]+)"', call.partition("component")[0].replace(",", "\n"), re.MULTILINE
        )
    }
    assert declared - set(IDS) == set()


@pytest.mark.parametrize("rule", RULES, ids=_named)
def test_a_rule_has_a_page(rule: Rule) -> None:
    first, _, rest = rule.page.strip().partition("\n")
    assert first.endswith("."), first
    assert re.search(r"^\s*Why:", rest, re.MULTILINE)
    assert re.search(r"^\s*Fix:", rest, re.MULTILINE)
    assert rule.component in COMPONENTS


@pytest.mark.parametrize("rule", RULES, ids=_named)
def test_needs_name_facts_that_can_be_missing(rule: Rule) -> None:
    for path in rule.needs:
        cls: Any = Snapshot
        for name in path.split("."):
            hints = typing.get_type_hints(cls)
            assert name in hints, path
            cls = hints[name]
        assert type(None) in typing.get_args(cls), f"{path} is never None"


def test_every_model_path_has_dataclass_fields() -> None:
    assert {"host", "env", "gaps"} <= {field.name for field in dataclasses.fields(Snapshot)}


def test_explanations_name_rules_and_never_go_round() -> None:
    graph = {id: set(rule.explains) for rule in RULES for id in rule.ids}
    assert {effect for effects in graph.values() for effect in effects} - set(IDS) == set()
    order = list(graphlib.TopologicalSorter(graph).static_order())
    assert set(order) == set(IDS)


@pytest.mark.parametrize("id", IDS)
def test_each_finding_is_named_by_a_test(id: str) -> None:
    texts = (path.read_text(encoding="utf-8") for path in TESTS.rglob("test_*.py"))
    assert any(re.search(rf"[\"'`]{re.escape(id)}[\"'`]", text) for text in texts), id
