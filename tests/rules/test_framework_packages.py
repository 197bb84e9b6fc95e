"""framework-variant-conflict, jax-plugin-mismatch, numpy-abi-mismatch, glibc-too-old."""

from __future__ import annotations

import pytest

from envcheck.model.environment import Framework
from tests.rules.stack import card, commands, only, package, said
from tests.support import evolve, machine, torch


def test_two_onnxruntimes() -> None:
    """All variants go, the one for GPUs comes back."""
    found = only(
        machine(packages=(package("onnxruntime", "1.20.1"), package("onnxruntime-gpu", "1.20.1")))
    )
    assert (found.id, found.severity) == ("framework-variant-conflict", "error")
    assert commands(found) == [
        "~/venv/bin/python -m pip uninstall -y onnxruntime onnxruntime-gpu",
        '~/venv/bin/python -m pip install "onnxruntime-gpu==1.20.1"',
    ]


def test_variants_that_do_no_harm() -> None:
    """One alone; conda's selector packages; a machine without a GPU only warns."""
    assert said(machine(packages=(package("onnxruntime-gpu", "1.20.1"),))) == []
    conda = (
        package("tensorflow", "2.18.0", installer="conda", channel="conda-forge"),
        package("tensorflow-gpu", "2.18.0", installer="conda", channel="conda-forge"),
    )
    assert said(machine(packages=conda)) == []
    both = (package("tensorflow", "2.18.0"), package("tensorflow-cpu", "2.18.0"))
    assert said(machine(driver=None, cuda=None, gpus=(), packages=both)) == [
        ("framework-variant-conflict", "warning")
    ]


JAX = ("jax", "jaxlib", "jax-cuda12-pjrt", "jax-cuda12-plugin")


@pytest.mark.parametrize(
    ("versions", "expected"),
    [
        (("0.9.2", "0.9.2", "0.9.2", "0.9.2"), []),
        (("0.9.0.1", "0.9.0.1", "0.9.0.1", "0.9.0.1"), []),
        (("0.9.0.1", "0.9.0", "0.9.0.1", "0.9.0.1"), []),
        (("0.9.0.1", "0.9.0.1", "0.9.2", "0.9.2"), [("jax-plugin-mismatch", "error")]),
        (("0.9.2", "0.9.2", "0.9.2", "0.9.0"), [("jax-plugin-mismatch", "error")]),
    ],
)
def test_jax_and_its_plugin(versions: tuple[str, ...], expected: list[tuple[str, str]]) -> None:
    """All four of one release; a fourth number is a repackaging."""
    found = tuple(package(name, version) for name, version in zip(JAX, versions, strict=True))
    assert said(machine(packages=found)) == expected


def test_jax_fix() -> None:
    """jax's release decides, with the extra of the plugin's CUDA major."""
    found = only(
        machine(
            packages=tuple(
                package(name, version)
                for name, version in zip(JAX, ("0.9.0.1", "0.9.0.1", "0.9.2", "0.9.2"), strict=True)
            )
        )
    )
    assert commands(found) == [
        '~/venv/bin/python -m pip install "jax[cuda12]==0.9.0.1" "jax-cuda12-pjrt==0.9.0.1" '
        '"jax-cuda12-plugin==0.9.0.1"'
    ]


def test_jaxlib_outside_the_range_that_jax_requires() -> None:
    """A newer jaxlib than jax."""
    found = (
        package("jax", "0.9.0", requires=("jaxlib<=0.9.0,>=0.9.0",)),
        package("jaxlib", "0.9.2"),
    )
    assert said(machine(packages=found)) == [("jax-plugin-mismatch", "error")]


def test_jax_for_the_cpu() -> None:
    """No plugin is no mismatch."""
    assert said(machine(packages=(package("jax", "0.9.2"), package("jaxlib", "0.9.2")))) == []


def test_numpy_2_under_a_framework_for_numpy_1() -> None:
    """Its own requirement ends below 2."""
    tensorflow = Framework(name="tensorflow", version="2.15.1", origin="index", cpu_only=True)
    requires = ("numpy<2.0.0,>=1.23.5",)
    found = only(
        machine(
            frameworks=(tensorflow,),
            packages=(
                package("tensorflow", "2.15.1", requires=requires),
                package("numpy", "2.1.0"),
            ),
        )
    )
    assert (found.id, found.severity) == ("numpy-abi-mismatch", "error")
    assert commands(found) == ['~/venv/bin/python -m pip install "numpy<2.0.0,>=1.23.5"']
    assert (
        said(
            machine(
                frameworks=(tensorflow,),
                packages=(
                    package("tensorflow", "2.15.1", requires=requires),
                    package("numpy", "1.26.4"),
                ),
            )
        )
        == []
    )


def test_numpy_says_so() -> None:
    """The warning that NumPy prints on import."""
    error = "A module that was compiled using NumPy 1.x cannot be run in NumPy 2.0.0"
    snapshot = machine(
        gpus=card("NVIDIA H200", "9.0"),
        frameworks=(torch("2.2.2+cu121", error=error),),
        packages=(package("torch", "2.2.2"), package("numpy", "2.0.0")),
    )
    assert said(snapshot) == [("numpy-abi-mismatch", "error")]


@pytest.mark.parametrize(
    ("tag", "libc", "expected"),
    [
        ("cp312-cp312-manylinux_2_28_x86_64", "glibc 2.17", [("glibc-too-old", "error")]),
        ("cp312-cp312-manylinux_2_28_x86_64", "glibc 2.28", []),
        ("cp312-cp312-manylinux_2_17_x86_64.manylinux2014_x86_64", "glibc 2.17", []),
        ("cp312-cp312-manylinux2014_x86_64", "glibc 2.12", [("glibc-too-old", "error")]),
        ("cp312-cp312-musllinux_1_2_x86_64", "musl 1.2", []),
        ("py3-none-any", "glibc 2.17", []),
        (None, "glibc 2.17", []),
    ],
)
def test_glibc(tag: str | None, libc: str, expected: list[tuple[str, str]]) -> None:
    """The lowest glibc that the wheel's tags accept decides."""
    snapshot = evolve(
        machine(
            frameworks=(torch("2.8.0+cu128"),),
            packages=(package("torch", "2.8.0", build=tag),),
        ),
        {"env.python.libc": libc},
    )
    assert said(snapshot) == expected
