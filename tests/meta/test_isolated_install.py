"""The built wheel, installed as pip, pipx and uv do it, judges the environment of its user."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.cli.runner import environment
from tests.environment import sites
from tests.meta.building import build

ROOT = Path(__file__).parents[2]
TOOLS = Path(sys.executable).parent
ACTIVE = [{"VIRTUAL_ENV": "{user}"}, {"CONDA_PREFIX": "{user}"}, {}]
"""What an activated environment sets besides PATH; `{}` is a container's, or none."""


def _pip(prefix: Path) -> tuple[str, ...]:
    """pip for an environment, whose own would take longer to put there than all the rest."""
    return (sys.executable, "-m", "pip", "--python", str(prefix / "bin/python"))


def _run(*command: str | Path, **changes: str | None) -> str:
    variables = {"PYTHONPATH": None, "VIRTUAL_ENV": None, "CONDA_PREFIX": None, **changes}
    done = subprocess.run(
        [str(each) for each in command],
        cwd="/",
        env=environment(**variables),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """envcheck as it is published, beside the wheels that it depends on."""
    folder = tmp_path_factory.mktemp("wheels")
    build(ROOT, folder, "wheel")
    (built,) = folder.glob("envcheck-*.whl")
    download = ("-m", "pip", "download", "--quiet", "--only-binary", ":all:", "-d", folder, built)
    _run(sys.executable, *download)
    return built


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with torch, of which only its metadata is there."""
    prefix = tmp_path_factory.mktemp("user") / "env"
    site = sites.venv(prefix)
    sites.dist(site, "torch", "2.11.0+cpu")
    sites.torch_version(site, "2.11.0+cpu")
    return prefix


def _judges_the_users(user: Path, active: dict[str, str], *command: str | Path) -> None:
    changes = {name: value.format(user=user) for name, value in active.items()}
    path = f"{user / 'bin'}{os.pathsep}{os.environ['PATH']}"
    arguments = ("doctor", "--json", "--fail-on", "never")
    report = json.loads(_run(*command, *arguments, PATH=path, **changes))
    env = report["snapshot"]["env"]
    assert env["python"]["prefix"] == str(user)
    assert env["python"]["chosen_because"] == next(iter(active), "PATH")
    assert [each["version"] for each in env["frameworks"]] == ["2.11.0+cpu"]


def test_a_tool_of_pip(wheel: Path, user: Path, tmp_path: Path) -> None:
    """`python3 -m venv .venv && .venv/bin/pip install .`, then another environment is activated."""
    venv.create(tmp_path / "venv", symlinks=True)
    offline = ("--quiet", "--no-compile", "--no-index", "--find-links", wheel.parent)
    _run(*_pip(tmp_path / "venv"), "install", *offline, wheel)
    for active in ACTIVE:
        _judges_the_users(user, active, tmp_path / "venv/bin/envcheck")


def test_a_tool_of_pipx(
    wheel: Path, user: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both `pipx install` and `pipx run`."""
    monkeypatch.setenv("PIPX_HOME", str(tmp_path / "pipx"))
    monkeypatch.setenv("PIPX_BIN_DIR", str(tmp_path / "bin"))
    _run(TOOLS / "pipx", "install", wheel)
    for active in ACTIVE:
        _judges_the_users(user, active, tmp_path / "bin/envcheck")
    _judges_the_users(user, ACTIVE[0], TOOLS / "pipx", "run", "--spec", wheel, "envcheck")


def test_a_tool_of_uv(
    wheel: Path, user: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`uvx` puts the environment that it makes in front of PATH."""
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    offline = ("--offline", "--no-index", "--find-links", wheel.parent, "--python", sys.executable)
    for active in ACTIVE:
        run = (TOOLS / "uv", "tool", "run", *offline, "--from", wheel, "envcheck")
        _judges_the_users(user, active, *run)
