"""A stub NVML with GPM, compiled once, and envcheck run against it."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.runner import environment, run_cli

STUB = Path(__file__).resolve().parents[1] / "stubs" / "nvml_activity_stub.c"

Watch = Callable[..., subprocess.CompletedProcess[Any]]


@pytest.fixture(scope="session")
def nvml() -> Iterator[Path]:
    """The folder of the stub library."""
    top = Path(tempfile.mkdtemp(prefix="envcheck-nvml-"))
    top.chmod(0o755)
    library = top / "libnvidia-ml.so.1"
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-Wall", "-Werror", "-o", str(library), str(STUB)], check=True
    )
    yield top
    shutil.rmtree(top)


@pytest.fixture
def variables(nvml: Path) -> Callable[..., dict[str, str]]:
    """`variables(work="tiny")`: an environment in which the stub GPU does that."""

    def make(work: str = "idle", **settings: str) -> dict[str, str]:
        stub = {f"NVIDIA_STUB_{name.upper()}": each for name, each in settings.items()}
        return environment(LD_LIBRARY_PATH=str(nvml), NVIDIA_STUB_WORK=work, **stub)

    return make


@pytest.fixture
def watch(variables: Callable[..., dict[str, str]]) -> Watch:
    """`watch("--seconds", "1", work="tiny")`: the command, beside the stub GPU."""

    def run(*args: str, work: str = "idle", **settings: str) -> subprocess.CompletedProcess[Any]:
        return run_cli("watch", *args, env=variables(work, **settings))

    return run
