"""Stub libraries compiled once, and a `Live` source whose loader finds them."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from envcheck.probe.live import Live

STUBS = Path(__file__).resolve().parents[1] / "stubs"

Machine = Callable[..., Live]


def build(folder: Path, stub: str, library: str, *flags: str) -> None:
    folder.mkdir(exist_ok=True)
    subprocess.run(
        [
            "gcc",
            "-shared",
            "-fPIC",
            "-Wall",
            "-Werror",
            *flags,
            "-o",
            str(folder / library),
            str(STUBS / stub),
        ],
        check=True,
    )


@pytest.fixture(scope="session")
def stubs() -> Iterator[Path]:
    """Folders of driver libraries: `full`, `old`, `bare` (initialisation only), `empty`.

    Not below pytest's own folder, which other users may not enter.
    """
    top = Path(tempfile.mkdtemp(prefix="envcheck-stubs-"))
    top.chmod(0o755)
    build(top / "old", "nvml_stub.c", "libnvidia-ml.so.1", "-DOLD")
    build(top / "full", "nvml_stub.c", "libnvidia-ml.so.1")
    build(top / "full", "cuda_stub.c", "libcuda.so.1")
    build(top / "bare", "nvml_stub.c", "libnvidia-ml.so.1", "-DBARE")
    build(top / "bare", "cuda_stub.c", "libcuda.so.1", "-DBARE")
    build(top / "empty", "nvml_stub.c", "libnvidia-ml.so.1", "-DEMPTY", "-DBARE")
    yield top
    shutil.rmtree(top)


@pytest.fixture
def machine(stubs: Path) -> Machine:
    """`machine(kind, **settings)`: this machine with stub libraries and their settings."""

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
