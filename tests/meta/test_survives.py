"""Each row of the README's "What it survives" names a test that there is."""

from __future__ import annotations

import ast
import re
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]


def test_every_row_has_its_test() -> None:
    readme = (TESTS.parent / "README.md").read_text(encoding="utf-8")
    section = readme.partition("\n## What it survives\n")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ")][1:]
    assert len(rows) >= 28
    unnamed = [row for row in rows if not re.search(r"`test_\w+`", row)]
    assert unnamed == []
    defined = {
        node.name
        for path in TESTS.rglob("test_*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef)
    }
    assert set(re.findall(r"`(test_\w+)`", section)) - defined == set()
