"""An environment with real frameworks, made once and kept between runs of the tests."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from envcheck.paths import payload

WANTED = ("torch==2.13.0", "jax")
_NOT_THERE = ("No matching distribution found", "Could not find a version")


@pytest.fixture(scope="session")
def frameworks() -> Path:
    """Interpreter that has torch and jax for the CPU.

    `ENVCHECK_TEST_PYTHON` names one that is there already.
    """
    given = os.environ.get("ENVCHECK_TEST_PYTHON")
    if given:
        return Path(given)
    tag = f"cp{sys.version_info.major}{sys.version_info.minor}"
    # Beside the wheels for the containers' tests, for all checkouts.
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "envcheck-tests"
    folder = home / f"smoke-{tag}-{'-'.join(WANTED).replace('=', '')}"
    folder.mkdir(parents=True, exist_ok=True)
    python = folder / "bin" / "python"
    with (home / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        complete = folder / "complete"
        if not (complete.exists() and python.exists()):
            venv.create(folder, with_pip=True, clear=True, symlinks=True)
            _install(python, tag)
            complete.touch()
    return python


def _install(python: Path, tag: str) -> None:
    # Compiled is only what the tests import, by two processes at a time: pip compiles everything.
    command = [str(python), "-m", "pip", "install", "--quiet", "--no-compile", *WANTED]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    if done.returncode != 0 and any(each in done.stderr for each in _NOT_THERE):
        pytest.skip(f"the package index has no {' or '.join(WANTED)} for {tag}")
    assert done.returncode == 0, done.stderr
    scripts = (str(payload("smoke_torch")), str(payload("smoke_jax")))
    children = [
        subprocess.Popen(
            [str(python), script, '{"device": "cpu"}'],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for script in scripts
    ]
    for child in children:
        output, _ = child.communicate(timeout=300)
        assert child.returncode == 0, output
    launcher = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=1")
    subprocess.run(
        [str(python), *launcher, str(payload("smoke_ddp")), '{"device": "cpu"}'],
        check=True,
        capture_output=True,
        timeout=300,
    )
