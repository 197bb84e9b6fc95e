"""cuda-libraries-missing and cudnn-missing."""

from __future__ import annotations

from envcheck.model.environment import Framework
from tests.rules.stack import (
    SITE,
    TORCH_211_REQUIRES,
    commands,
    library,
    only,
    package,
    report,
    said,
    torch_28_wheels,
    unknowns,
)
from tests.support import evolve, machine, torch

TORCH = torch("2.8.0+cu128")


def test_installed_without_dependencies() -> None:
    """None of the wheels is there: one error, and cuDNN is folded under it."""
    alone = machine(frameworks=(TORCH,), packages=torch_28_wheels()[:1])
    found = report(alone).findings
    assert [(each.id, each.severity) for each in found] == [("cuda-libraries-missing", "error")]
    assert found[0].consequences == ("cudnn-missing",)
    assert "nvidia-cuda-runtime-cu12" in found[0].found
    assert "triton" not in found[0].found
    assert commands(found[0]) == ['~/venv/bin/python -m pip install "torch==2.8.0"']


def test_through_the_toolkit_metapackage() -> None:
    """Newer wheels name their libraries as extras of cuda-toolkit."""
    alone = machine(
        frameworks=(torch("2.11.0+cu130"),),
        packages=(package("torch", "2.11.0", requires=TORCH_211_REQUIRES),),
    )
    found = report(alone).findings[0]
    assert found.id == "cuda-libraries-missing"
    assert "nvidia-cuda-runtime, nvidia-cuda-nvrtc" in found.found


def test_a_variant_comes_from_its_own_index() -> None:
    """The same variant again, not the index's default one."""
    alone = machine(
        frameworks=(torch("2.8.0+cu126", origin="framework-index"),),
        packages=(package("torch", "2.8.0+cu126", requires=("nvidia-nccl-cu12==2.27.3",)),),
    )
    assert commands(only(alone)) == [
        '~/venv/bin/python -m pip install "torch==2.8.0" '
        "--index-url https://download.pytorch.org/whl/cu126"
    ]


def test_a_copy_from_elsewhere_that_wins() -> None:
    """One wheel is absent, and the system's NCCL is what the loader takes."""
    snapshot = evolve(
        machine(frameworks=(TORCH,), packages=torch_28_wheels(nccl=None)),
        {"env.libraries": (library("nccl", "2.28.3", "/usr/lib/libnccl.so.2", origin="system"),)},
    )
    assert said(snapshot) == []


def test_copies_that_were_not_read_are_unknown() -> None:
    """Without the libraries on disk nobody can tell."""
    snapshot = evolve(
        machine(frameworks=(TORCH,), packages=torch_28_wheels()[:1]), {"env.libraries": None}
    )
    assert unknowns(snapshot) == [
        ("cuda-libraries-missing", "missing"),
        ("cudnn-missing", "missing"),
    ]


def test_what_the_import_said() -> None:
    """The framework's own words are evidence enough."""
    error = (
        "ImportError: libcublas.so.12: cannot open shared object file: No such file or directory"
    )
    snapshot = machine(frameworks=(torch("2.8.0+cu128", error=error),))
    found = only(snapshot)
    assert (found.id, found.found) == (
        "cuda-libraries-missing",
        "libcublas.so.12: cannot open shared object file",
    )
    cudnn = "ImportError: libcudnn.so.9: cannot open shared object file: No such file or directory"
    assert said(machine(frameworks=(torch("2.8.0+cu128", error=cudnn),))) == [
        ("cudnn-missing", "error")
    ]


def test_cudnn_alone() -> None:
    """Only the cuDNN wheel is absent, and no other copy is there."""
    found = only(machine(frameworks=(TORCH,), packages=torch_28_wheels(cudnn=None)))
    assert (found.id, found.severity) == ("cudnn-missing", "error")
    assert found.needed == "nvidia-cudnn-cu12==9.10.2.21, which torch 2.8.0 requires"
    assert commands(found) == ['~/venv/bin/python -m pip install "nvidia-cudnn-cu12==9.10.2.21"']


def tensorflow() -> Framework:
    """A CUDA build of TensorFlow from the package index."""
    return Framework(
        name="tensorflow",
        version="2.18.0",
        cuda="12.5",
        cpu_only=False,
        origin="index",
        location=SITE,
    )


def test_tensorflow_without_any_cuda_library() -> None:
    """It would run on the CPU without a word."""
    found = only(machine(frameworks=(tensorflow(),)))
    assert (found.id, found.severity) == ("cuda-libraries-missing", "error")
    assert commands(found) == ['~/venv/bin/python -m pip install "tensorflow[and-cuda]==2.18.0"']


def test_tensorflow_with_system_libraries() -> None:
    """A system cuBLAS and cuDNN may serve it."""
    snapshot = evolve(
        machine(frameworks=(tensorflow(),)),
        {"env.libraries": (library("cudnn", "9.3.0", "/usr/lib/libcudnn.so.9", wins_for=()),)},
    )
    assert said(snapshot) == []
