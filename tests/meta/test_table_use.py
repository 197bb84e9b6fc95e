"""Every kind of row is read by something that decides: a rule, the planner, an emitter."""

from __future__ import annotations

import ast
import functools
from pathlib import Path

import pytest

import envcheck
from envcheck.matrix import query
from envcheck.matrix.loader import Matrix
from envcheck.matrix.schema import ROWS, Row

PACKAGE = Path(envcheck.__file__).parent
DECIDING = ("rules", "planner", "emit", "symptoms", "intake", "undecided.py")


def names(tree: ast.AST) -> set[str]:
    """Every name and attribute that code speaks of."""
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} | {
        node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)
    }


def functions(path: Path) -> dict[str, set[str]]:
    """Names that each function or method of a file speaks of."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name: names(node) for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@functools.cache
def spoken() -> frozenset[str]:
    """Names that deciding code speaks of, and those behind the queries that it asks."""
    found: set[str] = set()
    for name in DECIDING:
        place = PACKAGE / name
        for path in [place] if place.suffix else place.rglob("*.py"):
            found |= names(ast.parse(path.read_text(encoding="utf-8")))
    behind: dict[str, set[str]] = {}
    for path in Path(str(query.__file__)).parent.glob("*.py"):
        behind |= functions(path)
    for _ in range(3):  # queries ask queries
        found |= {name for query in found & behind.keys() for name in behind[query]}
    return frozenset(found)


@pytest.mark.parametrize("kind", ROWS, ids=lambda kind: kind.__name__)
def test_each_kind_of_row_is_read(kind: type[Row]) -> None:
    properties = functions(PACKAGE / "matrix" / "loader.py")
    ways = {kind.__name__} | {
        name for name, said in properties.items() if kind.__name__ in said and hasattr(Matrix, name)
    }
    assert ways & spoken(), f"nothing decides by {kind.table} [[{kind.section}]]"
