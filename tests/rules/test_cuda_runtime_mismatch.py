"""cuda-runtime-mismatch."""

from __future__ import annotations

import pytest

from tests.rules.stack import commands, only, said, torch_28_wheels
from tests.support import machine, torch


@pytest.mark.parametrize(
    ("stem", "version", "expected"),
    [
        ("runtime", "12.8.57", []),
        ("runtime", "12.9.79", []),
        ("runtime", "12.4.127", [("cuda-runtime-mismatch", "warning")]),
        ("runtime", "11.8.89", [("cuda-runtime-mismatch", "error")]),
        ("nvjitlink", "12.4.127", [("cuda-runtime-mismatch", "error")]),
        ("nvjitlink", "12.9.86", []),
        ("cublas", "12.9.1.4", []),
    ],
)
def test_installed_against_pinned(stem: str, version: str, expected: list[tuple[str, str]]) -> None:
    """Patches and newer minors fit; older minors do not, and nvJitLink is strict about it."""
    snapshot = machine(
        frameworks=(torch("2.8.0+cu128"),), packages=torch_28_wheels(**{stem: version})
    )
    assert said(snapshot) == expected


def test_fix_puts_the_pinned_version_back() -> None:
    """Without touching anything else."""
    found = only(
        machine(frameworks=(torch("2.8.0+cu128"),), packages=torch_28_wheels(nvjitlink="12.4.127"))
    )
    assert commands(found) == [
        "~/venv/bin/python -m pip install --force-reinstall --no-deps "
        '"nvidia-nvjitlink-cu12==12.8.93"'
    ]
    assert found.needed == "nvidia-nvjitlink-cu12 12.8.93, which torch 2.8.0 requires"
