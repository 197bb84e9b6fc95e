"""Markdown, JUnit, SARIF and JSON: what their readers rely on, and hostile text inside them."""

from __future__ import annotations

import json
import re
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from envcheck.report import FORMATS, render
from envcheck.report.foreign import clean, clean_all, fit
from envcheck.report.markdown import code, prose
from envcheck.report.view import View
from tests.report.sample import BAD, HOSTILE, REPORT, VIEW

MARKDOWN = """\
**1 error, 1 warning, 3 unknown:** torch 2.5.1+cu121 has no kernels for NVIDIA GeForce RTX 5090

| Component | |
|---|---|
| OS | Ubuntu 24.04.3 LTS, kernel 6.8.0-60-generic, x86\\_64, glibc 2.39 |
"""


def test_every_format_ends_in_one_newline_and_has_no_control_character() -> None:
    for name in FORMATS:
        text = render(name, BAD, VIEW)
        assert text.endswith("\n")
        assert not text.endswith("\n\n")
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\ud800-\udfff]", text), name


def test_markdown_starts_with_the_verdict_and_the_table() -> None:
    text = render("markdown", REPORT, VIEW)
    assert text.startswith(MARKDOWN)
    assert "\n### error: gpu-newer-than-build\n" in text
    assert "end in `no kernel image is available`." in text
    assert "[Arch lists of torch wheels](https://tables.example/torch) (read 2026-11-30)" in text
    assert "\n```sh\n~/venv/bin/python -m pip uninstall -y torch\n" in text
    assert text.endswith("\nenvcheck 0.1.0, exit status 1\n")


def test_markdown_of_hostile_text_has_no_markup_of_its_own() -> None:
    text = render("markdown", BAD, VIEW)
    blocks = re.split(r"^`{4,}(?:sh)?$", text, flags=re.MULTILINE)
    assert len(blocks) == 3  # before, inside and after the one block that holds a fence
    outside = re.sub(r"^```sh$.*?^```$", "", blocks[0] + blocks[2], flags=re.DOTALL | re.MULTILINE)
    without_code = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", outside.replace("\\`", ""))
    assert "<script" not in without_code
    assert "@octocat" not in without_code
    assert not re.search(r"(?<![\\*|])\|(?! |-|\n|$)", without_code)
    assert "](https://x.example" not in text


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("580.159.04", "580.159.04"),
        ("1. first", "1\\. first"),
        ("- item", "\\- item"),
        ("# head", "\\# head"),
        ("a*b_c|d~e[f]$g", "a\\*b\\_c\\|d\\~e\\[f\\]\\$g"),
        ("<b>&", "&lt;b>&amp;"),
        ("by @user", "by @<!-- -->user"),
        ("see #12", "see #<!-- -->12"),
        ("say `x <y>` now", "say `x <y>` now"),
        ("one ` tick", "one \\` tick"),
        ("two\nlines", "two lines"),
    ],
)
def test_prose_shows_exactly_its_characters(text: str, escaped: str) -> None:
    assert prose(text) == escaped


@pytest.mark.parametrize(
    ("text", "span"), [("a", "`a`"), ("a`b", "``a`b``"), ("`", "`` ` ``"), ("", "")]
)
def test_code_spans_hold_backticks(text: str, span: str) -> None:
    assert code(text) == span


def _suite(text: str) -> ET.Element:
    return ET.fromstring(text)[0]  # noqa: S314 - our own output


def test_junit_fails_what_fails_the_run() -> None:
    suite = _suite(render("junit", REPORT, VIEW))
    results = {
        case.attrib["name"]: [child.tag for child in case] for case in suite.iter("testcase")
    }
    assert results == {
        "gpu-newer-than-build [torch 2.5.1+cu121]": ["failure"],
        "driver-branch-ended [driver 580.159.04]": ["system-out"],
        "nccl-version-mismatch": ["skipped"],
        "cudnn-missing": ["skipped"],
        "gpu-xid": ["error"],
        "no-gpu": [],
    }
    counts = {name: suite.attrib[name] for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "6", "failures": "1", "errors": "1", "skipped": "2"}


def test_junit_follows_fail_on() -> None:
    strict = View(version="0.1.0", exit_code=1, fail_on="warning", checks=VIEW.checks)
    lax = View(version="0.1.0", fail_on="never", checks=VIEW.checks)
    assert _suite(render("junit", REPORT, strict)).attrib["failures"] == "2"
    assert _suite(render("junit", REPORT, lax)).attrib["failures"] == "0"


def test_junit_without_any_check_is_still_a_suite() -> None:
    suite = _suite(render("junit", REPORT, View(version="0.1.0")))
    assert int(suite.attrib["tests"]) == len(list(suite.iter("testcase"))) == 5


def test_junit_keeps_hostile_text_as_text() -> None:
    (failure,) = _suite(render("junit", BAD, VIEW)).iter("failure")
    assert "<script>" in failure.attrib["message"]
    assert "]]>" in (failure.text or "")


def _run(text: str) -> dict[str, Any]:
    (run,) = json.loads(text)["runs"]
    assert isinstance(run, dict)
    return run


def test_sarif_results_point_at_their_rules_and_a_place() -> None:
    run = _run(render("sarif", REPORT, VIEW))
    rules = run["tool"]["driver"]["rules"]
    assert [each["id"] for each in rules] == [check.id for check in VIEW.checks]
    assert [(each["ruleId"], each["level"]) for each in run["results"]] == [
        ("gpu-newer-than-build", "error"),
        ("driver-branch-ended", "warning"),
    ]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        place = result["locations"][0]["physicalLocation"]
        assert place["artifactLocation"]["uri"] == "this-machine/machine.toml"
        assert place["region"]["startLine"] == 1
    notes = run["invocations"][0]["toolExecutionNotifications"]
    assert [each["level"] for each in notes] == ["note", "note", "error"]


def test_sarif_fingerprints_tell_subjects_apart_and_stay() -> None:
    first, second = (
        [each["partialFingerprints"]["finding/v1"] for each in _run(text)["results"]]
        for text in (render("sarif", REPORT, VIEW), render("sarif", REPORT, VIEW))
    )
    assert first == second
    assert len(set(first)) == 2


def test_sarif_lists_a_rule_that_no_check_announced() -> None:
    run = _run(render("sarif", REPORT, View(version="0.1.0", exit_code=1)))
    assert [each["id"] for each in run["tool"]["driver"]["rules"]] == [
        "gpu-newer-than-build",
        "driver-branch-ended",
    ]


def test_json_is_ascii_and_has_null_for_what_is_no_number() -> None:
    text = render("json", BAD, VIEW)
    assert text.isascii()
    assert "NaN" not in text
    report = json.loads(text)
    assert report["snapshot"]["host"]["gpus"][0]["power_watts"] is None
    assert report["findings"][0]["subject"].startswith("\\x1b[2J\\x07[red]")


def test_cleaning_is_idempotent_and_keeps_ordinary_text() -> None:
    assert clean(clean(HOSTILE)) == clean(HOSTILE)
    ordinary = "NVIDIA H200 - \u00fc\u4e2d\u6587 \u2265 13.0 (~/venv)"
    assert clean(ordinary) == ordinary
    assert clean("a\nb\tc", lines=True) == "a\nb\tc"
    assert clean_all({"a\x1b": ["\x07", 1, None, float("inf")]}) == {
        "a\\x1b": ["\\x07", 1, None, None]
    }


@pytest.mark.parametrize(
    ("text", "encoding", "fitted"),
    [
        ("a \u2265 b \u2192 c", "ascii", "a >= b -> c"),
        ("a \u2265 b", "utf-8", "a \u2265 b"),
        ("\u00fc \u4e2d", "latin-1", "\u00fc \\u4e2d"),
        ("\u256d\u2500\u256e", "ascii", "+-+"),
        ("\u00fc", "no-such-codec", "\\xfc"),
    ],
)
def test_text_is_spelt_in_what_the_locale_has(text: str, encoding: str, fitted: str) -> None:
    assert fit(text, encoding) == fitted
