"""Requirements as wheels of different years write them."""

from __future__ import annotations

import pytest

from envcheck.refresh.metadata import Requirement, environment, parse

TEXT = """\
Metadata-Version: 2.1
Name: thing
Requires-Python: >=3.8.0
Requires-Dist: nvidia-cudnn-cu11 (==8.5.0.96) ; platform_system == "Linux"
Requires-Dist: Nvidia_NCCL.cu12==2.27.3; platform_machine == "x86_64"
Requires-Dist: cuda-toolkit[cublas,cuDArt]==13.2.2; python_version < "3.15"
Requires-Dist: triton ~= 3.9.0
Requires-Dist: anything
Requires-Dist: nvidia-cuda-nvcc-cu12 (>=12.1) ; extra == 'with_cuda'
Requires-Dist: extra-thing>=1; extra == "and-cuda"
Requires-Dist: from-a-place @ https://a.example/x.whl
Requires-Dist: odd>=1; no marker at all
Provides-Extra: with_cuda
Provides-Extra: and-cuda

Requires-Dist: described>=1
"""


def test_headers() -> None:
    found = parse(TEXT.replace("\n", "\r\n"))
    assert found.requires_python == ">=3.8.0"
    assert found.extras == ("with_cuda", "and-cuda")
    assert found.requires[:5] == (
        Requirement(
            name="nvidia-cudnn-cu11", specifier="==8.5.0.96", marker='platform_system == "Linux"'
        ),
        Requirement(
            name="nvidia-nccl-cu12", specifier="==2.27.3", marker='platform_machine == "x86_64"'
        ),
        Requirement(
            name="cuda-toolkit",
            extras=("cublas", "cudart"),
            specifier="==13.2.2",
            marker='python_version < "3.15"',
        ),
        Requirement(name="triton", specifier="~=3.9.0"),
        Requirement(name="anything"),
    )
    assert {each.name for each in found.requires[5:]} == {
        "nvidia-cuda-nvcc-cu12",
        "extra-thing",
        "odd",
    }


def test_what_applies_where() -> None:
    found = parse(TEXT)

    def names(platform: str, python: str) -> list[str]:
        return [each.name for each in found.applying(environment(platform, python))]

    always = ["triton", "anything"]
    assert names("linux_x86_64", "cp312") == [
        "nvidia-cudnn-cu11",
        "nvidia-nccl-cu12",
        "cuda-toolkit",
        *always,
    ]
    assert names("linux_aarch64", "cp315t") == ["nvidia-cudnn-cu11", *always]


@pytest.mark.parametrize(
    ("extra", "added"),
    [
        ("with-cuda", ["nvidia-cuda-nvcc-cu12"]),
        ("with_cuda", ["nvidia-cuda-nvcc-cu12"]),
        ("and_cuda", ["extra-thing"]),
        ("and-cuda", ["extra-thing"]),
        ("rocm", []),
    ],
)
def test_an_extra_in_either_spelling(extra: str, added: list[str]) -> None:
    found = parse(TEXT).of_extra(extra, environment("linux_x86_64", "cp312"))
    assert [each.name for each in found] == added


@pytest.mark.parametrize(
    ("specifier", "exact"),
    [
        ("==2.27.3", "2.27.3"),
        ("~=3.9.0", "~=3.9.0"),
        ("<10.0,>=9.8", "<10.0,>=9.8"),
        ("==2.*", "==2.*"),
        ("===2.0", "===2.0"),
        ("==2.0,!=2.0.1", "==2.0,!=2.0.1"),
        ("", ""),
    ],
)
def test_an_exact_requirement_is_a_version(specifier: str, exact: str) -> None:
    assert Requirement(name="x", specifier=specifier).exact == exact


def test_a_folded_line_and_no_description() -> None:
    found = parse('Requires-Dist: a>=1;\n  python_version > "3.0"\nName: x')
    assert found.requires == (
        Requirement(name="a", specifier=">=1", marker='python_version > "3.0"'),
    )
    assert (found.requires_python, found.extras) == (None, ())
