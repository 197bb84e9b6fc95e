"""The single file for machines without pip: what it holds, and that it works by itself."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.cli.runner import environment, run_cli
from tests.meta.building import build

ROOT = Path(__file__).parents[2]
MACHINE = str(ROOT / "tests" / "machines" / "rtx4090-r575-cu130")


def _build(output: Path, *args: str) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "pyz.py"), "-o", str(output), *args],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"wrote {output}, ")


@pytest.fixture(scope="module")
def pyz(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("built") / "envcheck.pyz"
    _build(path)
    return path


def _run(pyz: Path, cache: Path, *args: str, **changes: str) -> subprocess.CompletedProcess[str]:
    """Run the file in a Python that sees no package but the standard library."""
    variables = environment(PYTHONPATH=None)
    variables.update({"XDG_CACHE_HOME": str(cache), **changes})
    return subprocess.run(
        [sys.executable, "-S", str(pyz), *args],
        capture_output=True,
        text=True,
        env=variables,
        cwd="/",
        timeout=60,
        check=False,
    )


def _report(text: str) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(text)
    del report["snapshot"]
    return report


def test_it_needs_no_package_and_says_what_the_installed_one_says(
    pyz: Path, tmp_path: Path
) -> None:
    done = _run(pyz, tmp_path, "doctor", "--json", "--machine", MACHINE)
    assert (done.returncode, done.stderr) == (1, "")
    assert _report(done.stdout) == _report(run_cli("doctor", "--json", "--machine", MACHINE).stdout)


def test_this_machine_is_asked_by_the_payloads_it_unpacks(pyz: Path, tmp_path: Path) -> None:
    done = _run(pyz, tmp_path, "doctor", "--json", "--python", sys.executable)
    report = json.loads(done.stdout)
    assert report["snapshot"]["env"]["python"]["version"] == sys.version.split()[0]
    assert {each["kind"] for each in report["unknown"]} <= {"missing", "newer-than-table"}


@pytest.mark.parametrize(
    "args",
    [
        ("doctor", "--machine", MACHINE, "--format", "text"),
        ("tables", "check"),
        ("plan", "--target", "RTX 5090, driver 570, python 3.12"),
        ("explain", "driver-too-old"),
        ("completion", "bash"),
    ],
)
def test_colour_tables_plans_and_completion_are_in_it(
    pyz: Path, tmp_path: Path, args: tuple[str, ...]
) -> None:
    ours = run_cli(*args, env=environment(NO_COLOR=None, FORCE_COLOR="1"))
    done = _run(pyz, tmp_path, *args, FORCE_COLOR="1", NO_COLOR="")
    assert (done.returncode, done.stdout) == (ours.returncode, ours.stdout)


def test_files_that_reproduce_a_plan(pyz: Path, tmp_path: Path) -> None:
    """The Dockerfile's folder has envcheck's own wheel, made from what is unpacked."""
    target = ("--target", "RTX 5090, driver 570, python 3.12, ubuntu 24.04")
    lock = str(tmp_path / "envcheck.lock")
    assert _run(pyz, tmp_path, "plan", *target, "-o", lock).returncode == 0
    out = tmp_path / "image"
    done = _run(pyz, tmp_path, "emit", "dockerfile", "--lock", lock, "-o", str(out))
    assert (done.returncode, done.stderr) == (0, "")
    (wheel,) = out.glob("envcheck-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert "envcheck/_data/tables/cuda.json" in archive.namelist()


def test_it_unpacks_once_for_this_user_only(pyz: Path, tmp_path: Path) -> None:
    assert _run(pyz, tmp_path, "--version").returncode == 0
    folder = tmp_path / "envcheck"
    assert folder.stat().st_mode & 0o777 == 0o700
    (kept,) = folder.iterdir()
    mark = kept / "envcheck" / "__init__.py"
    before = mark.stat().st_mtime_ns
    assert _run(pyz, tmp_path, "--version").returncode == 0
    assert [kept] == list(folder.iterdir())
    assert mark.stat().st_mtime_ns == before


def test_a_cache_that_others_can_write_is_not_used(pyz: Path, tmp_path: Path) -> None:
    folder = tmp_path / "envcheck"
    folder.mkdir()
    folder.chmod(0o777)
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    done = _run(pyz, tmp_path, "--version", TMPDIR=str(temporary))
    assert (done.returncode, done.stderr) == (0, "")
    assert [*folder.iterdir(), *temporary.iterdir()] == []


def test_no_cache_at_all(pyz: Path, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    done = _run(pyz, file, "--version", TMPDIR=str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    assert list(tmp_path.iterdir()) == [file]


def test_an_older_python_is_told(pyz: Path) -> None:
    """Every Python gets as far as that line."""
    source = (ROOT / "tools" / "pyz_main.py").read_text(encoding="utf-8")
    ast.parse(source, feature_version=(3, 4))
    script = (
        "import runpy, sys; sys.version_info = (3, 8, 18); "
        f"runpy.run_path({str(pyz)!r}, run_name='__main__')"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2
    assert done.stderr == (
        "envcheck: needs Python 3.10 or newer, this is 3.8: start it with a newer one, and name "
        "the environment to judge with --python\n"
    )


def test_nothing_in_it_is_compiled_and_the_same_checkout_gives_the_same_bytes(
    pyz: Path, tmp_path: Path
) -> None:
    with zipfile.ZipFile(pyz) as archive:
        names = archive.namelist()
        assert {each.date_time[0] for each in archive.infolist()} == {1980}
    assert [name for name in names if name.endswith((".so", ".pyc", ".pyd"))] == []
    tops = {name.split("/")[1] for name in names if name.startswith("site/")}
    packages = {top for top in tops if not top.endswith((".dist-info", ".libs"))}
    assert {"envcheck", "distro", "jinja2", "packaging", "pynvml.py", "rich", "tomli"} <= packages
    # Of one wheel, since the checkout may be worked on meanwhile.
    build(ROOT, tmp_path, "wheel")
    (wheel,) = tmp_path.glob("*.whl")
    one, again = tmp_path / "one.pyz", tmp_path / "again.pyz"
    _build(one, "--wheel", str(wheel))
    _build(again, "--wheel", str(wheel))
    assert again.read_bytes() == one.read_bytes()
    assert os.access(again, os.X_OK)
