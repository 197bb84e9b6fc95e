"""However a table is damaged, the answer names the place and is never a crash."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from envcheck.errors import TableError
from envcheck.matrix import check
from envcheck.matrix.loader import Matrix

NCCL: dict[str, Any] = {
    "schema": 1,
    "name": "nccl",
    "date": "2026-01-31",
    "source": [{"id": "a", "title": "A", "retrieved": "2026-01-31"}],
    "release": [
        {
            "nccl": "2.27.5",
            "cuda_majors": ["12"],
            "source": "a",
            "method": "published",
            "confidence": "high",
        }
    ],
}


def compiled(folder: Path, data: object) -> Matrix:
    """Tables as a wheel carries them."""
    (folder / "nccl.json").write_text(json.dumps(data), encoding="utf-8")
    return Matrix(folder, compiled=True)


@pytest.mark.parametrize("data", [[], "text", 5, None])
def test_a_compiled_table_that_is_none(tmp_path: Path, data: object) -> None:
    matrix = compiled(tmp_path, data)
    with pytest.raises(TableError, match=r"^nccl\.json: holds no table$"):
        matrix.nccl_releases  # noqa: B018
    assert check.everything(matrix) == ("nccl.json: holds no table",)


def test_a_compiled_row_that_does_not_fit(tmp_path: Path) -> None:
    row = {name: value for name, value in NCCL["release"][0].items() if name != "nccl"}
    for damaged in ({**row, "ncl": "2.27.5"}, row, "text"):
        matrix = compiled(tmp_path, {**NCCL, "release": [damaged]})
        with pytest.raises(TableError, match=r"^nccl: \[\[release\]\]: "):
            matrix.nccl_releases  # noqa: B018


def test_check_judges_the_form_of_compiled_tables(tmp_path: Path) -> None:
    row = {**NCCL["release"][0], "nccl": 5}
    assert check.everything(compiled(tmp_path, NCCL)) == ()
    assert check.everything(compiled(tmp_path, {**NCCL, "release": [row]})) == (
        "nccl.toml: [[release]] row 1: nccl: expected text in quotes, found 5",
    )


ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


@given(ODD, st.sampled_from(["table", "source", "row"]), st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_any_value_in_any_place(tmp_path: Path, odd: object, where: str, data: Any) -> None:
    table = json.loads(json.dumps(NCCL))
    place = {"table": table, "source": table["source"][0], "row": table["release"][0]}[where]
    field = data.draw(st.sampled_from([*place, "new"]))
    before, place[field] = place.get(field), odd
    found = check.everything(compiled(tmp_path, table))
    assert all(line.startswith("nccl.toml: ") for line in found)
    if field not in ("new", "note", "title", "id", "source") and type(odd) is not type(before):
        assert found


WHOLE = """\
schema = 1
name = "nccl"
date = "2026-01-31"
source = [
  { id = "a", title = "A", retrieved = "2026-01-31" },
]
release = [
  { nccl = "2.27.5", cuda_majors = [], source = "a", method = "measured", confidence = "high" },
]
"""


@pytest.mark.parametrize("kept", range(0, len(WHOLE) - 2, 13))
def test_half_a_file(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "nccl.toml"
    path.write_text(WHOLE, encoding="utf-8")
    assert check.everything(Matrix.from_dir(tmp_path)) == ()
    path.write_text(WHOLE[:kept], encoding="utf-8")
    found = check.everything(Matrix.from_dir(tmp_path))
    assert found
    assert all(line.startswith("nccl.toml: ") for line in found)
