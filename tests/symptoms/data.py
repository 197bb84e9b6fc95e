"""The data files beside the tests, and the tables, each read once."""

from __future__ import annotations

import functools
import sys
from pathlib import Path
from typing import Any

from envcheck.matrix.loader import Matrix

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@functools.cache
def tables() -> Matrix:
    """The tables of this checkout."""
    return Matrix.shipped()


def read(name: str, section: str) -> list[dict[str, Any]]:
    """Rows of a data file."""
    text = (Path(__file__).parent / name).read_text(encoding="utf-8")
    rows: list[dict[str, Any]] = tomllib.loads(text)[section]
    return rows
