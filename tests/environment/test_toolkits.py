"""CUDA toolkits on disk."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from envcheck.probe.live import Live
from envcheck.probe.quiet import Quiet
from envcheck.probe.toolkits import read_toolkits
from tests.environment import sites

if TYPE_CHECKING:
    from pathlib import Path

    from envcheck.model.environment import Toolkit
    from envcheck.probe.source import Stat


class Elsewhere(Live):
    """This machine, whose /usr/local and usual folders lie below another folder."""

    def __init__(self, below: Path, **variables: str) -> None:
        """Take the folder, and the variables of the user."""
        super().__init__(variables)
        self.below = str(below)

    def _at(self, path: str) -> str:
        return path if path.startswith(self.below) else self.below + path

    def read(self, path: str) -> str | None:
        """Text of a file."""
        return super().read(self._at(path))

    def list(self, path: str) -> tuple[str, ...] | None:
        """Names in a folder."""
        return super().list(self._at(path))

    def stat(self, path: str) -> Stat | None:
        """What a path is."""
        return super().stat(self._at(path))


def read(root: Path, prefix: str | None = None, **variables: str) -> dict[str, Toolkit]:
    """Toolkits below a folder, by root."""
    variables = {"PATH": "/usr/bin", **variables}
    found = read_toolkits(Quiet(Elsewhere(root, **variables)), prefix)
    return {each.root: each for each in found}


def nvcc(root: Path) -> None:
    """Put a compiler into a toolkit."""
    sites.write(root / "bin" / "nvcc", "#!/bin/sh\n")


def test_version_from_each_place(tmp_path: Path) -> None:
    """version.json, version.txt, the folder's name, the header."""
    local = tmp_path / "usr/local"
    sites.write(local / "cuda-13.0/version.json", json.dumps({"cuda": {"version": "13.0.2"}}))
    sites.write(local / "cuda-10.2/version.txt", "CUDA Version 10.2.89\n")
    nvcc(local / "cuda-12.4")
    nvcc(local / "cuda")
    sites.write(local / "cuda/include/cuda.h", "#define CUDA_VERSION 12080\n")
    sites.write(local / "cuda-11.8/version.json", "{ broken")
    nvcc(tmp_path / "opt/cuda")
    found = read(tmp_path)
    assert {root: each.version for root, each in found.items()} == {
        "/usr/local/cuda-13.0": "13.0.2",
        "/usr/local/cuda-10.2": "10.2.89",
        "/usr/local/cuda-12.4": "12.4",
        "/usr/local/cuda-11.8": "11.8",
        "/usr/local/cuda": "12.8",
        "/opt/cuda": None,
    }
    assert found["/usr/local/cuda-13.0"].nvcc is False
    assert found["/usr/local/cuda-12.4"].nvcc is True


def test_links_count_once(tmp_path: Path) -> None:
    """/usr/local/cuda -> /etc/alternatives/cuda -> the toolkit; and relative links."""
    local = tmp_path / "usr/local"
    nvcc(local / "cuda-13.0")
    (tmp_path / "etc/alternatives").mkdir(parents=True)
    (local / "cuda").symlink_to("/etc/alternatives/cuda")
    (tmp_path / "etc/alternatives/cuda").symlink_to("/usr/local/cuda-13.0")
    (local / "cuda-13").symlink_to("../local/cuda-13.0/")
    assert list(read(tmp_path)) == ["/usr/local/cuda-13.0"]


@pytest.mark.parametrize("name", ["CUDA_HOME", "CUDA_PATH"])
def test_variable_names_the_active_one(tmp_path: Path, name: str) -> None:
    """The variable's toolkit is the one that builds use, links followed."""
    local = tmp_path / "usr/local"
    nvcc(local / "cuda-13.0")
    nvcc(local / "cuda-12.4")
    (local / "cuda").symlink_to("cuda-12.4")
    found = read(tmp_path, **{name: "/usr/local/cuda/"})
    assert {root: each.on_path for root, each in found.items()} == {
        "/usr/local/cuda-12.4": True,
        "/usr/local/cuda-13.0": False,
    }


def test_variable_that_names_nothing(tmp_path: Path) -> None:
    """A removed toolkit is none, whatever its folder was called."""
    assert read(tmp_path, CUDA_HOME="/usr/local/cuda-12.4") == {}


def test_nvcc_on_path(tmp_path: Path) -> None:
    """By its folder, or by a link into a toolkit."""
    local = tmp_path / "usr/local"
    nvcc(local / "cuda-13.0")
    assert read(tmp_path, PATH="/usr/local/cuda-13.0/bin/")["/usr/local/cuda-13.0"].on_path
    (tmp_path / "usr/bin").mkdir()
    (tmp_path / "usr/bin/nvcc").symlink_to("/usr/local/cuda-13.0/bin/nvcc")
    assert read(tmp_path)["/usr/local/cuda-13.0"].on_path


def test_nvcc_off_path_is_not_active(tmp_path: Path) -> None:
    """envcheck looks into the usual folders too; the user's shell does not."""
    nvcc(tmp_path / "usr/local/cuda")
    assert [each.on_path for each in read(tmp_path).values()] == [False]


def test_wrapper_belongs_to_no_toolkit(tmp_path: Path) -> None:
    """A script in /usr/local/bin tells nothing of what it runs."""
    nvcc(tmp_path / "usr/local/cuda-13.0")
    nvcc(tmp_path / "usr/local")
    found = read(tmp_path, PATH="/usr/local/bin:/usr/local/cuda-13.0/bin")
    assert {root: each.on_path for root, each in found.items()} == {"/usr/local/cuda-13.0": False}


def test_nvcc_of_the_environment(tmp_path: Path) -> None:
    """conda's compiler lies in the environment itself."""
    nvcc(tmp_path / "opt/conda")
    sites.write(tmp_path / "opt/conda/include/cuda.h", "#define CUDA_VERSION 12060\n")
    found = read(tmp_path, "/opt/conda", PATH="/opt/conda/bin")
    assert [(each.root, each.version, each.on_path) for each in found.values()] == [
        ("/opt/conda", "12.6", True)
    ]
