"""Requirement lines and their markers."""

from __future__ import annotations

import pytest

from envcheck.rules.requirements import parse, required
from tests.rules.stack import package
from tests.support import evolve, machine


@pytest.mark.parametrize(
    ("line", "name", "extras", "bounds"),
    [
        ("torch==2.8.0", "torch", (), (("==", "2.8.0"),)),
        ("torch (==1.12.0)", "torch", (), (("==", "1.12.0"),)),
        (
            "cuda-toolkit[cublas,cudart]==13.0.2",
            "cuda-toolkit",
            ("cublas", "cudart"),
            (("==", "13.0.2"),),
        ),
        ("numpy<2.0.0,>=1.23.5", "numpy", (), (("<", "2.0.0"), (">=", "1.23.5"))),
        ("Typing_Extensions>=4.10.0", "typing-extensions", (), ((">=", "4.10.0"),)),
        ("filelock", "filelock", (), ()),
    ],
)
def test_lines(
    line: str, name: str, extras: tuple[str, ...], bounds: tuple[tuple[str, str], ...]
) -> None:
    """Old and new spellings."""
    parsed = parse(line)
    assert parsed is not None
    assert (parsed[0].name, parsed[0].extras, parsed[0].bounds) == (name, extras, bounds)


@pytest.mark.parametrize(
    ("marker", "holds"),
    [
        ('platform_system == "Linux" and platform_machine == "x86_64"', True),
        ('platform_system == "Linux" and platform_machine == "aarch64"', False),
        ('sys_platform != "win32"', True),
        ('python_version < "3.15"', True),
        ('python_version >= "3.9"', True),
        ('python_version < "3.9"', False),
        ('"linux" in sys_platform', True),
        ('platform_machine not in "aarch64 arm64"', True),
        ('(python_version < "3.9" or python_version >= "3.12") and os_name == "posix"', True),
        ('extra == "with-cuda"', False),
        ('unheard_of == "1"', False),
        ("this is no marker", False),
    ],
)
def test_markers(marker: str, holds: bool) -> None:
    """True, false, and what is not understood counts as not required."""
    found = list(required(machine(), package("x", "1", requires=(f"y==1; {marker}",))))
    assert bool(found) is holds


def test_extras_that_were_asked_for() -> None:
    """A requirement of an extra applies once the extra does."""
    plugin = package("x", "1", requires=('y>=1; extra == "with-cuda"',))
    assert [each.name for each in required(machine(), plugin, extras=("with-cuda",))] == ["y"]


def test_the_target_platform_decides() -> None:
    """The same wheel list on aarch64."""
    line = 'y==1; platform_system == "Linux" and platform_machine == "x86_64"'
    arm = evolve(machine(), {"env.python.platform": "linux_aarch64"})
    assert list(required(arm, package("x", "1", requires=(line,)))) == []


@pytest.mark.parametrize(
    ("bounds", "version", "allowed"),
    [
        ("==2.8.0", "2.8.0+cu128", True),
        ("==2.8.0", "2.8.1", False),
        ("==13.0.96.*", "13.0.96", True),
        ("==13.0.96.*", "13.0.88", False),
        ("~=3.8.0", "3.8.2", True),
        ("~=3.8.0", "3.9.0", False),
        ("!=2.1.0", "2.1.0", False),
        (">=2.0,<3", "2.9.1", True),
        (">=2.0", "unknown", None),
        ("", "1.0", True),
    ],
)
def test_allows(bounds: str, version: str, allowed: bool | None) -> None:
    """Local tags do not count; a text that is no version is not judged."""
    parsed = parse(f"y{bounds}")
    assert parsed is not None
    assert parsed[0].allows(version) is allowed
