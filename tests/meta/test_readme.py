"""The README keeps up with the program."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from envcheck.arguments.base import ENVIRONMENT, EXIT, FORMATS
from envcheck.arguments.completion import SHELLS
from envcheck.cli import build_parser

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
_, COMMANDS = build_parser()


@pytest.mark.parametrize("command", list(COMMANDS))
def test_every_flag_of_every_command_is_described(command: str) -> None:
    section = README.partition(f"### `envcheck {command}`")[2].partition("\n### ")[0]
    assert section, f"no section about {command}"
    flags = [flag for flag in COMMANDS[command].flags if flag not in ("-h", "--help")]
    assert [flag for flag in flags if f"`{flag}" not in section] == []


def test_no_flag_is_described_that_does_not_exist() -> None:
    known = {flag for parser in COMMANDS.values() for flag in parser.flags} | {"--version"}
    described = set(re.findall(r"(?<=envcheck )[a-z]+[^`\n|]*?(--[a-z-]+)", README))
    assert described - known == set()


def test_formats_shells_and_exit_statuses_are_all_there() -> None:
    for word in (*FORMATS, *SHELLS):
        assert f"`{word}`" in README
    table = dict(re.findall(r"^\| (\d+) \| (.+) \|$", README, re.MULTILINE))
    listed = dict(re.findall(r"^  (\d+) +(.+)$", EXIT, re.MULTILINE))
    assert table == listed


def test_environment_variables_of_the_help_are_described() -> None:
    names = set(re.findall(r"\b[A-Z][A-Z_]{3,}[A-Z]\b", ENVIRONMENT))
    assert {name for name in names if name not in README} == set()


def test_the_two_command_lines_are_those_that_ci_runs() -> None:
    lines = [line.strip() for line in README.splitlines()]
    assert "python3 -m venv .venv && .venv/bin/pip install . && .venv/bin/envcheck doctor" in lines
    tests = "python3 -m venv .venv && .venv/bin/pip install '.[test]' && .venv/bin/pytest"
    assert tests in lines
    assert tests in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
