"""What a start of envcheck may import, checked by name, which does not vary as times do."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.cli.runner import environment

HEAVY = {
    "asyncio",
    "distro",
    "docker",
    "importlib.metadata",
    "jinja2",
    "packaging",
    "pynvml",
    "rich",
    "shtab",
    "subprocess",
    "torch",
}


def imported(*args: str) -> set[str]:
    """Modules that `python -m envcheck ARGS` imports, beyond those that a bare start imports."""
    bare = _names([sys.executable, "-X", "importtime", "-c", ""])
    return _names([sys.executable, "-X", "importtime", "-m", "envcheck", *args]) - bare


def _names(command: list[str]) -> set[str]:
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment(), cwd="/", timeout=60, check=False
    )
    return {
        match.group(1)
        for line in done.stderr.splitlines()
        if (match := re.match(r"import time:\s+\d+ \|\s+\d+ \|\s+(\S+)$", line))
    }


def _heavy(names: set[str]) -> set[str]:
    return {
        heavy for heavy in HEAVY for name in names if name == heavy or name.startswith(f"{heavy}.")
    }


@pytest.mark.parametrize("args", [("--help",), ("doctor", "--help"), ("--version",)])
def test_help_imports_nothing_heavy(args: tuple[str, ...]) -> None:
    names = imported(*args)
    assert "envcheck.cli" in names
    assert _heavy(names) == set()
    own = {
        name
        for name in names
        if name.startswith("envcheck") and not name.startswith("envcheck.arguments")
    }
    assert own <= {
        "envcheck",
        "envcheck.__main__",
        "envcheck.cli",
        "envcheck.commands",
        "envcheck.commands.output",
        "envcheck.errors",
        "envcheck.helptext",
        "envcheck.report",
        "envcheck.report.foreign",
        "envcheck.spelling",
    }


def test_a_json_report_needs_neither_rich_nor_a_framework() -> None:
    names = imported("doctor", "--json")
    assert "envcheck.engine" in names
    assert _heavy(names) <= {"distro", "subprocess"}


def test_importing_the_package_imports_nothing_else() -> None:
    script = "import sys, envcheck; print(*sorted(m for m in sys.modules if 'envcheck' in m))"
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        env=environment(),
        cwd="/",
        timeout=60,
        check=True,
    )
    assert done.stdout.split() == ["envcheck"]
