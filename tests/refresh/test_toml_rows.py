"""Tables are written in one form, which is the form they are kept in."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envcheck.paths import data_dir
from envcheck.refresh import toml_rows

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TABLES = sorted(data_dir("matrices").rglob("*.toml"))


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.stem)
def test_every_shipped_table_is_in_that_form(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert toml_rows.inner_comments(text) == []
    assert toml_rows.dump(tomllib.loads(text), toml_rows.head_comment(text)) == text


def test_a_small_table_whole() -> None:
    table = {
        "date": "2026-01-31",
        "name": "nccl",
        "schema": 1,
        "release": [
            {"note": "x", "confidence": "high", "method": "published", "source": "b"}
            | {"cuda_majors": ["12", "13"], "nccl": "2.10.0"},
            {"nccl": "2.9.0", "cuda_majors": [], "source": "a", "method": "published"}
            | {"confidence": "low"},
        ],
        "source": [
            {"id": "b", "retrieved": "2026-01-31", "title": 'B "quoted"'},
            {"id": "a", "title": "A", "url": "https://a.example", "retrieved": "2026-01-30"},
        ],
    }
    expected = """\
# One line.
# Another.

schema = 1
name = "nccl"
date = "2026-01-31"

source = [
  { id = "a", title = "A", url = "https://a.example", retrieved = "2026-01-30" },
  { id = "b", title = "B \\"quoted\\"", retrieved = "2026-01-31" },
]

release = [
  { nccl = "2.9.0", cuda_majors = [], source = "a", method = "published", confidence = "low" },
  { nccl = "2.10.0", cuda_majors = ["12", "13"], source = "b", method = "published", \
confidence = "high", note = "x" },
]
"""
    written = toml_rows.dump(table, "# One line.\n# Another.\n")
    assert written == expected
    assert tomllib.loads(written)["source"][1]["title"] == 'B "quoted"'


@given(
    st.one_of(
        st.text(st.characters(exclude_categories=["Cs"])),
        st.booleans(),
        st.integers(-(2**63), 2**63 - 1),
        st.lists(st.text(st.characters(exclude_categories=["Cs"]))),
    )
)
def test_every_value_reads_as_it_was_written(content: object) -> None:
    found = tomllib.loads(f"x = {toml_rows.value(content)}")["x"]
    assert found == content
    assert type(found) is type(content)


@pytest.mark.parametrize("content", [1.5, None, {"a": 1}])
def test_other_values_are_refused(content: object) -> None:
    with pytest.raises(TypeError, match="a table holds no "):
        toml_rows.value(content)


def test_comments_that_would_be_lost_are_found() -> None:
    text = '# head\n#  more\nschema = 1\n# lost\nx = [\n  # lost too\n  "# kept",\n]\n'
    assert toml_rows.head_comment(text) == "# head\n#  more"
    assert toml_rows.inner_comments(text) == [4, 6]
