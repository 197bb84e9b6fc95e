"""gpu-newer-than-build and gpu-older-than-build: the fix points the right way."""

from __future__ import annotations

from tests.rules.stack import card, commands, only, said, unknowns
from tests.support import evolve, gpu, machine, torch

INDEX = "--index-url https://download.pytorch.org/whl"


def test_pascal_and_cu128() -> None:
    """torch 2.8.0+cu128 begins at sm_70: the cu126 build of the same version has sm_60."""
    found = only(
        machine(
            driver="570.124.06",
            cuda="12.8",
            gpus=card("NVIDIA GeForce GTX 1080 Ti", "6.1"),
            frameworks=(torch("2.8.0+cu128"),),
        )
    )
    assert (found.id, found.severity, found.component) == (
        "gpu-older-than-build",
        "error",
        "framework",
    )
    assert found.subject == "GPU 0: NVIDIA GeForce GTX 1080 Ti"
    assert "sm_70 sm_75 sm_80 sm_86 sm_90 sm_100 sm_120" in found.found
    assert commands(found) == [
        f'~/venv/bin/python -m pip install --force-reinstall "torch==2.8.0" {INDEX}/cu126'
    ]
    assert found.sources


def test_volta_and_cu130() -> None:
    """torch 2.11.0+cu130 begins at sm_75: the cu126 build of the same version runs on a V100."""
    found = only(
        machine(gpus=card("Tesla V100-SXM2-16GB", "7.0"), frameworks=(torch("2.11.0+cu130"),))
    )
    assert found.id == "gpu-older-than-build"
    assert commands(found) == [
        f'~/venv/bin/python -m pip install --force-reinstall "torch==2.11.0" {INDEX}/cu126'
    ]


def test_blackwell_and_cu121() -> None:
    """torch 2.5.1 ends at sm_90: a newer torch for CUDA 12.8 is needed."""
    found = only(
        machine(gpus=card("NVIDIA GeForce RTX 5090", "12.0"), frameworks=(torch("2.5.1+cu121"),))
    )
    assert (found.id, found.severity) == ("gpu-newer-than-build", "error")
    assert commands(found) == [
        f'~/venv/bin/python -m pip install --force-reinstall "torch==2.7.1" {INDEX}/cu128'
    ]


def test_blackwell_and_cu126_of_a_version_that_has_cu130() -> None:
    """The same version for a newer CUDA is nearer than another version."""
    found = only(
        machine(gpus=card("NVIDIA GeForce RTX 5090", "12.0"), frameworks=(torch("2.9.0+cu126"),))
    )
    assert commands(found)[0].endswith(f'"torch==2.9.0" {INDEX}/cu130')


def test_an_old_display_card_beside_a_supported_one() -> None:
    """Another GPU runs the build, so that it is a warning."""
    snapshot = machine(
        gpus=(
            gpu(0, name="NVIDIA GeForce RTX 4090", arch="8.9"),
            gpu(1, name="NVIDIA GeForce GTX 1050", arch="6.1"),
        ),
        frameworks=(torch("2.8.0+cu128"),),
    )
    assert said(snapshot) == [("gpu-older-than-build", "warning")]


def test_several_equal_gpus_are_one_finding() -> None:
    """Eight V100 are one cause."""
    snapshot = machine(
        gpus=tuple(gpu(n, name="Tesla V100-SXM2-16GB", arch="7.0") for n in range(8)),
        frameworks=(torch("2.11.0+cu130"),),
    )
    assert said(snapshot) == [("gpu-older-than-build", "error")]


def test_git_version_of_another_build_is_not_that_wheel() -> None:
    """Same version, another commit: the row does not apply."""
    snapshot = machine(
        gpus=card("Tesla V100-SXM2-16GB", "7.0"),
        frameworks=(torch("2.11.0+cu130", git_version="0" * 40),),
    )
    assert (said(snapshot), unknowns(snapshot)) == (
        [],
        [("gpu-newer-than-build", "newer-than-table")],
    )


def test_gpus_that_could_not_be_read() -> None:
    """A driver that works and GPUs that were not read: an open question, said once per check."""
    snapshot = evolve(machine(frameworks=(torch("2.11.0+cu130"),)), {"host.gpus": None})
    assert unknowns(snapshot) == [
        ("gpu-newer-than-build", "missing"),
        ("gpu-older-than-build", "missing"),
    ]
