"""An environment with real frameworks, made once and kept between runs of the tests."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

WANTED = ("torch==2.13.0", "jax")
_NOT_THERE = ("No matching distribution found", "Could not find a version")


@pytest.fixture(scope="session")
def frameworks(pytestconfig: pytest.Config) -> Path:
    """Interpreter that has torch and jax for the CPU.

    `ENVCHECK_TEST_PYTHON` names one that is there already.
    """
    given = os.environ.get("ENVCHECK_TEST_PYTHON")
    if given:
        return Path(given)
    tag = f"cp{sys.version_info.major}{sys.version_info.minor}"
    assert pytestconfig.cache is not None
    folder = pytestconfig.cache.mkdir(f"smoke-{tag}-{'-'.join(WANTED).replace('=', '')}")
    python = folder / "bin" / "python"
    complete = folder / "complete"
    if not complete.exists():
        venv.create(folder, with_pip=True, clear=True, symlinks=True)
        command = [str(python), "-m", "pip", "install", "--quiet", *WANTED]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
        if done.returncode != 0 and any(each in done.stderr for each in _NOT_THERE):
            pytest.skip(f"the package index has no {' or '.join(WANTED)} for {tag}")
        assert done.returncode == 0, done.stderr
        complete.touch()
    return python
