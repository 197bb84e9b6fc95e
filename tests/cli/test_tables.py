"""`envcheck tables`: listed, shown, checked, and compared with saved pages or an index."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from envcheck.matrix.loader import Matrix
from envcheck.paths import data_dir
from tests.cli.runner import environment, run_cli
from tests.refresh.serving import Index, served, wheel

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PAGES = Path(__file__).parents[1] / "refresh" / "pages"

NCCL = """\
# Our own.

schema = 1
name = "nccl"
date = "2026-01-31"

source = [
  { id = "ours", title = "Our notes", retrieved = "2026-01-31" },
]

release = [
  { nccl = "99.1.2", cuda_majors = ["13"], source = "ours", method = "published", \
confidence = "high" },
]
"""


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A folder of a user's own tables, with one row."""
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "nccl.toml").write_text(NCCL, encoding="utf-8")
    return folder


def printed(*args: str) -> Any:
    """What a command prints as JSON."""
    done = run_cli("tables", *args, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


# -- list and show ---------------------------------------------------------------------------------


def test_list() -> None:
    matrix = Matrix.shipped()
    found = printed("list")
    assert found["schema_version"] == "1"
    by_name = {each["name"]: each for each in found["tables"]}
    assert list(by_name) == [name.rpartition("/")[2] for name in matrix.names()]
    torch = by_name["torch"]
    assert torch["sections"] == {
        "build": len(matrix.torch_builds),
        "companion": len(matrix.companions),
    }
    assert torch["rows"] == len(matrix.torch_builds) + len(matrix.companions)
    assert torch["newest"] == matrix.torch_builds[-1].version
    assert torch["date"] == matrix.date("frameworks/torch")
    assert by_name["cudnn"]["newest"] == matrix.cudnn_releases[-1].cudnn
    assert by_name["xid"]["newest"] is None
    lines = run_cli("tables", "list").stdout.splitlines()
    assert lines[0].split() == ["table", "rows", "newest", "date"]
    assert [line.split()[0] for line in lines[1:]] == list(by_name)
    row = next(line.split() for line in lines if line.startswith("torch "))
    assert row == ["torch", str(torch["rows"]), torch["newest"], torch["date"]]


@pytest.mark.parametrize("name", ["torch", "frameworks/torch"])
def test_show_torch_as_json(name: str) -> None:
    matrix = Matrix.shipped()
    found = printed("show", name)
    assert (found["name"], found["date"]) == ("torch", matrix.date("frameworks/torch"))
    assert len(found["rows"]) == len(matrix.torch_builds)
    keys = {(row["version"], row["platform"], row["variant"]) for row in found["rows"]}
    assert len(keys) == len(found["rows"])
    (row,) = [
        row
        for row in found["rows"]
        if (row["version"], row["platform"], row["variant"]) == ("2.8.0", "linux_x86_64", "cu128")
    ]
    source = matrix.source("torch-wheels")
    assert source is not None
    assert {**row, "git_version": None} == {
        "version": "2.8.0",
        "platform": "linux_x86_64",
        "variant": "cu128",
        "cuda": "12.8",
        "index_default": True,
        "cudnn": "9.10.2.21",
        "nccl": "2.27.3",
        "triton": "3.4.0",
        "python": ["cp39", "cp310", "cp311", "cp312", "cp313", "cp313t"],
        "arches": ["sm_70", "sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120"],
        "glibc": "2.28",
        "git_version": None,
        "method": "measured",
        "confidence": "high",
        "note": None,
        "sources": [
            {
                "id": "torch-wheels",
                "title": source.title,
                "url": None,
                "retrieved": source.retrieved,
            }
        ],
    }
    assert next(row for row in found["rows"] if row["variant"] == "cpu")["cudnn"] is None
    assert len(found["sections"]["companion"]) == len(matrix.companions)


@pytest.mark.parametrize("name", [name.rpartition("/")[2] for name in Matrix.shipped().names()])
def test_show_any_table(name: str) -> None:
    found = printed("show", name)
    assert found["rows"]
    fields = {tuple(row) for row in found["rows"]}
    assert len(fields) == 1  # every row has every field
    assert all(row["sources"][0]["title"] for row in found["rows"])
    done = run_cli("tables", "show", name)
    assert (done.returncode, done.stderr) == (0, "")
    head, _, section = done.stdout.partition("\n\n")
    assert head == f"{found['name']}, {found['date']}"
    assert section.startswith(f"{found['section']} (") or f"\n{found['section']} (" in section


def test_show_as_text_has_a_row_a_line() -> None:
    lines = run_cli("tables", "show", "torch").stdout.splitlines()
    (row,) = [line for line in lines if line.startswith("2.8.0 ") and " cu128 " in line]
    assert row.split()[1:9] == [
        *("linux_x86_64", "cu128", "12.8", "yes", "9.10.2.21", "2.27.3", "3.4.0"),
        "cp39,cp310,cp311,cp312,cp313,cp313t",
    ]
    heads = next(line for line in lines if line.startswith("version "))
    assert heads.index("variant") == row.index("cu128")
    (companion,) = [line for line in lines if line.split()[:2] == ["2.8.0", "0.23.0"]]
    assert companion.split()[2] == "2.8.0"


def test_your_own_rows_are_shown_among_the_others(mine: Path) -> None:
    found = printed("show", "nccl", "--tables", str(mine))
    assert found["rows"][-1]["nccl"] == "99.1.2"
    assert found["rows"][-1]["sources"][0]["title"] == "Our notes"
    assert found["rows"][-1]["date"] is None
    assert len(found["rows"]) == len(Matrix.shipped().nccl_releases) + 1
    listed = printed("list", "--tables", str(mine))["tables"]
    assert {each["name"]: each["newest"] for each in listed}["nccl"] == "99.1.2"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("show", "torhc"), "no table 'torhc': did you mean 'torch'?"),
        (("show", "zzzz"), "no table 'zzzz': see 'envcheck tables list'"),
        (("lst",), "no action 'lst': did you mean 'list'?"),
        ((), "no action given: choose from list, show, check, refresh"),
        (("refresh", "gpu"), "gpu does not follow from wheels: choose from cudnn, jax, "),
        (("refresh", "torch", "--wriet"), "unexpected argument '--wriet': did you mean '--write'?"),
        (("refresh", "nccl", "--from", "/nowhere"), "--from /nowhere: no such folder"),
        (
            ("refresh", "nccl", "--from", "/", "--index-url", "https://x.example"),
            "--from reads saved pages only",
        ),
        (("check", "--dir", "/nowhere"), "--dir /nowhere: no such folder"),
        (("check", "--dir", "/", "--tables", "/"), "--dir and --tables contradict each other"),
        (("list", "--tables", "/nowhere"), "--tables /nowhere: no such folder"),
    ],
)
def test_a_mistake_ends_with_2_and_says_what_was_meant(args: tuple[str, ...], message: str) -> None:
    done = run_cli("tables", *args)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[0].startswith(f"envcheck: {message}")


@pytest.mark.parametrize("action", ["", "list", "show", "check", "refresh"])
def test_help_is_a_manual_page(action: str) -> None:
    done = run_cli("tables", *action.split(), "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert "examples:\n" in done.stdout
    assert "exit status:\n" in done.stdout
    assert [line for line in done.stdout.splitlines() if len(line) > 80] == []


# -- check -----------------------------------------------------------------------------------------


def test_check_of_what_is_shipped() -> None:
    done = run_cli("tables", "check")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith(" rows: nothing is wrong with them\n")
    again = run_cli("tables", "check", "--dir", str(data_dir("matrices")))
    assert (again.returncode, again.stdout, again.stderr) == (0, done.stdout, "")


@pytest.mark.parametrize("flag", ["--dir", "--tables"])
def test_check_of_a_part_refers_to_the_shipped_rest(tmp_path: Path, flag: str) -> None:
    shutil.copytree(data_dir("matrices") / "frameworks", tmp_path / "frameworks")
    done = run_cli("tables", "check", flag, str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    path = tmp_path / "frameworks" / "torch.toml"
    text = path.read_text(encoding="utf-8").replace('cuda = "12.8"', 'cuda = "12.99"')
    path.write_text(text, encoding="utf-8")
    done = run_cli("tables", "check", flag, str(tmp_path))
    assert done.returncode == 4
    assert "frameworks/torch.toml: [[build]]: 2.8.0: no CUDA 12.99 in cuda.toml" in done.stderr


def test_check_finds_everything_at_once(mine: Path) -> None:
    text = NCCL.replace('["13"]', '"13"').replace('"high"', '"sure"')
    (mine / "nccl.toml").write_text(text, encoding="utf-8")
    (mine / "xid.toml").write_text('schema = 1\nname = "xid"\ndate = "2026-0', encoding="utf-8")
    shutil.copy(data_dir("matrices") / "driver.toml", mine)
    path = mine / "driver.toml"
    lines = path.read_text(encoding="utf-8").splitlines()
    at = next(number for number, line in enumerate(lines) if 'branch = "' in line)
    lines[at], lines[at + 1] = lines[at + 1], lines[at]
    path.write_text("\n".join(lines), encoding="utf-8")
    done = run_cli("tables", "check", "--dir", str(mine))
    assert (done.returncode, done.stdout) == (4, "")
    found = done.stderr.removeprefix("envcheck: ").splitlines()
    place = "nccl.toml: [[release]] row 1: "
    assert [line.strip() for line in found if "nccl" in line] == [
        f"{place}cuda_majors: expected a list of texts, found '13'",
        f"{place}confidence: 'sure' is not one of high, medium, low",
    ]
    assert any(line.strip().startswith("xid.toml: not valid TOML: ") for line in found)
    assert any(
        line.strip() == "driver.toml: [[branch]] row 2: branch: out of order" for line in found
    )
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "nccl.toml: schema: expected 1, found None"),
        (b"\xff\xfe", "nccl.toml: not valid TOML: "),
        (b"x = " + b"[" * 100_000, "nccl.toml: not valid TOML: nested too deeply"),
        (b"x = " + b"9" * 10_000, "nccl.toml: not valid TOML: "),
        (NCCL.encode()[:-60], "nccl.toml: not valid TOML: "),
        (
            NCCL.replace('"99.1.2"', "99.1").encode(),
            "nccl.toml: [[release]] row 1: nccl: expected text in quotes, found 99.1",
        ),
        (
            NCCL.replace('id = "ours"', "id = []").encode(),
            "nccl.toml: [[source]] row 1: id: expected text in quotes, found []",
        ),
        (
            NCCL.replace('"Our notes"', "[" + '"x", ' * 5_000 + "]").encode(),
            "nccl.toml: [[source]] row 1: title: expected text in quotes, found ['x', ",
        ),
        (b"#" * (17 << 20), "nccl.toml: has 17825792 bytes, and no table is larger than 16777216"),
    ],
)
@pytest.mark.parametrize(
    "args", [("check", "--dir"), ("check", "--tables"), ("show", "nccl", "--tables")]
)
def test_a_damaged_table_ends_with_4_and_its_place(
    mine: Path, args: tuple[str, ...], content: bytes, message: str
) -> None:
    (mine / "nccl.toml").write_bytes(content)
    done = run_cli("tables", *args, str(mine))
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr.startswith(f"envcheck: {message}")
    assert all(len(line) < 300 for line in done.stderr.splitlines())
    assert "Traceback" not in done.stderr


def test_a_damaged_table_is_json_where_json_was_asked_for(mine: Path) -> None:
    (mine / "nccl.toml").write_text("schema = [", encoding="utf-8")
    done = run_cli("tables", "list", "--tables", str(mine), "--json")
    assert done.returncode == json.loads(done.stdout)["error"]["exit_code"] == 4


def test_what_is_no_file_is_no_table(mine: Path) -> None:
    (mine / "nccl.toml").unlink()
    (mine / "nccl.toml").mkdir()
    done = run_cli("tables", "check", "--dir", str(mine))
    assert (done.returncode, done.stderr) == (4, "envcheck: nccl.toml: is no ordinary file\n")
    (mine / "nccl.toml").rmdir()
    done = run_cli("tables", "check", "--dir", str(mine))
    assert (done.returncode, done.stderr) == (4, f"envcheck: {mine}: holds no table\n")
    (mine / "nccl.toml").symlink_to(mine / "nowhere")
    done = run_cli("tables", "check", "--dir", str(mine))
    assert done.returncode == 4
    assert done.stderr.startswith("envcheck: nccl.toml: cannot be read: ")


# -- refresh ---------------------------------------------------------------------------------------


def test_saved_pages_of_listed_releases_give_no_difference() -> None:
    done = run_cli("tables", "refresh", "torch", "--from", str(PAGES), "--release", "2.8.0")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "frameworks/torch: 3 rows derived, 0 to be changed or added\n"


def test_a_new_release_goes_into_a_folder_of_your_own(tmp_path: Path) -> None:
    pages, mine = tmp_path / "pages", tmp_path / "mine"
    (pages / "nvidia-nccl-cu13").mkdir(parents=True)
    mine.mkdir()
    name = "nvidia_nccl_cu13-99.0.1-py3-none-manylinux_2_18_x86_64.whl"
    page = {"files": [{"filename": name, "url": name}]}
    (pages / "nvidia-nccl-cu13" / "index.json").write_text(json.dumps(page), encoding="utf-8")
    args = ("tables", "refresh", "nccl", "--from", str(pages), "--release", "99.0.1")
    done = run_cli(*args, "--tables", str(mine))
    today = datetime.now(timezone.utc).date().isoformat()
    expected = f"""\
schema = 1
name = "nccl"
date = "{today}"

source = [
  {{ id = "nccl-wheels", title = "The nvidia-nccl Python packages", retrieved = "{today}" }},
]

release = [
  {{ nccl = "99.0.1", cuda_majors = ["13"], source = "nccl-wheels", method = "published", \
confidence = "high" }},
]
"""
    added = [line for line in done.stdout.splitlines() if line.startswith("+")]
    assert done.returncode == 0
    assert added == [
        "+++ nccl.toml (refreshed)",
        *(f"+{line}" for line in expected.splitlines()),
    ]
    assert "1 to be changed or added" in done.stderr
    assert not (mine / "nccl.toml").exists()  # shown, not written
    done = run_cli(*args, "--tables", str(mine), "--write")
    assert done.returncode == 0
    assert f"wrote {mine / 'nccl.toml'}" in done.stderr
    assert (mine / "nccl.toml").read_text(encoding="utf-8") == expected
    assert run_cli("tables", "check", "--tables", str(mine)).returncode == 0
    assert printed("show", "nccl", "--tables", str(mine))["rows"][-1]["nccl"] == "99.0.1"
    done = run_cli(*args, "--tables", str(mine), "--write")
    assert (done.returncode, done.stdout) == (0, "")


def test_your_own_file_keeps_its_rows_and_its_head(mine: Path, tmp_path: Path) -> None:
    pages = tmp_path / "pages" / "nvidia-nccl-cu13"
    pages.mkdir(parents=True)
    name = "nvidia_nccl_cu13-98.0.1-py3-none-manylinux_2_18_x86_64.whl"
    page = {"files": [{"filename": name, "url": name}]}
    (pages / "index.json").write_text(json.dumps(page), encoding="utf-8")
    args = ("tables", "refresh", "nccl", "--from", str(pages.parent), "--tables", str(mine))
    done = run_cli(*args, "--release", "98.0.1", "--write")
    assert done.returncode == 0, done.stderr
    text = (mine / "nccl.toml").read_text(encoding="utf-8")
    assert text.startswith("# Our own.\n\nschema = 1\n")
    rows = tomllib.loads(text)["release"]
    assert [row["nccl"] for row in rows] == ["98.0.1", "99.1.2"]
    (mine / "nccl.toml").write_text(NCCL.replace("  { nccl", "  # why\n  { nccl"), encoding="utf-8")
    done = run_cli(*args)
    assert (done.returncode, done.stdout) == (2, "")
    assert "nccl.toml: line 12: a comment below the head would be lost" in done.stderr


def test_a_measured_row_is_defended_and_a_vanished_one_listed(tmp_path: Path) -> None:
    """One wheel more for an interpreter than the measured row names, and one release less."""
    pages = tmp_path / "pages"
    shutil.copytree(PAGES, pages)
    page = json.loads((pages / "torch" / "index.json").read_text(encoding="utf-8"))
    page["files"] = [each for each in page["files"] if "-2.15.0-" not in each["filename"]]
    name = "torch-2.8.0-cp314-cp314-manylinux_2_28_x86_64.whl"
    page["files"].append({"filename": name, "url": name})
    (pages / "torch" / "index.json").write_text(json.dumps(page), encoding="utf-8")
    # The middle interpreter, whose wheel is read, is another one now.
    before = "torch-2.8.0-cp311-cp311-manylinux_2_28_x86_64.whl"
    after = "torch-2.8.0-cp312-cp312-manylinux_2_28_x86_64.whl"
    shutil.copy(pages / "torch" / f"{before}.metadata", pages / "torch" / f"{after}.metadata")
    shutil.copytree(pages / "torch" / before, pages / "torch" / after)
    args = ("--from", str(pages), "--release", "2.8.0", "--release", "2.15.0", "--write")
    done = run_cli("tables", "refresh", "torch", *args, "--tables", str(tmp_path))
    assert (done.returncode, done.stdout) == (1, "")
    lines = done.stderr.splitlines()
    assert lines[0] == (
        "contradicted, left as measured: build 2.8.0 linux_x86_64 cu128: python: the table says"
        " cp39 cp310 cp311 cp312 cp313 cp313t,"
        " the wheels say cp39 cp310 cp311 cp312 cp313 cp314 cp313t"
    )
    assert "no longer on the index, left as it is: build 2.15.0 linux_x86_64 cu132" in lines
    assert not (tmp_path / "frameworks" / "torch.toml").exists()


def test_a_release_that_is_not_there_is_said_to_be(tmp_path: Path) -> None:
    args = ("--from", str(PAGES), "--release", "9.9.9", "--tables", str(tmp_path))
    done = run_cli("tables", "refresh", "nccl", *args)
    assert (done.returncode, done.stdout) == (0, "")
    assert "nccl: no release 9.9.9 on the index, or one older than the table" in done.stderr


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    """A package index with one new torch."""
    folder = tmp_path / "index"
    name = "torch-77.0.0-cp313-cp313-manylinux_2_28_x86_64.whl"
    metadata = (
        "Metadata-Version: 2.1\nName: torch\nVersion: 77.0.0\nRequires-Python: >=3.11\n"
        'Requires-Dist: nvidia-cudnn-cu13==9.28.1.4; platform_system == "Linux"\n'
        'Requires-Dist: nvidia-nccl-cu13==2.32.3; platform_system == "Linux"\n'
        "Requires-Dist: triton==77.1; platform_machine == 'x86_64'\n"
    )
    wheel(
        folder / "torch" / name,
        {
            "torch/version.py": "cuda: str = '13.2'\ngit_version = 'abcdef'\nhip = None\n",
            "torch/lib/libtorch_python.so": b"\x7fELF" + bytes(5000) + b"sm_90 sm_100 sm_120 sm_80",
            "torch-77.0.0.dist-info/METADATA": metadata,
        },
    )
    vision = "torchvision-77.1.0-cp313-cp313-manylinux_2_28_x86_64.whl"
    wheel(
        folder / "torchvision" / vision,
        {"torchvision-77.1.0.dist-info/METADATA": "Requires-Dist: torch (==77.0.0)\n"},
    )
    with served(folder) as running:
        running.page("torch", name)
        running.page("torchvision", vision)
        running.page("torchaudio")
        yield running


def test_an_index_is_read_through_pips_configuration(index: Index, tmp_path: Path) -> None:
    mine, cache = tmp_path / "mine", tmp_path / "cache"
    mine.mkdir()
    variables = environment(
        PIP_CONFIG_FILE="/dev/null",
        PIP_INDEX_URL=index.url,
        PIP_CERT=None,
        http_proxy=None,
        HTTP_PROXY=None,
        XDG_CACHE_HOME=str(cache),
    )
    args = ("tables", "refresh", "torch", "--release", "77.0.0", "--tables", str(mine), "--write")
    done = run_cli(*args, "--arches", env=variables)
    assert done.returncode == 0, done.stderr
    table = tomllib.loads((mine / "frameworks" / "torch.toml").read_text(encoding="utf-8"))
    today = datetime.now(timezone.utc).date().isoformat()
    assert table["build"] == [
        {
            "version": "77.0.0",
            "platform": "linux_x86_64",
            "variant": "cu132",
            "cuda": "13.2",
            "index_default": True,
            "cudnn": "9.28.1.4",
            "nccl": "2.32.3",
            "triton": "77.1",
            "python": ["cp313"],
            "arches": ["sm_80", "sm_90", "sm_100", "sm_120"],
            "glibc": "2.28",
            "git_version": "abcdef",
            "source": "torch-wheels",
            "method": "measured",
            "confidence": "high",
        }
    ]
    assert [(row["torch"], row["torchvision"]) for row in table["companion"]] == [
        ("77.0.0", "77.1.0")
    ]
    assert table["date"] == today
    assert [each.path for each in index.asked if each.part is None] == [
        "/simple/torch/",
        "/simple/torchvision/",
        "/simple/torchaudio/",
    ]
    assert f", {len(index.asked)} requests" in done.stderr
    assert run_cli("tables", "check", "--tables", str(mine)).returncode == 0
    # Nothing that was written says where it came from.
    written = [path for path in (*mine.rglob("*"), *cache.rglob("*")) if path.is_file()]
    assert len(written) > 5
    assert [path for path in written if b"127.0.0.1" in path.read_bytes()] == []
    # What was kept is not asked for again, and suffices without any index.
    asked = len(index.asked)
    done = run_cli(*args[:-1], env=variables)
    assert (done.returncode, done.stdout) == (0, "")
    assert len(index.asked) == asked + 3
    (saved,) = (cache / "envcheck").iterdir()
    done = run_cli(*args[:-1], "--from", str(saved))
    assert (done.returncode, done.stdout) == (0, "")


def test_an_index_that_does_not_answer_ends_with_3(index: Index, tmp_path: Path) -> None:
    index.failures = [403]
    flags = ("--index-url", index.url, "--cache", str(tmp_path / "cache"))
    done = run_cli("tables", "refresh", "torch", *flags, env=environment(http_proxy=None))
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == "envcheck: the package index answers 403 for torch\n"


def test_an_installed_envcheck_does_not_change_its_own_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from envcheck.cli import main
    from envcheck.commands import tables_refresh

    (tmp_path / "nccl.json").write_text("{}", encoding="utf-8")
    monkeypatch.setattr(tables_refresh, "data_dir", lambda _name: tmp_path)
    assert main(["tables", "refresh", "nccl", "--from", str(PAGES), "--write"]) == 2
    assert "give --tables DIR" in capsys.readouterr().err
