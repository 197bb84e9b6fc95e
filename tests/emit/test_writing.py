"""Files are written as a whole or not at all, and envcheck's own wheel is one that pip takes."""

from __future__ import annotations

import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

import envcheck
from envcheck.commands.own_wheel import own_wheel
from envcheck.commands.write_files import write_files
from envcheck.errors import UsageError
from tests.cli.runner import environment


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_folders_are_made_and_equal_files_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "place"
    files = {"a": b"1", "below/b": b"2"}
    assert write_files(folder, files) == {"a", "below/b"}
    assert contents(folder) == files
    before = (folder / "a").stat().st_mtime_ns
    assert write_files(folder, {**files, "c": b"3"}) == {"c"}
    assert (folder / "a").stat().st_mtime_ns == before


def test_other_content_is_kept_unless_forced(tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(b"mine")
    with pytest.raises(UsageError, match=r"has other content in b: --force overwrites it$"):
        write_files(tmp_path, {"a": b"1", "b": b"2"})
    assert contents(tmp_path) == {"b": b"mine"}
    assert write_files(tmp_path, {"a": b"1", "b": b"2"}, force=True) == {"a", "b"}
    assert contents(tmp_path) == {"a": b"1", "b": b"2"}


@pytest.mark.parametrize("kind", ["folder", "link"])
def test_what_is_no_file_is_not_replaced(tmp_path: Path, kind: str) -> None:
    if kind == "folder":
        (tmp_path / "b").mkdir()
    else:
        (tmp_path / "b").symlink_to("/etc/hostname")
    with pytest.raises(UsageError, match="b: is no ordinary file"):
        write_files(tmp_path, {"a": b"1", "b": b"2"}, force=True)
    assert contents(tmp_path).keys() <= {"b"}


def test_a_file_where_a_folder_must_be_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"")
    with pytest.raises(UsageError, match="cannot write"):
        write_files(tmp_path, {"a": b"1", "new/b": b"2", "x/c": b"3"})
    assert contents(tmp_path) == {"x": b""}
    assert not (tmp_path / "new").exists()


def test_what_fails_half_way_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_bytes(b"old")
    replace = Path.replace

    def failing(self: Path, target: Path) -> Path:
        if target.name == "c":
            raise OSError(28, "No space left on device", str(target))
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", failing)
    with pytest.raises(UsageError, match="No space left on device"):
        write_files(tmp_path, {"a": b"new", "b": b"1", "c": b"2", "d/e": b"3"}, force=True)
    monkeypatch.undo()
    assert contents(tmp_path) == {"a": b"old"}
    assert not (tmp_path / "d").exists()


def test_the_own_wheel_is_the_same_twice_and_holds_what_runs() -> None:
    name, wheel = own_wheel()
    assert name == f"envcheck-{envcheck.__version__}-py3-none-any.whl"
    assert own_wheel() == (name, wheel)


def test_the_own_wheel_installs_and_runs(tmp_path: Path) -> None:
    name, wheel = own_wheel()
    place = tmp_path / name
    place.write_bytes(wheel)
    with zipfile.ZipFile(place) as archive:
        assert archive.testzip() is None
        names = set(archive.namelist())
    assert {"envcheck/_data/tables/cuda.json", "envcheck/_data/matrices/cuda.toml"} <= names
    assert "envcheck/_data/containers/templates/runtime.Dockerfile.j2" in names
    assert not [each for each in names if "__pycache__" in each]
    fresh = tmp_path / "venv"
    venv.create(fresh, with_pip=False, symlinks=True)
    python = str(fresh / "bin" / "python")
    clean = environment(PYTHONPATH=None, PIP_CONFIG_FILE="/dev/null", PIP_FIND_LINKS=None)
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "--python", python, "install", "--no-deps"),
            *("--no-index", "--disable-pip-version-check", str(place)),
        ],
        check=True,
        capture_output=True,
        timeout=60,
        env=clean,
    )
    (site,) = (fresh / "lib").glob("python3*/site-packages")
    lent = [each for each in sys.path if each.endswith("site-packages")]
    (site / "lent.pth").write_text("\n".join(lent) + "\n", encoding="utf-8")
    done = subprocess.run(
        [str(fresh / "bin" / "envcheck"), "tables", "check"],
        capture_output=True,
        text=True,
        timeout=60,
        env=clean,
        cwd=tmp_path,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    # A wheel of the installed copy is the same again: images can be emitted from within images.
    script = (
        "import hashlib, envcheck.commands.own_wheel as w;"
        " print(hashlib.sha256(w.own_wheel()[1]).hexdigest())"
    )
    twice = {
        subprocess.run(
            [python, "-c", script],
            capture_output=True,
            text=True,
            timeout=60,
            env=clean,
            cwd=tmp_path,
            check=True,
        ).stdout
        for _ in range(2)
    }
    assert len(twice) == 1
