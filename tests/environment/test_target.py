"""Which environment is judged."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from envcheck.errors import UsageError
from envcheck.probe.live import Live
from envcheck.probe.notes import Notes
from envcheck.probe.target import Target, choose_target
from tests.environment import sites

if TYPE_CHECKING:
    from pathlib import Path


def chosen(python: str | None = None, own: str | None = None, **variables: str) -> Target:
    """The target that these variables lead to."""

    class Here(Live):
        def interpreter(self) -> str:
            return own or sys.executable

    return choose_target(Here(variables=variables), python, Notes())


def test_named_interpreter_or_folder(tmp_path: Path) -> None:
    """Both name the same environment, and win over variables."""
    sites.venv(tmp_path / "one")
    sites.venv(tmp_path / "two")
    python = f"{tmp_path}/one/bin/python"
    for named in (python, f"{tmp_path}/one", f"{tmp_path}/one/"):
        target = chosen(named, VIRTUAL_ENV=f"{tmp_path}/two")
        assert (target.interpreter, target.because) == (python, "--python")


def test_relative_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative path is the user's, whose folder the child does not share; links are kept."""
    sites.venv(tmp_path / ".venv")
    monkeypatch.chdir(tmp_path)
    for named in (".venv", ".venv/bin/python"):
        assert chosen(named).interpreter == f"{tmp_path}/.venv/bin/python"


def test_named_program_is_looked_for_on_path(tmp_path: Path) -> None:
    """`--python python3` as the shell would find it."""
    sites.venv(tmp_path)
    assert chosen("python3", PATH=f"{tmp_path}/bin").interpreter == f"{tmp_path}/bin/python3"


@pytest.mark.parametrize("name", ["gone", "empty", "text", "bin"])
def test_names_of_nothing_are_usage_errors(tmp_path: Path, name: str) -> None:
    """Missing, a folder that holds no environment, a file that is no program."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "bin").mkdir()
    sites.write(tmp_path / "text", "no program")
    with pytest.raises(UsageError, match=f"--python {tmp_path}/{name}: "):
        chosen(f"{tmp_path}/{name}")


def test_active_environments_in_order(tmp_path: Path) -> None:
    """VIRTUAL_ENV, then CONDA_PREFIX, then PATH; one that is gone is passed over and noted."""
    for name in ("venv", "conda", "path"):
        sites.venv(tmp_path / name)
    variables = {
        "VIRTUAL_ENV": f"{tmp_path}/venv",
        "CONDA_PREFIX": f"{tmp_path}/conda/",
        "PATH": f"relative:{tmp_path}/path/bin",
    }
    assert chosen(**variables).because == "VIRTUAL_ENV"
    variables["VIRTUAL_ENV"] = f"{tmp_path}/gone"
    target = chosen(**variables)
    assert (target.interpreter, target.because) == (f"{tmp_path}/conda/bin/python", "CONDA_PREFIX")
    notes = Notes()
    choose_target(Live(variables=variables), None, notes)
    assert [gap.path for gap in notes.gaps] == ["env.python"]
    del variables["CONDA_PREFIX"]
    target = chosen(**variables)
    assert (target.interpreter, target.because) == (f"{tmp_path}/path/bin/python3", "PATH")
    assert chosen(PATH="/nonexistent").because == "own"


def test_own_environment_wins_over_path_only_with_a_framework(tmp_path: Path) -> None:
    """envcheck was installed beside torch and called by its path."""
    own_site = sites.venv(tmp_path / "own")
    path_site = sites.venv(tmp_path / "path")
    own = f"{tmp_path}/own/bin/python"
    path = f"{tmp_path}/path/bin"
    assert chosen(own=own, PATH=path).because == "PATH"
    (own_site / "torch").mkdir()
    target = chosen(own=own, PATH=path)
    assert (target.interpreter, target.because) == (own, "own")
    (path_site / "jaxlib").mkdir()
    assert chosen(own=own, PATH=path).interpreter == f"{path}/python3"


def test_environment_whose_base_interpreter_is_gone(tmp_path: Path) -> None:
    """Its packages are read all the same, and the gap is told."""
    site = sites.venv(tmp_path, "version = 3.9.1\n")
    for name in ("python", "python3"):
        (tmp_path / "bin" / name).unlink()
        (tmp_path / "bin" / name).symlink_to("/nonexistent/python3.9")
    sites.dist(site, "torch", "2.11.0+cu128")
    sites.torch_version(site, "2.11.0+cu128", cuda="12.8")
    notes = Notes()
    env = sites.described({"VIRTUAL_ENV": str(tmp_path)}, notes=notes)
    assert env.python.kind == "venv"
    assert env.python.prefix == str(tmp_path)
    assert "does not start" in (env.python.error or "")
    assert [(each.name, each.version) for each in env.frameworks or ()] == [
        ("torch", "2.11.0+cu128")
    ]
    assert "env.python.version" in [gap.path for gap in notes.gaps]


def test_a_working_name_beside_a_broken_one(tmp_path: Path) -> None:
    """`bin/python` may dangle while `bin/python3` works."""
    sites.venv(tmp_path)
    (tmp_path / "bin" / "python").unlink()
    (tmp_path / "bin" / "python").symlink_to("/nonexistent")
    target = chosen(VIRTUAL_ENV=str(tmp_path))
    assert (target.interpreter, target.error) == (f"{tmp_path}/bin/python3", None)


def test_program_that_is_no_python(tmp_path: Path) -> None:
    """Nothing is known, and it is said why."""
    notes = Notes()
    program = sites.write(tmp_path / "python", "#!/bin/sh\necho broken >&2\nexit 3\n")
    program.chmod(0o755)
    env = sites.described({}, python=str(program), notes=notes)
    assert (env.packages, env.frameworks, env.libraries) == (None, None, None)
    assert env.python.error == f"{program}: ended with exit status 3: broken"
    assert [gap.path for gap in notes.gaps] == ["env"]


@pytest.mark.parametrize(
    ("folder", "config", "installer", "manager"),
    [
        ("venv", "", "pip", "pip"),
        ("venv", "uv = 0.8.4\n", "uv", "uv"),
        ("venv", "", "uv", "uv"),
        ("venv", "", "Poetry 2.1.1", "poetry"),
        ("venv", "", "pdm", "pdm"),
        ("pypoetry/virtualenvs/x", "", "pip", "poetry"),
        ("pipx/venvs/x", "", "pip", "pipx"),
    ],
)
def test_managers(tmp_path: Path, folder: str, config: str, installer: str, manager: str) -> None:
    """By the marks that tools leave."""
    site = sites.venv(tmp_path / folder, config)
    sites.dist(site, "torch", "2.11.0", installer=installer)
    env = sites.described({"VIRTUAL_ENV": str(tmp_path / folder)})
    assert (env.python.kind, env.python.manager) == ("venv", manager)
    assert env.python.externally_managed is False


def test_conda_environment(tmp_path: Path) -> None:
    """Known by its records, without an interpreter to ask."""
    sites.write(tmp_path / "conda-meta" / "cudnn-9.8.0.87-h81d5506_1.json", '{"channel": "nvidia"}')
    site = tmp_path / "lib" / sites.TAG / "site-packages"
    sites.dist(site, "torch", "2.6.0", installer="conda")
    env = sites.described({"CONDA_PREFIX": str(tmp_path)})
    assert (env.python.kind, env.python.manager) == ("conda", "conda")
    cudnn = env.package("cudnn")
    assert cudnn is not None
    assert (cudnn.version, cudnn.build, cudnn.channel) == ("9.8.0.87", "h81d5506_1", "nvidia")
