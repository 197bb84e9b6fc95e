"""What is built: a wheel and an sdist that hold everything, and a wheel that works by itself."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from tests.cli.runner import environment
from tests.meta.building import build

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The wheel and the sdist of this checkout."""
    out = tmp_path_factory.mktemp("built")
    build(ROOT, out, "wheel", "sdist")
    (wheel,) = out.glob("*.whl")
    (sdist,) = out.glob("*.tar.gz")
    return wheel, sdist


def _contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_the_wheel_holds_the_code_the_data_and_nothing_else(built: tuple[Path, Path]) -> None:
    names = set(_contents(built[0]))
    code = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "envcheck").rglob("*")
        if path.suffix in {".py", ".json", ".typed"} and "_data" not in path.parts
    }
    assert code <= names
    tables = [path.relative_to(ROOT / "matrices") for path in (ROOT / "matrices").rglob("*.toml")]
    assert tables
    for table in tables:
        assert f"envcheck/_data/matrices/{table.as_posix()}" in names
        assert f"envcheck/_data/tables/{table.with_suffix('.json').as_posix()}" in names
    for folder in ("containers", "ansible"):
        for path in (ROOT / folder).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                assert f"envcheck/_data/{path.relative_to(ROOT).as_posix()}" in names
    tops = {name.partition("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"envcheck"}
    assert [
        name for name in names if "_data/matrices/refresh" in name or name.endswith(".pyc")
    ] == []
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)


def test_the_sdist_builds_the_same_wheel(built: tuple[Path, Path], tmp_path: Path) -> None:
    wheel, sdist = built
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (unpacked,) = tmp_path.iterdir()
    build(unpacked, tmp_path / "out", "wheel")
    (again,) = (tmp_path / "out").glob("*.whl")
    ours, theirs = _contents(wheel), _contents(again)
    assert set(theirs) == set(ours)
    assert [name for name in ours if ours[name] != theirs[name]] == []


def test_the_wheel_works_in_a_fresh_environment(built: tuple[Path, Path], tmp_path: Path) -> None:
    """Its own files are used, not the checkout's; only its dependencies are lent from this one."""
    fresh = tmp_path / "venv"
    venv.create(fresh, symlinks=True)
    (site,) = (fresh / "lib").glob("python3*/site-packages")
    with zipfile.ZipFile(built[0]) as archive:
        archive.extractall(site)
    lent = [each for each in sys.path if each.endswith("site-packages")]
    (site / "lent.pth").write_text("\n".join(lent) + "\n", encoding="utf-8")
    python = fresh / "bin" / "python"
    script = (
        "import envcheck, envcheck.paths as p, sys; from envcheck.cli import main;"
        " print(envcheck.__file__, p.data_dir('tables'), p.data_dir('matrices'), sep='\\n');"
        " sys.stdout.flush(); sys.exit(main(['doctor', '--json', '--fail-on', 'never']))"
    )
    done = subprocess.run(
        [str(python), "-c", script],
        capture_output=True,
        text=True,
        env=environment(PYTHONPATH=None),
        cwd=tmp_path,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    package, tables, matrices, report = done.stdout.split("\n", 3)
    assert package == str(site / "envcheck" / "__init__.py")
    assert tables == str(site / "envcheck" / "_data" / "tables")
    assert matrices == str(site / "envcheck" / "_data" / "matrices")
    assert json.loads(report)["schema_version"] == "1"


def test_the_compiled_tables_say_what_the_toml_says(built: tuple[Path, Path]) -> None:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    contents = _contents(built[0])
    compared = 0
    for name, data in contents.items():
        if name.startswith("envcheck/_data/tables/"):
            toml = name.replace("/tables/", "/matrices/").removesuffix(".json") + ".toml"
            assert json.loads(data) == tomllib.loads(contents[toml].decode()), name
            compared += 1
    assert compared == len(list((ROOT / "matrices").rglob("*.toml")))
