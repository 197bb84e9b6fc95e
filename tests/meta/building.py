"""Builds what is published, as `pip install .` and a release do it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.cli.runner import environment


def build(checkout: Path, out: Path, *targets: str) -> None:
    """Build `wheel`, `sdist` or both of a checkout into a folder."""
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "hatchling",
            "build",
            "-d",
            str(out),
            *(word for target in targets for word in ("-t", target)),
        ],
        cwd=checkout,
        capture_output=True,
        text=True,
        env=environment(PYTHONPATH=None),
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
