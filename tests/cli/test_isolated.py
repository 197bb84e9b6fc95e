"""envcheck in an environment of its own, as pipx and uvx install it, judges the user's."""

from __future__ import annotations

import json
import os
import subprocess
import sysconfig
import venv
from pathlib import Path

import pytest

import envcheck
from tests.cli.runner import environment

TOOL = Path(envcheck.__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def isolated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Interpreter of an environment that holds envcheck alone; its code is lent from here."""
    return _environment(tmp_path_factory.mktemp("tool") / "venv", "envcheck", "rich")


@pytest.fixture(scope="module")
def users(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Interpreter of an environment with another package."""
    return _environment(tmp_path_factory.mktemp("user") / "venv", "triton")


def _environment(folder: Path, *packages: str) -> Path:
    venv.create(folder, symlinks=True)
    (site,) = (folder / "lib").glob("python3*/site-packages")
    for name in packages:
        info = site / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    if "envcheck" in packages:
        lent = dict.fromkeys((str(TOOL), sysconfig.get_paths()["purelib"]))
        (site / "lent.pth").write_text("".join(f"{each}\n" for each in lent))
    return folder / "bin" / "python"


def _judged(python: Path, *args: str, **changes: str | None) -> str:
    """Folder of the environment that a doctor in this interpreter judges."""
    done = subprocess.run(
        [str(python), "-m", "envcheck", "doctor", "--json", *args],
        capture_output=True,
        text=True,
        env=environment(
            **{"VIRTUAL_ENV": None, "CONDA_PREFIX": None, "PYTHONPATH": None, **changes}
        ),
        cwd="/",
        timeout=60,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    prefix: str = json.loads(done.stdout)["snapshot"]["env"]["python"]["prefix"]
    return prefix


def _path(*pythons: Path) -> str:
    return os.pathsep.join(str(python.parent) for python in pythons)


def test_the_active_environment(isolated: Path, users: Path) -> None:
    """`pipx run` and an installed tool: started by path, the user's environment is active."""
    active = {"VIRTUAL_ENV": str(users.parents[1]), "PATH": _path(users)}
    assert _judged(isolated, **active) == str(users.parents[1])


def test_the_tools_environment_in_front_of_path(isolated: Path, users: Path) -> None:
    """`uvx` puts it there."""
    assert _judged(isolated, PATH=_path(isolated, users)) == str(users.parents[1])


def test_an_environment_with_more_than_envcheck_is_the_users(users: Path, tmp_path: Path) -> None:
    shared = _environment(tmp_path / "shared", "envcheck", "numpy")
    assert _judged(shared, PATH=_path(shared, users)) == str(shared.parents[1])


def test_the_tools_own_when_there_is_no_other(isolated: Path) -> None:
    assert _judged(isolated, PATH=_path(isolated)) == str(isolated.parents[1])


def test_a_named_one(isolated: Path, users: Path) -> None:
    found = _judged(isolated, "--python", str(users), PATH=_path(isolated))
    assert found == str(users.parents[1])
