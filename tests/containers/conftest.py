"""The engine of this folder's tests: one for all of them, and what they put into it."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.containers import gpus
from tests.containers.engine import BASE, Engine, running_engine, why_not
from tests.containers.wheels import WheelsError, fetched, pip_settings, served

STUBS = Path(__file__).resolve().parents[1] / "stubs"
TORCH = "torch==2.13.0+cpu"
JAX = "jax"


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    """A running engine; the test is skipped where none can be had."""
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    with running_engine() as running:
        yield running


@pytest.fixture(scope="session")
def python(engine: Engine) -> str:
    """Release of the base image's Python, `3.11`; the image is there then."""
    engine.base_image(BASE)
    text = engine.cli("run", "--rm", BASE, "python3", "-c", "import sys; print(sys.version)").stdout
    return ".".join(text.split(".")[:2])


@pytest.fixture(scope="session")
def stubs() -> Iterator[Path]:
    """A folder with a driver's libraries that are stubs."""
    folder = Path(tempfile.mkdtemp(prefix="envcheck-gpu-"))
    folder.chmod(0o755)
    for source, library in (("nvml_stub.c", "libnvidia-ml.so.1"), ("cuda_stub.c", "libcuda.so.1")):
        subprocess.run(
            ["gcc", "-shared", "-fPIC", "-o", str(folder / library), str(STUBS / source)],
            check=True,
        )
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def nvidia_runtime(engine: Engine, stubs: Path) -> Iterator[Engine]:
    """The engine with NVIDIA's runtime registered, for one test."""
    path = str(gpus.runtime(stubs, stubs))
    with engine.configured({"runtimes": {"nvidia": {"path": path}}}):
        yield engine


@pytest.fixture(scope="session")
def wheels(python: str) -> Path:
    """A folder with frameworks for the CPU, and with what envcheck needs."""
    own = ("distro", "jinja2", "nvidia-ml-py", "packaging", "rich", "shtab")
    try:
        return fetched(python, TORCH, JAX, *own)
    except WheelsError as error:
        pytest.skip(f"the package index has no wheels for this: {error}")


@pytest.fixture(scope="session")
def packages(engine: Engine, wheels: Path) -> Iterator[str]:
    """Settings of pip inside images, by which it takes those wheels."""
    with served(wheels, engine.gateway) as url:
        yield pip_settings(url)
