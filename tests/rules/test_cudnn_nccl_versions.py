"""cudnn-version-mismatch and nccl-version-mismatch."""

from __future__ import annotations

import pytest

from envcheck.model.environment import Framework
from tests.rules.stack import (
    SITE,
    commands,
    library,
    only,
    package,
    said,
    torch_28_wheels,
)
from tests.support import evolve, machine, torch


@pytest.mark.parametrize(
    ("stem", "version", "expected"),
    [
        ("cudnn", "9.10.2.21", []),
        ("cudnn", "9.14.0.64", []),
        ("cudnn", "9.1.0.70", [("cudnn-version-mismatch", "warning")]),
        ("cudnn", "8.9.7.29", [("cudnn-version-mismatch", "error")]),
        ("nccl", "2.27.5", []),
        ("nccl", "2.28.9", []),
        ("nccl", "2.21.5", [("nccl-version-mismatch", "warning")]),
        ("nccl", "3.0.1", [("nccl-version-mismatch", "error")]),
    ],
)
def test_installed_against_pinned(stem: str, version: str, expected: list[tuple[str, str]]) -> None:
    """Another major is an error, an older version a warning, a newer one fits."""
    snapshot = machine(
        frameworks=(torch("2.8.0+cu128"),), packages=torch_28_wheels(**{stem: version})
    )
    assert said(snapshot) == expected


def test_fix_puts_the_pinned_version_back() -> None:
    """Only that wheel."""
    found = only(
        machine(frameworks=(torch("2.8.0+cu128"),), packages=torch_28_wheels(cudnn="9.1.0.70"))
    )
    assert (found.component, found.subject) == ("cudnn", "nvidia-cudnn-cu12 9.1.0.70")
    assert commands(found) == [
        "~/venv/bin/python -m pip install --force-reinstall --no-deps "
        '"nvidia-cudnn-cu12==9.10.2.21"'
    ]


def test_a_wheel_that_is_not_loaded_is_not_judged() -> None:
    """The system's NCCL wins and fits: the old wheel does not matter."""
    snapshot = evolve(
        machine(frameworks=(torch("2.8.0+cu128"),), packages=torch_28_wheels(nccl="2.21.5")),
        {"env.libraries": (library("nccl", "2.28.9", "/usr/lib/libnccl.so.2", origin="system"),)},
    )
    assert said(snapshot) == []


def test_lower_bounds_of_a_jax_plugin() -> None:
    """JAX asks for at least a version; older is a warning, newer fits."""

    def with_cudnn(version: str) -> list[tuple[str, str]]:
        plugin = package(
            "jax-cuda12-plugin",
            "0.9.2",
            location=SITE,
            requires=('nvidia-cudnn-cu12<10.0,>=9.8; extra == "with-cuda"',),
        )
        return said(
            machine(
                frameworks=(Framework(name="jax", version="0.9.2", cuda="12", origin="index"),),
                packages=(
                    package("jaxlib", "0.9.2"),
                    plugin,
                    package("nvidia-cudnn-cu12", version),
                ),
            )
        )

    assert with_cudnn("9.8.0.87") == []
    assert with_cudnn("9.18.1.3") == []
    assert with_cudnn("9.1.0.70") == [("cudnn-version-mismatch", "warning")]
