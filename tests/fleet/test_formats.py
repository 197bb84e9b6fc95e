"""The picture in every format: complete, well-formed, and safe with hostile text in it."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from typing import Any

import pytest
from markdown_it import MarkdownIt

from envcheck.fleet.model import Fleet
from envcheck.fleet.picture import Collection
from envcheck.fleet.render import FORMATS, render
from tests.fleet.pictures import full, node

FLEET = full()
_SAMPLE = re.compile(
    r'[a-z_]+(?:\{[a-z_]+="(?:[^"\\\n]|\\[\\"n])*"(?:,[a-z_]+="(?:[^"\\\n]|\\[\\"n])*")*\})? -?\d+'
)


@pytest.mark.parametrize("form", FORMATS)
def test_nothing_steers_the_reader(form: str) -> None:
    text = render(form, FLEET)
    assert text.endswith("\n")
    for character in "\x1b\u202e":
        assert character not in text
    assert "49" not in text or "{{ 7*7 }}" in text


@pytest.mark.parametrize("form", FORMATS)
def test_every_host_is_there(form: str) -> None:
    text = render(form, FLEET, verbose=True)
    for name in ("sick", "warm", "dark", "drifted", "gone"):
        assert name in text


@pytest.mark.parametrize("form", FORMATS)
def test_an_empty_picture_is_one_too(form: str) -> None:
    assert render(form, Fleet(envcheck="0.1.0", exit_code=3)).endswith("\n")


def test_text_of_a_small_fleet() -> None:
    collection = Collection()
    fix = [{"title": "Install a newer driver", "commands": ["sudo apt-get install driver"]}]
    for each in (
        *(node(f"n{at}") for at in range(1, 10)),
        node("sick", ("driver-too-old", "error"), driver="470.57.02", verdict="error"),
    ):
        collection.add(each, dict.fromkeys(each.findings, fix))
    assert (
        render("text", collection.picture(), width=80)
        == """\
10 hosts judged: 1 error, 9 ok
taken 2026-12-01T03:01:07Z

outliers: 1 host whose stack is not the most frequent one of their GPUs
  1 host with 8 x NVIDIA H200: sick
    driver  470.57.02, usually 580.95.05, open

usual stacks
  9 hosts with 8 x NVIDIA H200: n1, n2, n3, n4, n5, n6 and 3 more
    system ubuntu 24.04 x86_64; driver 580.95.05, open; CUDA of the driver 13.0;
    Python 3.12; torch 2.9.0+cu130 (CUDA 13.0)

findings
  error driver-too-old on 1 host: sick
    Title of driver-too-old
    fix  Install a newer driver
      sudo apt-get install driver

drivers and torch
  470.57.02 (CUDA 13.0)  2.9.0+cu130 (CUDA 13.0)  1 host
  580.95.05 (CUDA 13.0)  2.9.0+cu130 (CUDA 13.0)  9 hosts

error: driver-too-old on 1 host: Title of driver-too-old
"""
    )


def test_json_repeats_no_stack() -> None:
    data = json.loads(render("json", FLEET))
    assert data["schema_version"] == "1"
    assert len(data["nodes"]) == 13
    assert all("stack" not in each for each in data["nodes"])
    assert {each["name"]: each["count"] for each in data["verdicts"]} == {
        "error": 2,
        "warning": 1,
        "unknown": 1,
        "ok": 9,
    }


def test_junit_has_a_case_for_each_host() -> None:
    root = ET.fromstring(render("junit", FLEET))  # noqa: S314 - made here
    cases = {case.get("name"): [each.tag for each in case] for case in root.iter("testcase")}
    assert len(cases) == 15
    assert cases["sick"] == ["failure"]
    assert cases["n2"] == []
    assert cases["warm"] == ["system-out"]
    assert cases["drifted"] == ["failure"]
    assert cases["gone"] == ["error"]
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("15", "3", "2")


def test_prometheus_lines_are_what_its_format_says() -> None:
    lines = render("prometheus", FLEET).splitlines()
    samples = [line for line in lines if not line.startswith("#")]
    assert [line for line in samples if not _SAMPLE.fullmatch(line)] == []
    # A series that occurs twice makes the whole file be refused.
    names = [line.rpartition(" ")[0] for line in samples]
    assert len(names) == len(set(names))
    assert 'envcheck_fleet_hosts{verdict="error"} 2' in lines
    assert 'envcheck_fleet_findings{id="driver-too-old",severity="error"} 1' in lines
    assert 'envcheck_host_finding{host="sick",id="driver-too-old",severity="error"} 1' in lines
    assert 'envcheck_host_drift_fields{host="drifted"} 1' in lines
    assert 'envcheck_host_report_timestamp_seconds{host="n1"} 1796094067' in lines
    kinds = {line.split()[2] for line in lines if line.startswith("# TYPE")}
    assert {re.split(r"[{ ]", line)[0] for line in samples} <= kinds


def test_markdown_keeps_its_tables_whole() -> None:
    lines = render("markdown", FLEET).splitlines()
    for at, line in enumerate(lines):
        if re.fullmatch(r"\|(---\|)+", line):
            columns = line.count("|")
            rows = lines[at + 1 :]
            for row in rows[: rows.index("")]:
                assert len(re.findall(r"(?<!\\)\|", row)) == columns, row
    tokens = MarkdownIt("commonmark", {"html": True}).enable("table").parse("\n".join(lines))
    inside = [token for each in tokens for token in (each, *(each.children or ()))]
    assert [each.type for each in inside].count("table_open") == 7
    # Empty comments are ours: they keep a site from making links and mentions.
    html = {each.content for each in inside if each.type.startswith("html")}
    assert html <= {"<!-- -->"}


class Page(HTMLParser):
    """Elements of a page, and what they are made of."""

    def __init__(self) -> None:
        """Start empty."""
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: dict[str, list[str]] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep an element."""
        self.elements.append((tag, dict(attrs)))
        if tag not in ("meta", "input", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Check that it closes the one that is open."""
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Keep text by the element around it."""
        self.texts.setdefault(self.open[-1] if self.open else "", []).append(data)


@pytest.fixture(scope="module")
def page() -> Page:
    parsed = Page()
    parsed.feed(render("html", FLEET))
    assert parsed.open == []
    return parsed


def test_the_page_needs_nothing_else(page: Page) -> None:
    for tag, attributes in page.elements:
        assert tag not in ("link", "img", "iframe", "object", "base", "form")
        assert not {"src", "srcset", "style"} & attributes.keys()
        assert not any(name.startswith("on") for name in attributes)
        assert str(attributes.get("href") or "#").startswith("#")
    assert [tag for tag, _ in page.elements].count("script") == 1
    assert "@import" not in render("html", FLEET)
    assert "url(" not in render("html", FLEET)


def test_only_the_pages_own_script_may_run(page: Page) -> None:
    import base64
    import hashlib

    policy: Any = next(
        attributes["content"]
        for tag, attributes in page.elements
        if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
    )
    for tag in ("script", "style"):
        (text,) = page.texts[tag]
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none';")


def test_hostile_text_is_shown_as_it_is(page: Page) -> None:
    shown = "".join(text for texts in page.texts.values() for text in texts)
    assert "<script>alert('x')</script>\"&|`" in shown
    assert "\\x1b[31m\\u202e{{ 7*7 }}" in shown


def test_severity_is_never_colour_alone(page: Page) -> None:
    html = render("html", FLEET)
    for word in ("error", "warning", "unknown", "ok"):
        marks = re.findall(rf'<span class="mark {word}">(.*?)</span>(\w+)</span>', html)
        assert marks
        assert {after for _, after in marks} == {word}


def test_the_page_can_be_read_aloud(page: Page) -> None:
    tags = [tag for tag, _ in page.elements]
    assert ("html", {"lang": "en"}) in page.elements
    assert [tag for tag in tags if tag in ("h1", "main", "title")] == ["title", "h1", "main"]
    for tag, attributes in page.elements:
        if tag == "th":
            assert attributes.get("scope") in ("row", "col")
        if tag == "section":
            named = attributes["aria-labelledby"]
            assert ("h2", {"id": named}) in page.elements
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
