"""Stub libraries compiled once, and a `Live` source whose loader finds them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from envcheck.probe.live import Live

STUBS = Path(__file__).resolve().parents[1] / "stubs"

Machine = Callable[..., Live]


def build(folder: Path, stub: str, library: str, *flags: str) -> None:
    folder.mkdir(exist_ok=True)
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-Wall", "-Werror", *flags]
        + ["-o", str(folder / library), str(STUBS / stub)],
        check=True,
    )


@pytest.fixture(scope="session")
def stubs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders `full`, `bare` (initialisation only) and `empty` (not even that) of driver libraries."""
    top = tmp_path_factory.mktemp("stubs")
    top.chmod(0o755)
    build(top / "full", "nvml_stub.c", "libnvidia-ml.so.1")
    build(top / "full", "cuda_stub.c", "libcuda.so.1")
    build(top / "bare", "nvml_stub.c", "libnvidia-ml.so.1", "-DBARE")
    build(top / "bare", "cuda_stub.c", "libcuda.so.1", "-DBARE")
    build(top / "empty", "nvml_stub.c", "libnvidia-ml.so.1", "-DEMPTY", "-DBARE")
    return top


@pytest.fixture
def machine(stubs: Path) -> Machine:
    """`machine(kind, **settings)`: this machine with stub libraries, settings in their variables."""

    def make(kind: str = "full", **settings: str) -> Live:
        return Live(
            variables={
                "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
                "HOME": "/home/nobody",
                "LD_LIBRARY_PATH": str(stubs / kind),
                **settings,
            }
        )

    return make
