"""Environments of images, told by their files."""

from __future__ import annotations

from pathlib import Path

import pytest

from envcheck.errors import UsageError
from tests.image.tars import ELF, Files, read

PATH = "/usr/local/bin:/usr/bin:/bin"


def wheel(site: str, name: str, version: str, requires: str = "") -> Files:
    """Metadata of an installed wheel."""
    folder = f"{site}/{name.replace('-', '_')}-{version}.dist-info"
    lines = [
        f"Name: {name}",
        f"Version: {version}",
        *([f"Requires-Dist: {requires}"] * bool(requires)),
    ]
    return {f"{folder}/METADATA": "\n".join(lines) + "\n", f"{folder}/INSTALLER": "pip\n"}


def torch(site: str) -> Files:
    """torch for CUDA 13 as its wheel has it."""
    return {
        **wheel(site, "torch", "2.11.0"),
        f"{site}/torch/version.py": "__version__ = '2.11.0+cu130'\ncuda = '13.0'\nhip = None\n",
    }


def test_a_virtual_environment_that_the_path_names(tmp_path: Path) -> None:
    site = "opt/venv/lib/python3.12/site-packages"
    inside = read(
        tmp_path,
        {
            "usr/local/bin/python3.12": ELF,
            "opt/venv/bin/python3": ("link", "/usr/local/bin/python3.12"),
            "opt/venv/pyvenv.cfg": "home = /usr/local/bin\nversion = 3.12.7\n",
            **torch(site),
            **wheel("usr/local/lib/python3.12/site-packages", "numpy", "2.1.0"),
        },
        PATH=f"/opt/venv/bin:{PATH}",
    )
    python = inside.env.python
    assert (python.version, python.prefix, python.kind) == ("3.12.7", "/opt/venv", "venv")
    assert (python.executable, python.tag) == ("/opt/venv/bin/python3", "cp312")
    assert (python.platform, python.libc) == ("linux_x86_64", "glibc 2.36")
    assert (python.chosen_because, python.error) == ("PATH", None)
    assert [each.name for each in inside.env.packages or ()] == ["torch"]
    (framework,) = inside.env.frameworks or ()
    assert (framework.version, framework.cuda) == ("2.11.0+cu130", "13.0")
    assert framework.location == f"/{site}"
    assert (inside.os.id, inside.os.version, inside.os.glibc) == ("debian", "12", "2.36")
    assert [each.path for each in inside.gaps] == ["env.libraries"]


def test_an_environment_that_also_sees_the_systems_packages(tmp_path: Path) -> None:
    """As in images on top of NVIDIA's: what the environment has itself comes first."""
    own, system = "opt/venv/lib/python3.12/site-packages", "usr/local/lib/python3.12/dist-packages"
    inside = read(
        tmp_path,
        {
            "usr/bin/python3.12": ELF,
            "opt/venv/bin/python": ("link", "/usr/bin/python3.12"),
            "opt/venv/pyvenv.cfg": (
                "home = /usr/bin\ninclude-system-site-packages = true\nversion = 3.12.3\n"
            ),
            **wheel(own, "numpy", "2.2.0"),
            **wheel(system, "numpy", "1.26.4"),
            **torch(system),
        },
        VIRTUAL_ENV="/opt/venv",
        PATH=PATH,
    )
    versions = {each.name: each.version for each in inside.env.packages or ()}
    assert versions == {"numpy": "2.2.0", "torch": "2.11.0"}
    assert inside.env.python.chosen_because == "VIRTUAL_ENV"


def test_the_systems_python_where_distributions_put_packages(tmp_path: Path) -> None:
    inside = read(
        tmp_path,
        {
            "usr/bin/python3.11": ELF,
            "usr/bin/python3": ("link", "python3.11"),
            "usr/lib/python3.11/EXTERNALLY-MANAGED": "[externally-managed]\n",
            "usr/include/python3.11/patchlevel.h": '#define PY_VERSION      "3.11.2"\n',
            **wheel("usr/lib/python3/dist-packages", "six", "1.16.0"),
            **wheel("usr/local/lib/python3.11/dist-packages", "rich", "15.0.0"),
            **wheel("root/.local/lib/python3.11/site-packages", "distro", "1.9.0"),
        },
    )
    python = inside.env.python
    assert (python.version, python.kind, python.externally_managed) == ("3.11.2", "system", True)
    assert [each.name for each in inside.env.packages or ()] == ["distro", "rich", "six"]


def test_a_users_packages_are_not_those_of_another_user(tmp_path: Path) -> None:
    files: Files = {
        "usr/local/bin/python3.12": ELF,
        "usr/local/bin/python3": ("link", "python3.12"),
        **wheel("root/.local/lib/python3.12/site-packages", "distro", "1.9.0"),
    }
    inside = read(tmp_path, files, user="1000", PYTHON_VERSION="3.12.9")
    assert (inside.env.packages, inside.env.python.version) == ((), "3.12.9")


def test_conda_names_its_packages_itself(tmp_path: Path) -> None:
    inside = read(
        tmp_path,
        {
            "opt/conda/bin/python3.10": ELF,
            "opt/conda/bin/python": ("link", "python3.10"),
            "opt/conda/conda-meta/cudnn-9.3.0-cuda12_0.json": '{"channel": "conda-forge"}',
            "opt/conda/lib/python3.10/site-packages/x-1.dist-info/METADATA": "Name: x\n",
        },
        PATH=f"/opt/conda/bin:{PATH}",
    )
    assert inside.env.python.kind == "conda"
    assert inside.env.python.version == "3.10"
    found = {each.name: each.installer for each in inside.env.packages or ()}
    assert found == {"cudnn": "conda", "x": None}


def test_an_image_without_python_is_not_guessed_at(tmp_path: Path) -> None:
    inside = read(tmp_path, {"usr/bin/true": ELF})
    assert inside.env.packages is None
    assert inside.env.python.error == "/usr/bin/python3: /usr/bin/python3: not in the image"
    assert [each.path for each in inside.gaps] == ["env"]


def test_a_named_interpreter_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--python /opt/none: no such file or folder"):
        read(tmp_path, {"usr/bin/python3.11": ELF}, python="/opt/none")


def test_libraries_are_looked_for_in_the_image_only(tmp_path: Path) -> None:
    """LD_LIBRARY_PATH and search paths of libraries name folders of the image."""
    inside = read(
        tmp_path,
        {
            "usr/local/bin/python3.12": ELF,
            "usr/local/bin/python3": ("link", "python3.12"),
            "usr/local/cuda-12.4/lib64/libcudart.so.12.4.127": ELF,
            "usr/local/cuda-12.4/lib64/libcudart.so.12": ("link", "libcudart.so.12.4.127"),
            "usr/local/cuda": ("link", "cuda-12.4"),
            "usr/local/cuda-12.4/version.json": '{"cuda": {"version": "12.4.1"}}',
            "usr/local/cuda-12.4/bin/nvcc": ELF,
        },
        LD_LIBRARY_PATH="/usr/local/cuda/lib64",
        PATH=f"/usr/local/cuda/bin:{PATH}",
    )
    (library,) = inside.env.libraries or ()
    assert (library.name, library.version, library.origin) == ("cudart", "12.4.127", "toolkit")
    assert library.path == "/usr/local/cuda/lib64/libcudart.so.12"
    (toolkit,) = inside.env.toolkits or ()
    assert (toolkit.version, toolkit.root, toolkit.nvcc) == ("12.4.1", "/usr/local/cuda-12.4", True)
    assert inside.env.variable("LD_LIBRARY_PATH") == "/usr/local/cuda/lib64"


def test_musl_is_told(tmp_path: Path) -> None:
    files: Files = {
        "usr/lib/x86_64-linux-gnu/libc.so.6": b"",
        "usr/lib/ld-musl-x86_64.so.1": ELF,
        "usr/bin/python3.12": ELF,
        "usr/bin/python3": ("link", "python3.12"),
    }
    assert read(tmp_path, files).env.python.libc == "musl"
