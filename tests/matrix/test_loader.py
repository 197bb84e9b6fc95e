"""Loading: damaged tables, overlays, the compiled form, laziness."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
from pathlib import Path

import pytest

from envcheck.errors import TableError
from envcheck.matrix import check, loader, query, schema
from envcheck.matrix.loader import Matrix
from envcheck.paths import data_dir

HEAD = 'schema = 1\nname = "{name}"\ndate = "2026-01-31"\n'
SOURCE = 'source = [{ id = "s", title = "A page", retrieved = "2026-01-31" }]\n'
NEWLINE = "\n"
ORIGIN = 'source = "s", method = "published", confidence = "high"'


def write(folder: Path, name: str, text: str, *, head: str = HEAD, source: str = SOURCE) -> None:
    """Save a table with a sound head."""
    path = folder / f"{name}.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(head.replace("{name}", name) + source + text)


def problems(folder: Path) -> list[str]:
    """Lines of the error that reading all tables of a folder raises."""
    with pytest.raises(TableError) as raised:
        Matrix.from_dir(folder).load_all()
    return str(raised.value).splitlines()


# -- damaged tables --------------------------------------------------------------------------------


def test_every_problem_of_a_file_is_named_with_its_place(tmp_path: Path) -> None:
    write(
        tmp_path,
        "cuda",
        f"""
toolkit = [
  {{ cuda = "12.0.0", driver_linux = "525.60.13", {ORIGIN} }},
  {{ cuda = 12.1, driver_linux = "530.30.02", {ORIGIN} }},
  {{ driver_linux = "530.30.02", {ORIGIN} }},
  {{ cuda = "12.2.0", driver = "535.54.03", {ORIGIN} }},
  {{ cuda = "twelve", {ORIGIN} }},
  {{ cuda = "12.3.0", source = "t", method = "guess", confidence = "certain" }},
]
forward_compat = [{{ cuda = "12.4.0", branches = ["535", 5], {ORIGIN} }}]
""",
    )
    assert problems(tmp_path) == [
        "cuda.toml: [[toolkit]] row 2: cuda: expected text in quotes, found 12.1",
        "cuda.toml: [[toolkit]] row 3: cuda: missing",
        "cuda.toml: [[toolkit]] row 4: driver: unknown field",
        "cuda.toml: [[toolkit]] row 5: cuda: 'twelve' is not a version",
        "cuda.toml: [[toolkit]] row 6: method: 'guess' is not one of published, measured, derived",
        "cuda.toml: [[toolkit]] row 6: confidence: 'certain' is not one of high, medium, low",
        "cuda.toml: [[toolkit]] row 6: source: no [[source]] has the id 't'",
        "cuda.toml: [[forward_compat]] row 1: branches: expected a list of texts, found ['535', 5]",
    ]


def test_problems_of_all_files_come_together(tmp_path: Path) -> None:
    write(
        tmp_path, "gpu", f'capability = [{{ cc = "8.9", architecture = "A", tegra = 0, {ORIGIN} }}]'
    )
    write(tmp_path, "xid", f"xid = [{{ number = true, {ORIGIN} }}]")
    write(tmp_path, "frameworks/torch", "companion = 3")
    (tmp_path / "driver.toml").write_text("branch = [")
    found = problems(tmp_path)
    assert found[0].startswith("driver.toml: not valid TOML: ")
    assert found[1:] == [
        "frameworks/torch.toml: [[companion]]: expected an array of tables",
        "gpu.toml: [[capability]] row 1: tegra: expected true or false, found 0",
        "xid.toml: [[xid]] row 1: number: expected a whole number, found True",
        "xid.toml: [[xid]] row 1: mnemonic: missing",
        "xid.toml: [[xid]] row 1: meaning: missing",
        "xid.toml: [[xid]] row 1: severity: missing",
        "xid.toml: [[xid]] row 1: action: missing",
    ]


def test_head_and_sections_are_judged(tmp_path: Path) -> None:
    write(
        tmp_path,
        "driver",
        "\nbranches = []\nbranch = [3]\n",
        head='schema = 2\nname = "drivers"\ndate = 2026-01-31\n',
        source='source = [3, { id = "s", title = "A" }, { id = "s", title = "B", retrieved = "" }]',
    )
    assert problems(tmp_path) == [
        "driver.toml: schema: expected 1, found 2",
        "driver.toml: name: expected 'driver', found 'drivers'",
        "driver.toml: date: expected text such as '2026-01-31', found datetime.date(2026, 1, 31)",
        "driver.toml: [[source]] row 1: expected a table",
        "driver.toml: [[source]] row 2: retrieved: missing",
        "driver.toml: [[source]] row 3: id: 's' is used twice",
        "driver.toml: [[branches]]: unknown section; this table has branch",
        "driver.toml: [[branch]] row 1: expected a table",
    ]


def test_a_damaged_table_is_an_error_when_it_is_first_asked_for(tmp_path: Path) -> None:
    write(tmp_path, "cuda", "toolkit = [{ cuda = 12.8 }]")
    matrix = Matrix.from_dir(tmp_path)
    assert matrix.branches == ()
    with pytest.raises(TableError, match=r"cuda\.toml: \[\[toolkit\]\] row 1: cuda: expected text"):
        matrix.toolkits  # noqa: B018


def test_no_folder(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="no such folder"):
        Matrix.from_dir(tmp_path / "absent")


def test_content_is_judged_apart_from_form(tmp_path: Path) -> None:
    write(
        tmp_path,
        "cuda",
        f"""
toolkit = [
  {{ cuda = "12.1.0", driver_linux = "530.30.02", {ORIGIN} }},
  {{ cuda = "12.0.0", driver_linux = "525.60.13", {ORIGIN} }},
  {{ cuda = "12.0.0", driver_linux = "525.60.13", {ORIGIN} }},
]
forward_compat = [{{ cuda = "12.1.0", branches = ["470"], {ORIGIN} }}]
""",
        head='schema = 1\nname = "cuda"\ndate = "2999-01-31"\n',
        source=SOURCE.replace("]\n", ', { id = "t", title = "B", retrieved = "2999-01-31" }]\n'),
    )
    write(
        tmp_path,
        "gpu",
        f"""
capability = [
  {{ cc = "8.9", architecture = "Ada", tegra = false, min_driver = "520", {ORIGIN} }},
]
product = [{{ name = "X", cc = "7.7", kind = "geforce", {ORIGIN} }}]
""",
        source=SOURCE.replace("A page", "Another page"),
    )
    write(
        tmp_path,
        "frameworks/torch",
        f"""
companion = [{{ torch = "2.9.0", {ORIGIN} }}]

[[build]]
version = "2.8.0"
platform = "p"
variant = "v"
cuda = "9.9"
index_default = true
{ORIGIN.replace(", ", NEWLINE)}
""",
    )
    write(
        tmp_path,
        "distro",
        f'package = [{{ family = "f", purpose = "u", origin = "o", package = "p", {ORIGIN} }}]',
    )
    assert list(check.problems(Matrix.from_dir(tmp_path))) == [
        "cuda.toml: [[toolkit]] row 2: cuda: out of order",
        "cuda.toml: [[toolkit]] row 3: cuda: same as the row before",
        "cuda.toml: date: 2999-01-31 lies in the future",
        "cuda.toml: [[source]] row 2: id: no row cites 't'",
        "cuda.toml: [[source]] row 2: retrieved: 2999-01-31 lies in the future",
        "gpu.toml: [[source]] row 1: id: 's' is another source in another table",
        "cuda.toml: [[toolkit]]: 12.0.0: driver_linux: 525.60.13 is lower than 530.30.02 before it",
        "frameworks/torch.toml: [[build]]: 2.8.0: no CUDA 9.9 in cuda.toml",
        "frameworks/torch.toml: [[companion]]: 2.9.0: no such build",
        "cuda.toml: [[forward_compat]]: 12.1.0: no branch 470 in driver.toml",
        "gpu.toml: [[capability]]: 8.9: no branch 520 in driver.toml",
        "gpu.toml: [[product]]: X: no capability 7.7 in gpu.toml",
        "distro.toml: [[package]]: p: no distribution of f",
    ]


# -- laziness, sources, dates ----------------------------------------------------------------------


def test_a_table_is_read_when_it_is_asked_for() -> None:
    matrix = Matrix.shipped()
    assert matrix.dates() == {}
    assert matrix.source("recalled") is None
    assert query.branch(matrix, "580.95.05") is not None
    assert list(matrix.dates()) == ["driver"]
    assert matrix.source("recalled") is not None
    assert matrix.date("gpu") is not None
    assert list(matrix.dates()) == ["driver", "gpu"]


def test_tables_of_others_can_be_read_plainly(tmp_path: Path) -> None:
    write(tmp_path, "notes", '[[symptom]]\npattern = "x"\n')
    matrix = Matrix.from_dir(tmp_path)
    matrix.load_all()
    assert matrix.table("notes")["symptom"] == [{"pattern": "x"}]
    assert matrix.dates() == {"notes": "2026-01-31"}


def test_an_edited_table_counts_at_once(tmp_path: Path) -> None:
    write(tmp_path, "driver", f'branch = [{{ branch = "1", kind = "lts", {ORIGIN} }}]')
    assert [row.branch for row in Matrix.from_dir(tmp_path).branches] == ["1"]
    write(tmp_path, "driver", f'branch = [{{ branch = "2000", kind = "lts", {ORIGIN} }}]')
    assert [row.branch for row in Matrix.from_dir(tmp_path).branches] == ["2000"]


def test_only_matching_rows_are_built() -> None:
    matrix = Matrix.shipped()
    assert [row.number for row in matrix.find(schema.Xid, number=79)] == [79]
    assert matrix.find(schema.Xid, number=-1) == ()


# -- overlays --------------------------------------------------------------------------------------


def test_an_overlay_replaces_and_adds_rows(tmp_path: Path) -> None:
    base, mine = tmp_path / "base", tmp_path / "mine"
    write(
        base,
        "driver",
        f"""
branch = [
  {{ branch = "570", kind = "production", {ORIGIN} }},
  {{ branch = "580", kind = "lts", {ORIGIN} }},
]
""",
    )
    write(
        mine,
        "driver",
        """
branch = [
  { branch = "575", kind = "developer", source = "t", method = "measured", confidence = "low" },
  { branch = "580", kind = "production", source = "t", method = "measured", confidence = "low" },
]
""",
        head=HEAD.replace("2026-01-31", "2026-03-01"),
        source='source = [{ id = "t", title = "Mine", retrieved = "2026-03-01" }]\n',
    )
    write(mine, "xid", "")
    matrix = Matrix.from_dir(base, overlay=mine)
    assert [(row.branch, row.kind) for row in matrix.branches] == [
        ("570", "production"),
        ("575", "developer"),
        ("580", "production"),
    ]
    assert matrix.dates() == {"driver": "2026-03-01"}
    assert [matrix.source(name) is not None for name in ("s", "t")] == [True, True]
    assert matrix.names() == ("driver", "xid")
    assert matrix.xids == ()


def test_a_damaged_overlay_is_an_error(tmp_path: Path) -> None:
    write(tmp_path, "cuda", "toolkit = [{ cuda = 12.8 }]")
    with pytest.raises(TableError, match="expected text in quotes"):
        Matrix.shipped(overlay=tmp_path).toolkits  # noqa: B018


# -- the compiled form -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shipped tables as a wheel carries them."""
    pytest.importorskip("hatchling")
    path = Path(__file__).parents[2] / "hatch_build.py"
    if not path.is_file():
        pytest.skip("not in a checkout")
    spec = importlib.util.spec_from_file_location("hatch_build", path)
    assert spec is not None
    assert spec.loader is not None
    hook = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hook)
    folder = tmp_path_factory.mktemp("tables")
    hook.compile_tables(data_dir("matrices"), folder)
    return folder


def test_compiled_tables_give_the_same_rows(compiled: Path) -> None:
    plain, fast = Matrix.from_dir(data_dir("matrices")), Matrix(compiled, compiled=True)
    assert plain.names() == fast.names()
    for kind in schema.ROWS:
        if kind is not schema.Framework:
            assert plain.rows(kind) == fast.rows(kind)
    assert plain.framework("torch") == fast.framework("torch")
    assert plain.framework("no-such") is None


def test_an_overlay_over_compiled_tables(compiled: Path, tmp_path: Path) -> None:
    write(tmp_path, "driver", f'branch = [{{ branch = "9999", kind = "lts", {ORIGIN} }}]')
    matrix = Matrix(compiled, compiled=True, overlay=tmp_path)
    assert matrix.branches[-1].branch == "9999"
    assert len(matrix.branches) > 1


def test_compiled_tables_are_preferred(
    compiled: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(loader, "data_dir", lambda name: compiled if name == "tables" else tmp_path)
    assert Matrix.shipped().branches


def test_damaged_compiled_tables(tmp_path: Path) -> None:
    (tmp_path / "cuda.json").write_text("{")
    (tmp_path / "driver.json").write_text(json.dumps({"name": "driver"}))
    matrix = Matrix(tmp_path, compiled=True)
    with pytest.raises(TableError, match=r"cuda\.json: cannot be read"):
        matrix.toolkits  # noqa: B018
    assert matrix.branches == ()
    assert matrix.xids == ()
    assert matrix.dates() == {}


# -- rows ------------------------------------------------------------------------------------------


def xid(**changes: object) -> schema.Xid:
    """A row to play with."""
    values: dict[str, object] = {
        "number": 79,
        "mnemonic": "M",
        "meaning": "gone",
        "severity": "error",
        "action": "reseat",
        "source": "s",
        "method": "published",
        "confidence": "high",
    }
    return schema.Xid(**{**values, **changes})  # type: ignore[arg-type]


def test_rows_compare_by_value() -> None:
    assert xid() == xid()
    assert xid() != xid(number=80)
    other: object = 79
    assert xid() != other
    assert len({xid(), xid(), xid(number=80)}) == 2
    assert dataclasses.replace(xid(), number=80) == xid(number=80)


def test_rows_show_what_they_hold() -> None:
    assert repr(xid()) == (
        "Xid(source='s', method='published', confidence='high', number=79, mnemonic='M',"
        " meaning='gone', severity='error', action='reseat')"
    )


def test_rows_are_immutable() -> None:
    row = xid()
    with pytest.raises(dataclasses.FrozenInstanceError):
        row.number = 80  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        del row.number
    with pytest.raises(AttributeError):
        object.__setattr__(row, "other", 1)


def test_rows_take_their_fields_only() -> None:
    with pytest.raises(TypeError, match="Xid needs mnemonic"):
        schema.Xid(number=79, source="s", method="published", confidence="high")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="Xid has no field colour"):
        xid(colour="red")


@pytest.mark.parametrize(
    "name", sorted(n for n, v in vars(Matrix).items() if isinstance(v, property))
)
def test_each_property_gives_the_rows_of_one_type(name: str) -> None:
    rows = getattr(Matrix.shipped(), name)
    assert isinstance(rows, tuple)
    assert len({type(row) for row in rows}) == 1
