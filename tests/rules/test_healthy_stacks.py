"""Stacks that work must come out clean, and a stack beyond the tables is not an error."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from envcheck.model.environment import Framework, Library
from tests.rules.stack import (
    H200_WHEELS,
    SITE,
    TORCH_211_REQUIRES,
    card,
    library,
    package,
    packages,
    report,
    said,
    torch_28_wheels,
    unknowns,
)
from tests.support import evolve, gpu, machine, torch

if TYPE_CHECKING:
    from envcheck.model.host import Gpu
    from envcheck.model.snapshot import Snapshot


@pytest.mark.parametrize(
    "gpus",
    [
        card("NVIDIA H200", "9.0"),
        card("NVIDIA GeForce RTX 4090", "8.9"),
        card("Tesla T4", "7.5"),
        card("NVIDIA GeForce RTX 5090", "12.0"),
        card("NVIDIA B300", "10.3"),
    ],
)
def test_newest_driver_and_torch(gpus: tuple[Gpu, ...]) -> None:
    """Driver 610.47 with torch 2.15 for CUDA 13.2."""
    snapshot = machine(driver="610.47", cuda="13.3", gpus=gpus, frameworks=(torch("2.15.0+cu132"),))
    assert (report(snapshot).findings, report(snapshot).unknown) == ((), ())


def test_minor_version_compatibility() -> None:
    """Driver 550.54.14 runs torch 2.8.0 for CUDA 12.8 on an RTX 4090, whose pins are all there."""
    snapshot = machine(
        driver="550.54.14",
        cuda="12.4",
        gpus=card("NVIDIA GeForce RTX 4090", "8.9"),
        frameworks=(torch("2.8.0+cu128"),),
        packages=torch_28_wheels(),
    )
    assert (report(snapshot).findings, report(snapshot).unknown) == ((), ())


def h200x2() -> Snapshot:
    """Two H200, torch 2.11.0, JAX's CUDA 13 plugin, an unused system cuDNN and NCCL."""
    system = "/usr/lib/x86_64-linux-gnu"
    snapshot = machine(
        gpus=(gpu(0), gpu(1)),
        frameworks=(
            torch("2.11.0+cu130"),
            Framework(name="jax", version="0.11.2", cuda="13", origin="index"),
        ),
        packages=packages(
            {
                **H200_WHEELS,
                "jax": "0.11.2",
                "jaxlib": "0.11.2",
                "jax-cuda13-pjrt": "0.11.2",
                "jax-cuda13-plugin": "0.11.2",
                "cupy-cuda13x": "14.2.0",
                "numpy": "2.5.2",
                "onnxruntime": "1.30.0",
                "triton": "3.6.0",
            },
            package("torch", "2.11.0", requires=TORCH_211_REQUIRES),
            package("torchvision", "0.26.0", requires=("numpy", "torch==2.11.0")),
            package("torchaudio", "2.11.0"),
        ),
    )
    return evolve(
        snapshot,
        {
            "env.libraries": (
                library(
                    "cudnn",
                    "9.19.0",
                    f"{SITE}/nvidia/cudnn/lib/libcudnn.so.9",
                    origin="wheel",
                    via="rpath",
                ),
                library(
                    "nccl",
                    "2.28.9",
                    f"{SITE}/nvidia/nccl/lib/libnccl.so.2",
                    origin="wheel",
                    via="rpath",
                ),
                Library(
                    name="cudnn",
                    soname="libcudnn.so.9",
                    version="9.14.0",
                    path=f"{system}/libcudnn.so.9",
                    origin="system",
                ),
                Library(
                    name="nccl",
                    soname="libnccl.so.2",
                    path=f"{system}/libnccl.so.2",
                    origin="system",
                ),
            ),
        },
    )


def test_two_h200_with_an_unused_system_cudnn() -> None:
    """What lies there and is not loaded is no finding."""
    assert (report(h200x2()).findings, report(h200x2()).unknown) == ((), ())


def test_a_torch_newer_than_the_tables_is_unknown_and_never_an_error() -> None:
    """Its CUDA and its architectures are open questions, and the verdict stays ok."""
    answer = report(machine(frameworks=(torch("3.1.0+cu150"),)))
    assert (answer.verdict, answer.findings) == ("ok", ())
    assert unknowns(machine(frameworks=(torch("3.1.0+cu150"),))) == [
        ("driver-too-old", "newer-than-table"),
        ("gpu-newer-than-build", "newer-than-table"),
    ]


@pytest.mark.parametrize("origin", ["conda-forge", "ngc", "source", "distribution"])
def test_rows_of_wheels_do_not_judge_other_builds(origin: str) -> None:
    """The wheel of this version has no code for a V100, but another build of it may."""
    snapshot = machine(
        gpus=card("Tesla V100-SXM2-16GB", "7.0"), frameworks=(torch("2.11.0+cu130", origin=origin),)
    )
    assert said(snapshot) == []
    assert unknowns(snapshot) == [("gpu-newer-than-build", "newer-than-table")]


def test_other_builds_are_judged_by_their_own_list() -> None:
    """A conda-forge build whose list was read needs no row."""
    good = torch("2.11.0", cuda="12.9", origin="conda-forge", arches=("sm_70", "sm_80"))
    snapshot = machine(gpus=card("Tesla V100-SXM2-16GB", "7.0"), frameworks=(good,))
    assert (said(snapshot), unknowns(snapshot)) == ([], [])


def test_a_framework_that_has_its_gpu_needs_no_table() -> None:
    """A pasted report without a package list, whose torch says that CUDA is available."""
    works = torch("2.8.0+cu128", gpu_available=True)
    snapshot = evolve(
        machine(driver="525.60.11", cuda="12.0", frameworks=(works,)),
        {"env.packages": None, "env.libraries": None, "env.shared_files": None},
    )
    assert (said(snapshot), unknowns(snapshot)) == ([], [])


def test_an_environment_that_was_not_read_is_said_once() -> None:
    """Distributions not read, then nothing of the environment read."""
    snapshot = evolve(
        machine(frameworks=(torch("2.8.0+cu128"),)), {"env.packages": None, "env.libraries": None}
    )
    assert unknowns(snapshot) == [("cuda-libraries-missing", "missing")]
    nothing = evolve(
        machine(), {"env.packages": None, "env.frameworks": None, "env.libraries": None}
    )
    assert unknowns(nothing) == [("framework-cpu-build", "missing")]
