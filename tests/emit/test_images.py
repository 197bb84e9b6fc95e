"""Which image an image starts from, and what is done to it."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import pytest

from envcheck.emit import dockerfile
from envcheck.emit.options import Options
from envcheck.errors import UsageError
from envcheck.matrix.schema import FrameworkImage
from envcheck.model.plan import Lock, Pin
from tests.emit.locks import MATRIX, example
from tests.support import evolve

DIGEST = "sha256:" + "0123456789abcdef" * 4


def emitted(lock: Lock, **options: Any) -> dict[str, str]:
    return dockerfile.files(lock, MATRIX, Options(**options))


def starts(lock: Lock, **options: Any) -> list[str]:
    """What each stage that is not based on another starts from."""
    text = emitted(lock, **options)["Dockerfile"]
    return [line for line in re.findall(r"^FROM (.+)$", text, re.M) if not line.startswith("base")]


def for_python(lock: Lock, python: str, os: str | None) -> Lock:
    return evolve(lock, {"stack.python": python, "target.python": python, "stack.os": os})


TORCH = example()


@pytest.mark.parametrize(
    ("python", "os", "image"),
    [
        ("3.12", "ubuntu24.04", "ubuntu:24.04"),
        ("3.10", "ubuntu22.04", "ubuntu:22.04"),
        ("3.11", "ubuntu24.04", "python:3.11-slim-trixie"),
        ("3.12", "debian12", "python:3.12-slim-bookworm"),
        ("3.13", "rhel9", "python:3.13-slim-trixie"),
        ("3.12", None, "python:3.12-slim-trixie"),
    ],
)
def test_runtime_starts_from_a_system_with_the_python(
    python: str, os: str | None, image: str
) -> None:
    assert starts(for_python(TORCH, python, os)) == [f"{image} AS base"]


def test_another_system_is_said_to_be_another() -> None:
    text = emitted(for_python(TORCH, "3.11", "ubuntu24.04"))["Dockerfile"]
    note = "# No image of ubuntu24.04 has Python 3.11, so this is another system.\nFROM "
    assert note in text


@pytest.mark.parametrize(
    ("cuda", "python", "image"),
    [
        ("12.8", "3.12", "nvidia/cuda:12.8.1-devel-ubuntu24.04"),
        ("12.6", "3.10", "nvidia/cuda:12.6.3-devel-ubuntu22.04"),
        ("13.0", "3.12", "nvidia/cuda:13.0.2-devel-ubuntu24.04"),
        ("12", "3.12", "nvidia/cuda:12.9.1-devel-ubuntu24.04"),
    ],
)
def test_devel_starts_from_the_matching_toolkit(cuda: str, python: str, image: str) -> None:
    lock = evolve(example("jax-ubuntu24.04"), {"stack.frameworks.0.cuda": cuda})
    assert starts(for_python(lock, python, None), profile="devel") == [f"{image} AS base"]


def test_devel_takes_the_nearest_toolkit_of_the_major_and_says_so() -> None:
    lock = evolve(TORCH, {"stack.frameworks.0.cuda": "13.1", "target.arches": ("9.0",)})
    text = emitted(lock, profile="devel")["Dockerfile"]
    assert "# No CUDA 13.1 image of ubuntu24.04 is known: 13.0.2, of the same major" in text
    assert "FROM nvidia/cuda:13.0.2-devel-ubuntu24.04 AS base\n" in text


@pytest.mark.parametrize(
    ("changes", "options", "words"),
    [
        ({"stack.python": "3.11"}, {"profile": "devel"}, "none has Python 3.11: there are 3.10"),
        ({"stack.python": "3.9"}, {}, "the lock is for Python 3.9, and envcheck in the image"),
        ({"stack.python": "3.19"}, {}, "no image with Python 3.19 is known: there are 3.10, 3.11"),
        ({"stack.frameworks.0.cuda": "14.0"}, {"profile": "devel"}, "no CUDA 14.0 image"),
        (
            {"stack.frameworks.0.cuda": "11.8", "stack.python": "3.10"},
            {"profile": "devel"},
            "does not compile for 12.0",
        ),
        ({}, {"profile": "ngc"}, "no NGC image with torch"),
        ({}, {"base": "python:3.11-slim-trixie"}, "has Python 3.11, the lock 3.12"),
        (
            {},
            {"profile": "ngc", "base": "nvcr.io/nvidia/jax:25.10-py3"},
            "brings jax 0.7.2, and the lock torch",
        ),
        ({}, {"extensions": ("xformers",)}, "xformers is not in the lock"),
        ({}, {"extensions": ("torch",)}, "torch is the framework"),
    ],
)
def test_what_no_image_fits_is_refused(
    changes: dict[str, Any], options: dict[str, Any], words: str
) -> None:
    with pytest.raises(UsageError, match=re.escape(words)):
        emitted(evolve(TORCH, changes), **options)


@pytest.mark.parametrize("profile", ["devel", "ngc"])
def test_a_stack_for_the_cpu_has_no_toolkit(profile: str) -> None:
    with pytest.raises(UsageError, match="for the CPU"):
        emitted(example("torch-debian12"), profile=profile)
    with pytest.raises(UsageError, match=r"^--with: nvitop is for GPUs"):
        emitted(example("torch-debian12"), tools=("nvitop",))


def test_ngc_is_of_the_release_the_python_and_the_cuda_major() -> None:
    lock = example("torch-2.11-ubuntu24.04")
    assert starts(lock, profile="ngc") == ["nvcr.io/nvidia/pytorch:26.03-py3 AS base"]
    made = emitted(lock, profile="ngc")
    pins = [line for line in made["requirements.txt"].splitlines() if not line.startswith("#")]
    assert pins == ["transformers==5.24.0"]
    with pytest.raises(UsageError, match="brings one framework, and the lock has torch"):
        emitted(example("torch-jax-ubuntu24.04"), profile="ngc")


def test_a_known_digest_is_used_and_the_tag_a_comment() -> None:
    lock = evolve(TORCH, {"stack.frameworks.0.cuda": "13.4"})
    base = "nvcr.io/nvidia/pytorch:26.08-py3"
    text = emitted(lock, profile="ngc", base=base)["Dockerfile"]
    (row,) = MATRIX.find(FrameworkImage, tag="26.08-py3")
    assert f"# {base}\nFROM nvcr.io/nvidia/pytorch@{row.digest} AS base\n" in text
    assert f'org.opencontainers.image.base.digest="{row.digest}"' in text


def test_a_named_base_may_have_a_digest_of_its_own() -> None:
    text = emitted(TORCH, base=f"ubuntu:24.04@{DIGEST}")["Dockerfile"]
    assert f"# ubuntu:24.04\nFROM ubuntu@{DIGEST} AS base\n" in text
    assert "python3.12=3.12.*" in text
    text = emitted(TORCH, base=f"registry.example.org:5000/team/base@{DIGEST}")["Dockerfile"]
    assert f"\nFROM registry.example.org:5000/team/base@{DIGEST} AS base\n" in text
    assert "apt-get" not in text


def test_a_base_with_another_python_in_its_archive_must_bring_the_right_one() -> None:
    lock = for_python(TORCH, "3.11", "ubuntu24.04")
    text = emitted(lock, base="example.org/mine:1-ubuntu24.04")["Dockerfile"]
    assert "apt-get" not in text
    assert "python3.11 -m venv /opt/venv" in text


# -- forward compatibility, and what images require ------------------------------------------------


@pytest.mark.parametrize(
    ("gpu", "stated", "removed"),
    [
        ("GeForce RTX 5090", None, True),
        ("GeForce RTX 5090", False, True),
        ("H100", None, False),
        ("H100", True, False),
        ("H100", False, True),
    ],
)
def test_geforce_gets_no_forward_compatibility(
    gpu: str, stated: bool | None, removed: bool
) -> None:
    lock = evolve(TORCH, {"target.gpus": (gpu,), "target.forward_compat": stated})
    text = emitted(lock, profile="devel")["Dockerfile"]
    assert ("RUN dpkg --purge cuda-compat-12-8 \\\n" in text) == removed
    assert ("rm -rf /usr/local/cuda/compat" in text) == removed
    assert "compat" not in emitted(lock)["Dockerfile"]  # a plain system has none


@pytest.mark.parametrize(
    ("driver", "ignored"), [("535.183.06", True), ("570.124.06", False), ("580", False)]
)
def test_an_older_driver_of_the_major_is_not_refused_by_the_base(
    driver: str, ignored: bool
) -> None:
    lock = evolve(TORCH, {"target.driver": driver})
    assert ("NVIDIA_DISABLE_REQUIRE" in emitted(lock, profile="devel")["Dockerfile"]) == ignored
    assert "NVIDIA_DISABLE_REQUIRE" not in emitted(lock)["Dockerfile"]


# -- tools and extensions --------------------------------------------------------------------------


def test_tools_come_from_where_they_are() -> None:
    made = emitted(TORCH, tools=("nsys", "dcgm", "nvitop"))
    text = made["Dockerfile"]
    keyring = "/compute/cuda/repos/ubuntu2404/x86_64/cuda-keyring_1.1-1_all.deb /tmp/nvidia.deb"
    assert keyring in text
    assert "datacenter-gpu-manager-4-cuda12=1:4*" in text
    assert "nsight-systems-cli=20*" in text
    assert "ln -s /opt/tools/bin/nvitop /usr/local/bin/nvitop" in text
    assert re.search(r"^nvitop==[0-9.]+$", made["requirements-tools.txt"], re.MULTILINE)
    assert "nvitop" not in made["requirements.txt"]
    devel = emitted(TORCH, tools=("nsys",), profile="devel")["Dockerfile"]
    assert "keyring" not in devel  # CUDA images have NVIDIA's repository
    assert "nsight-systems-cli=20*" in devel


def test_aarch64_has_a_repository_of_its_own() -> None:
    text = emitted(example("torch-aarch64-ubuntu24.04"), tools=("nsys",))["Dockerfile"]
    assert "/compute/cuda/repos/ubuntu2404/sbsa/cuda-keyring_1.1-1_all.deb" in text


def test_ngc_has_a_profiler_and_unknown_packages() -> None:
    lock = example("torch-2.11-ubuntu24.04")
    assert "nsight" not in emitted(lock, profile="ngc", tools=("nsys",))["Dockerfile"]
    with pytest.raises(UsageError, match=r"^--with dcgm: which package nvcr\.io"):
        emitted(lock, profile="ngc", tools=("dcgm",))


def test_what_comes_as_source_is_compiled_unasked() -> None:
    lock = example("torch-flash-attn-ubuntu24.04")
    made = emitted(lock)
    assert "flash-attn" not in made["requirements.txt"]
    assert "flash-attn==" in made["requirements-extensions.txt"]
    assert {"ninja", "setuptools", "wheel", "packaging", "psutil"} <= {
        line.partition("==")[0] for line in made["requirements-build.txt"].splitlines()
    }
    assert starts(lock) == [
        "nvidia/cuda:13.2.1-devel-ubuntu24.04 AS extensions",
        "ubuntu:24.04 AS base",
    ]
    text = made["Dockerfile"]
    assert 'TORCH_CUDA_ARCH_LIST="9.0"' in text
    # A cached wheel would be taken again for another torch; a published one is not compiled.
    assert "-m pip wheel --no-cache-dir --no-build-isolation --no-deps" in text
    assert "\n--no-binary flash-attn\n" in made["requirements-extensions.txt"]
    assert "pip install \\\n      -r requirements.txt /wheels/*.whl\n" in text


def test_other_packages_are_compiled_on_request() -> None:
    pin = Pin(name="deepspeed", version="0.19.6")
    lock = dataclasses.replace(
        TORCH, stack=dataclasses.replace(TORCH.stack, pins=(*TORCH.stack.pins, pin))
    )
    assert "deepspeed==0.19.6" in emitted(lock)["requirements.txt"]
    made = emitted(lock, extensions=("deepspeed",))
    assert "deepspeed" not in made["requirements.txt"]
    assert "deepspeed==0.19.6" in made["requirements-extensions.txt"]
