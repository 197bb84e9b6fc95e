"""CONTRIBUTING.md, carried out: each page is followed literally in a copy of the checkout."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.runner import environment

ROOT = Path(__file__).parents[2]
PAGES = dict(
    re.findall(
        r"^## (.+?)\n(.*?)(?=^## |\Z)",
        (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"),
        re.MULTILINE | re.DOTALL,
    )
)
STEP = re.compile(r"(?P<before>[^\n]*)\n\n```(?P<kind>\w+)\n(?P<block>.*?)```\n", re.DOTALL)
COPIED = ("envcheck", "matrices", "tests", "pyproject.toml", "README.md")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of the checkout, without what is not needed to follow a page."""
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            left_out = shutil.ignore_patterns("__pycache__", "_data", "machines", "cases", "series")
            shutil.copytree(source, tmp_path / name, ignore=left_out)
        else:
            shutil.copy(source, tmp_path / name)
    shutil.copytree(ROOT / "tests" / "machines" / "h200x1", tmp_path / "tests/machines/h200x1")
    return tmp_path


def _write(checkout: Path, sentence: str, block: str) -> None:
    """Do what a sentence says with the block below it."""
    new = re.search(r"Write `([^`]+)`:$", sentence)
    if new is not None:
        path = checkout / new[1]
        assert not path.exists(), f"{new[1]} is there already"
        path.write_text(block, encoding="utf-8")
        return
    place = re.search(r"In `([^`]+)`, (at the end|after (the last line with )?`(.+)`):$", sentence)
    assert place is not None, f"not understood: {sentence}"
    path = checkout / place[1]
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    if place[2] == "at the end":
        at = len(lines)
    else:
        found = [
            number
            for number, line in enumerate(lines, 1)
            if (place[4] in line if place[3] else line.rstrip("\n") == place[4])
        ]
        assert found, f"{place[1]} has no line {place[4]!r}"
        at = found[-1]
    path.write_text("".join((*lines[:at], block, *lines[at:])), encoding="utf-8")


def _run(checkout: Path, block: str) -> None:
    """Run each command of a console block; what is shown below it must be in its output."""
    for command, shown in re.findall(r"^\$ (.+)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
        program, *args = shlex.split(command)
        module = {".venv/bin/pytest": "pytest", ".venv/bin/envcheck": "envcheck"}[program]
        done = subprocess.run(
            [sys.executable, "-m", module, *args],
            cwd=checkout,
            capture_output=True,
            text=True,
            # The copy stands for an editable installation of the changed checkout.
            env=environment(PYTHONPATH=str(checkout), PYTEST_ADDOPTS=None),
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        for line in shown.splitlines():
            assert line in done.stdout, f"{command} does not print {line!r}:\n{done.stdout[:2000]}"


@pytest.mark.parametrize("page", ["Add a finding", "Add a row to a table", "Add a framework"])
def test_a_page_works_as_it_stands(page: str, checkout: Path) -> None:
    kinds = []
    for step in STEP.finditer(PAGES[page]):
        kinds.append(step["kind"])
        if step["kind"] == "console":
            _run(checkout, step["block"])
        else:
            _write(checkout, step["before"], step["block"])
    assert kinds.count("console") == 1
    assert len(kinds) == PAGES[page].count("```") / 2 > 2


def test_each_page_is_one_page() -> None:
    """What fits on a screen or a sheet, code included."""
    assert {
        page: len(text.splitlines()) for page, text in PAGES.items() if text.count("\n") > 110
    } == {}
