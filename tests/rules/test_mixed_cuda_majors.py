"""mixed-cuda-majors."""

from __future__ import annotations

from envcheck.model.environment import LoadedLibrary, SharedFile
from tests.rules.stack import (
    H200_WHEELS,
    SITE,
    TORCH_211_REQUIRES,
    commands,
    only,
    package,
    packages,
    said,
    torch_28_wheels,
)
from tests.support import evolve, machine, torch

TORCH = package("torch", "2.11.0", requires=TORCH_211_REQUIRES)
NCCL_FILE = f"{SITE}/nvidia/nccl/lib/libnccl.so.2"


def test_two_nccl_wheels_own_one_file() -> None:
    """Both are removed before the right one is put back."""
    snapshot = evolve(
        machine(
            frameworks=(torch("2.11.0+cu130"),),
            packages=packages(H200_WHEELS, TORCH, package("nvidia-nccl-cu12", "2.27.3")),
        ),
        {
            "env.shared_files": (
                SharedFile(path=NCCL_FILE, packages=("nvidia-nccl-cu12", "nvidia-nccl-cu13")),
                SharedFile(
                    path=f"{SITE}/nvidia/__init__.py",
                    packages=("nvidia-nccl-cu12", "nvidia-nccl-cu13"),
                ),
            )
        },
    )
    found = only(snapshot)
    assert (found.id, found.severity, found.component) == ("mixed-cuda-majors", "error", "cuda")
    assert found.found == f"both own {NCCL_FILE}"
    assert found.needed == "one of them: nvidia-nccl-cu13"
    assert commands(found) == [
        "~/venv/bin/python -m pip uninstall -y nvidia-nccl-cu12 nvidia-nccl-cu13",
        '~/venv/bin/python -m pip install --force-reinstall --no-deps "nvidia-nccl-cu13==2.28.9"',
    ]


def test_a_package_list_is_enough_for_wheels_known_to_collide() -> None:
    """A pasted list has no file records; cuDNN of one major version has one file name."""
    snapshot = evolve(
        machine(
            frameworks=(torch("2.11.0+cu130"),),
            packages=packages(H200_WHEELS, TORCH, package("nvidia-cudnn-cu12", "9.10.2.21")),
        ),
        {"env.shared_files": None},
    )
    assert said(snapshot) == [("mixed-cuda-majors", "error")]


def test_wheels_in_two_site_folders_do_not_collide() -> None:
    """The user site's copy lies elsewhere: only a leftover."""
    other = package("nvidia-nccl-cu12", "2.27.3", location="~/.local/lib/python3.12/site-packages")
    snapshot = machine(
        frameworks=(torch("2.11.0+cu130"),), packages=packages(H200_WHEELS, TORCH, other)
    )
    assert said(snapshot) == [("mixed-cuda-majors", "info")]


def test_leftovers_in_folders_of_their_own_are_information() -> None:
    """nvidia-cublas-cu12 and nvidia-cublas (13) share no library."""
    snapshot = machine(
        frameworks=(torch("2.11.0+cu130"),),
        packages=packages(H200_WHEELS, TORCH, package("nvidia-cublas-cu12", "12.8.4.1")),
    )
    found = only(snapshot)
    assert (found.severity, found.subject) == ("info", "nvidia-cublas-cu12")
    assert commands(found) == ["~/venv/bin/python -m pip uninstall -y nvidia-cublas-cu12"]


def test_shared_init_files_are_normal() -> None:
    """Every NVIDIA wheel of one major owns nvidia/__init__.py."""
    snapshot = evolve(
        machine(frameworks=(torch("2.8.0+cu128"),), packages=torch_28_wheels()),
        {
            "env.shared_files": (
                SharedFile(
                    path=f"{SITE}/nvidia/__init__.py",
                    packages=("nvidia-nccl-cu12", "nvidia-cudnn-cu12", "nvidia-cublas-cu12"),
                ),
            )
        },
    )
    assert said(snapshot) == []


def test_both_majors_loaded_into_one_process() -> None:
    """What a process really loaded needs no guess."""
    loaded = (
        LoadedLibrary(name="cudart", version="12.8", path="/a/libcudart.so.12"),
        LoadedLibrary(name="cudart", version="13.0", path="/b/libcudart.so.13"),
    )
    snapshot = machine(frameworks=(torch("2.11.0+cu130", loaded=loaded),))
    found = only(snapshot)
    assert (found.id, found.severity) == ("mixed-cuda-majors", "error")
    assert found.found == "the CUDA runtimes of 12 and 13 in one process"
