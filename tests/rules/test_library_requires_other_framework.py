"""library-requires-other-framework."""

from __future__ import annotations

import pytest

from envcheck.model.environment import Framework
from tests.rules.stack import commands, only, package, report, said
from tests.support import machine, torch


def _ids(*packages: object, frameworks: tuple[Framework, ...]) -> list[tuple[str, str]]:
    return said(machine(frameworks=frameworks, packages=packages))  # type: ignore[arg-type]


def test_the_librarys_own_metadata() -> None:
    """Transformers 5 asks for torch 2.4 in the extra that is named after it."""
    wanted = package("transformers", "5.1.0", requires=('torch>=2.4; extra == "torch"',))
    found = only(
        machine(
            frameworks=(torch("2.2.2+cu121"),),
            packages=(package("torch", "2.2.2"), wanted),
        )
    )
    assert (found.id, found.severity) == ("library-requires-other-framework", "error")
    assert found.needed == "torch>=2.4"
    assert found.found == "transformers 5.1.0 with torch 2.2.2"
    assert commands(found) == [
        '~/venv/bin/python -m pip install --upgrade "transformers"',
    ]


@pytest.mark.parametrize(
    ("library", "version", "installed", "expected"),
    [
        # Rows of exactly this version.
        ("accelerate", "1.15.0", "2.0.0+cu118", []),
        ("accelerate", "1.15.0", "1.13.1+cu117", ["error"]),
        ("bitsandbytes", "0.50.2", "2.3.1+cu121", ["error"]),
        ("bitsandbytes", "0.50.2", "2.8.0+cu128", []),
        # No row of its own: both neighbours, 1.9.0 and 1.10.1, ask for the same.
        ("accelerate", "1.10.0", "1.13.1+cu117", ["error"]),
        # The neighbours differ, 0.45.5 accepts 2.1 and 0.46.0 does not: not known.
        ("bitsandbytes", "0.45.9", "2.1.2+cu121", []),
        # Beyond the table, and not in it.
        ("accelerate", "99.0", "1.13.1+cu117", []),
        ("nobody-knows", "1.0", "1.13.1+cu117", []),
    ],
)
def test_the_tables_rows(library: str, version: str, installed: str, expected: list[str]) -> None:
    public = installed.partition("+")[0]
    found = _ids(
        package("torch", public), package(library, version), frameworks=(torch(installed),)
    )
    assert [s for id, s in found if id == "library-requires-other-framework"] == expected


def test_newer_than_the_range_is_a_warning() -> None:
    cautious = package("lightning", "2.6.0", requires=("torch<2.7,>=2.1",))
    found = _ids(package("torch", "2.8.0"), cautious, frameworks=(torch("2.8.0+cu128"),))
    assert ("library-requires-other-framework", "warning") in found


def test_a_vendors_preview_does_not_sort_beside_releases() -> None:
    wanted = package("lightning", "2.6.0", requires=("torch>=2.6",))
    found = _ids(
        package("torch", "2.6.0a0+df5bbc09d1.nv24.12"),
        wanted,
        frameworks=(torch("2.6.0a0+df5bbc09d1.nv24.12", origin="ngc", cuda="12.6"),),
    )
    assert found == []


def test_flax_and_jax() -> None:
    old = Framework(name="jax", version="0.4.30", origin="index")
    found = report(
        machine(
            frameworks=(old,),
            packages=(package("jax", "0.4.30"), package("flax", "0.11.2")),
        )
    )
    mine = [each for each in found.findings if each.id == "library-requires-other-framework"]
    assert [(each.severity, each.needed) for each in mine] == [("error", "jax>=0.6.0")]


def test_what_is_compiled_against_torch_is_told_by_its_own_finding() -> None:
    found = _ids(
        package("torch", "2.6.0"), package("vllm", "0.25.1"), frameworks=(torch("2.6.0+cu124"),)
    )
    assert [id for id, _ in found] == ["extension-built-for-other-torch"]
