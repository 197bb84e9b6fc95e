"""extension-built-for-other-torch and extension-built-for-other-cuda."""

from __future__ import annotations

import pytest

from envcheck.rules.framework.extensions import built
from tests.rules.stack import commands, only, package, said
from tests.support import machine, torch

TAGS = [
    ("flash-attn", "2.7.4.post1+cu12torch2.5cxx11abiFALSE", ("2.5",), 12),
    ("flash-attn", "2.7.4.post1+cu12torch2.5cxx11abifalse", ("2.5",), 12),
    ("torch-scatter", "2.1.2+pt25cu124", ("2.5",), 12),
    ("torch-scatter", "2.1.0+pt113cu117", ("1.1", "1.13"), 11),
    ("natten", "0.17.3+torch250cu121", ("2.5", "2.50"), 12),
    ("natten", "0.21.0+torch2100cu130", ("2.1", "2.10"), 13),
    ("pytorch3d", "0.7.8+pt2.4.1cu121", ("2.4",), 12),
    ("exllamav2", "0.2.3+cu121.torch2.4.0", ("2.4",), 12),
    ("xformers", "0.0.28+cu118", (), 11),
]


@pytest.mark.parametrize(("name", "version", "releases", "cuda"), TAGS)
def test_tags(name: str, version: str, releases: tuple[str, ...], cuda: int) -> None:
    """The spellings that extension builders use."""
    tag = built(package(name, version))
    assert tag is not None
    assert (tag.torch, tag.cuda_major) == (releases, cuda)


def test_digits_with_two_readings() -> None:
    """`pt210` is 2.1.0 or 2.10: whichever is installed fits."""
    tag = built(package("torch-scatter", "2.1.2+pt210cu128"))
    assert tag is not None
    assert set(tag.torch) == {"2.1", "2.10"}


def test_distributions_that_are_no_extension() -> None:
    """A CUDA tag alone says nothing about torch."""
    assert built(package("cupy-cuda12x", "13.0.0")) is None
    assert built(package("torchvision", "0.23.0+cu128")) is None
    assert built(package("jaxlib", "0.4.30+cuda12.cudnn91")) is None


def test_flash_attn_for_another_torch() -> None:
    """Built for torch 2.5, installed beside 2.8."""
    found = only(
        machine(
            frameworks=(torch("2.8.0+cu128"),),
            packages=(
                package("torch", "2.8.0"),
                package("flash-attn", "2.7.4.post1+cu12torch2.5cxx11abiFALSE"),
            ),
        )
    )
    assert (found.id, found.severity, found.needed) == (
        "extension-built-for-other-torch",
        "error",
        "torch 2.5",
    )
    assert commands(found) == [
        '~/venv/bin/python -m pip install --force-reinstall "flash-attn==2.7.4.post1" --no-deps '
        "--no-cache-dir --no-build-isolation --no-binary flash-attn",
        '~/venv/bin/python -m pip install "torch==2.5.*"',
    ]


def test_the_tag_in_the_file_name_only() -> None:
    """The wheel was renamed; its metadata has a plain version."""
    renamed = package(
        "flash-attn",
        "2.8.3",
        build="flash_attn-2.8.3+cu12torch2.7cxx11abiTRUE-cp312-cp312-linux_x86_64",
    )
    snapshot = machine(
        frameworks=(torch("2.8.0+cu128"),), packages=(package("torch", "2.8.0"), renamed)
    )
    assert said(snapshot) == [("extension-built-for-other-torch", "error")]


def test_an_exact_requirement_of_native_code() -> None:
    """vLLM pins its torch: install that, or another vLLM."""
    vllm = package("vllm", "0.10.0", requires=("torch==2.7.1", "torchvision==0.22.1"))
    found = only(
        machine(frameworks=(torch("2.8.0+cu128"),), packages=(package("torch", "2.8.0"), vllm))
    )
    assert found.id == "extension-built-for-other-torch"
    assert commands(found) == [
        '~/venv/bin/python -m pip install "torch==2.7.1"',
        '~/venv/bin/python -m pip install --upgrade "vllm"',
    ]


@pytest.mark.parametrize(
    "extension",
    [
        package("flash-attn", "2.8.3+cu12torch2.8cxx11abiTRUE"),
        package("vllm", "0.11.0", requires=("torch==2.8.0",)),
        package("xformers", "0.0.32", requires=("torch>=2.8",)),
        package("some-library", "1.0", requires=("torch==2.0.0",)),
        package("flash-attn", "2.8.3"),
    ],
)
def test_extensions_that_fit_or_say_nothing(extension: object) -> None:
    """The same release, a range that holds, a pure Python library, no tag at all."""
    snapshot = machine(
        frameworks=(torch("2.8.0+cu128"),),
        packages=(package("torch", "2.8.0"), extension),  # type: ignore[arg-type]
    )
    assert said(snapshot) == []


def test_vendor_builds_follow_no_published_abi() -> None:
    """NGC's torch is a pre-release of its own."""
    snapshot = machine(
        frameworks=(
            torch("2.6.0a0+df5bbc09d1.nv24.12", cuda="12.6", origin="ngc", arches=("sm_90",)),
        ),
        packages=(
            package("torch", "2.6.0a0+df5bbc09d1.nv24.12"),
            package("flash-attn", "2.4.2+cu12torch2.5cxx11abiTRUE"),
        ),
    )
    assert said(snapshot) == []


def test_another_cuda_major() -> None:
    """A cu118 xformers beside torch for CUDA 12.8; another minor of 12 is fine."""

    def with_xformers(tag: str) -> list[tuple[str, str]]:
        return said(
            machine(
                frameworks=(torch("2.8.0+cu128"),),
                packages=(package("torch", "2.8.0"), package("xformers", f"0.0.32+{tag}")),
            )
        )

    assert with_xformers("cu118") == [("extension-built-for-other-cuda", "error")]
    assert with_xformers("cu126") == []
