"""Runs envcheck as users do: in a process of its own, from a folder that is not the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import envcheck

_ELSEWHERE = Path(__file__).anchor


def environment(**changes: str | None) -> dict[str, str]:
    """This process's environment with some variables set, or taken away by None."""
    variables = {**os.environ, "NO_COLOR": "", "FORCE_COLOR": "", "COLUMNS": "80"}
    home = Path(envcheck.__file__).resolve().parents[1]
    if "site-packages" not in home.parts:  # tests of a checkout that is not installed
        variables["PYTHONPATH"] = str(home)
    for name, value in changes.items():
        variables.pop(name, None)
        if value is not None:
            variables[name] = value
    return variables


def run_cli(
    *args: str, cwd: str | Path = _ELSEWHERE, text: bool = True, **settings: Any
) -> subprocess.CompletedProcess[Any]:
    """Run `python -m envcheck` to its end; both outputs are kept."""
    settings.setdefault("env", environment())
    settings.setdefault("stdout", subprocess.PIPE)
    settings.setdefault("stderr", subprocess.PIPE)
    return subprocess.run(
        [sys.executable, "-m", "envcheck", *args],
        cwd=cwd,
        text=text,
        timeout=60,
        check=False,
        **settings,
    )
