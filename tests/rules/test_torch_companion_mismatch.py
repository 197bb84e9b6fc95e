"""torch-companion-mismatch."""

from __future__ import annotations

import pytest

from envcheck.model.environment import Framework, Package
from tests.rules.stack import commands, only, package, said
from tests.support import evolve, machine, torch

VISION = package("torchvision", "0.23.0", requires=("numpy", "torch==2.8.0"))


def test_the_companions_own_requirement() -> None:
    """torchvision 0.22.1 asks for torch 2.7.1."""
    old = package("torchvision", "0.22.1", requires=("numpy", "torch==2.7.1"))
    found = only(
        machine(frameworks=(torch("2.8.0+cu128"),), packages=(package("torch", "2.8.0"), old))
    )
    assert (found.id, found.severity) == ("torch-companion-mismatch", "error")
    assert found.needed == "torch==2.7.1, which torchvision requires"
    assert commands(found) == [
        '~/venv/bin/python -m pip install --force-reinstall "torch==2.8.0" "torchvision==0.23.0" '
        "--index-url https://download.pytorch.org/whl/cu128"
    ]


@pytest.mark.parametrize(
    ("version", "companion", "expected"),
    [
        ("2.8.0+cu128", package("torchvision", "0.23.0"), []),
        ("2.8.0+cu128", package("torchvision", "0.15.2"), ["error"]),
        ("2.0.1+cu117", package("torchvision", "0.23.0"), ["error"]),
        ("2.8.0+cu128", package("torchaudio", "2.8.0"), []),
        ("2.8.0+cu128", package("torchaudio", "2.7.1"), ["error"]),
        ("2.8.0+cu128", package("torchaudio", "2.9.0"), ["error"]),
        ("2.15.0+cu132", package("torchaudio", "2.11.1"), []),
        ("3.1.0+cu132", package("torchvision", "0.23.0"), []),
    ],
)
def test_the_tables_pairs(version: str, companion: Package, expected: list[str]) -> None:
    """A list without requirements is judged by the table, when it has the torch."""
    snapshot = machine(
        driver="610.47",
        cuda="13.3",
        frameworks=(torch(version),),
        packages=(package("torch", version), companion),
    )
    found = [severity for id, severity in said(snapshot) if id == "torch-companion-mismatch"]
    assert found == expected


@pytest.mark.parametrize(
    ("tag", "expected"),
    [
        ("cu128", []),
        ("cu126", [("torch-companion-mismatch", "warning")]),
        ("cu118", [("torch-companion-mismatch", "error")]),
        ("cpu", [("torch-companion-mismatch", "error")]),
    ],
)
def test_the_variant(tag: str, expected: list[tuple[str, str]]) -> None:
    """Another CUDA major or none is an error, another minor a warning."""
    vision = package("torchvision", f"0.23.0+{tag}", requires=("torch==2.8.0",))
    snapshot = machine(
        frameworks=(torch("2.8.0+cu128"),), packages=(package("torch", "2.8.0"), vision)
    )
    assert said(snapshot) == expected


def test_a_companion_that_was_read_itself() -> None:
    """Without a tag, the CUDA release of its own version file counts."""
    snapshot = machine(
        frameworks=(
            torch("2.8.0+cu128"),
            Framework(name="torchvision", version="0.23.0", cuda="11.8", origin="index"),
        ),
        packages=(package("torch", "2.8.0"), VISION),
    )
    assert said(snapshot) == [("torch-companion-mismatch", "error")]


def test_conda_pairs_are_condas_business() -> None:
    """Versions of other builds are not judged by the wheels' table."""
    snapshot = evolve(
        machine(
            frameworks=(torch("2.8.0", cuda="12.9", origin="conda-forge", arches=("sm_90",)),),
            packages=(package("torch", "2.8.0"), package("torchvision", "0.22.0")),
        ),
        {},
    )
    assert said(snapshot) == []


@pytest.mark.parametrize(
    ("torch_version", "vision", "expected"),
    [
        # The index had the build for CUDA 10.2 of these.
        ("1.10.1+cu113", "0.11.2", ["error"]),
        ("1.10.1+cu113", "0.11.2+cu113", []),
        # The index's build for 12.6, and its own site's for 12.4: one major.
        ("2.6.0+cu118", "0.21.0", ["error"]),
        ("2.6.0+cu126", "0.21.0", []),
        # Not a pair of the table: the version is what is wrong, and is said so.
        ("2.6.0+cu118", "0.20.0", ["error"]),
    ],
)
def test_a_companion_of_the_package_index(
    torch_version: str, vision: str, expected: list[str]
) -> None:
    snapshot = machine(
        frameworks=(torch(torch_version, origin="framework-index"),),
        packages=(package("torch", torch_version), package("torchvision", vision)),
    )
    found = [severity for id, severity in said(snapshot) if id == "torch-companion-mismatch"]
    assert found == expected
