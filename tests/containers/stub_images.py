"""Images whose environment is metadata and small libraries, as if a framework were installed."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from tests.containers.engine import BASE
from tests.environment.sites import dist, torch_version, write

if TYPE_CHECKING:
    from pathlib import Path

    from tests.containers.engine import Engine

VENV = "/opt/venv"


def library(path: Path, *flags: str) -> None:
    """A shared object without any code, named after its file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        ["gcc", "-shared", "-nostdlib", f"-Wl,-soname,{path.name}", "-o", str(path), "-xc",
         "/dev/null", *flags],
        check=True,
    )  # fmt: skip


def torch_site(site: Path, *nccl: tuple[str, str]) -> None:
    """torch of CUDA 13 with its NCCL, which each of the given wheels says is its own."""
    torch_version(site, "2.11.0+cu130", cuda="13.0")
    dist(site, "torch", "2.11.0", requires=("nvidia-nccl-cu13==2.28.9",))
    folder = site / "nvidia/nccl/lib"
    library(folder / "libnccl.so.2")
    rpath = "-Wl,-rpath,$ORIGIN/../../nvidia/nccl/lib,--disable-new-dtags"
    needs = (f"-L{folder}", "-l:libnccl.so.2", "-Wl,--no-as-needed")
    library(site / "torch/lib/libtorch_cuda.so", rpath, "-Wl,--no-as-needed", *needs)
    for name, version in nccl:
        dist(site, name, version, record=("nvidia/nccl/lib/libnccl.so.2",))


def stub_image(engine: Engine, folder: Path, tag: str, python: str, *lines: str) -> None:
    """Build an image of an environment; its packages lie in `folder/site`.

    Args:
        engine: gets the image.
        folder: empty but for `site`.
        tag: of the image.
        python: release of the base image's Python.
        lines: more of its Dockerfile.
    """
    (folder / "site").mkdir(exist_ok=True)
    engine.base_image(BASE)
    text = [
        f"FROM {BASE}",
        f"RUN python3 -m venv --without-pip {VENV}",
        f"COPY site/ {VENV}/lib/python{python}/site-packages/",
        f"ENV PATH={VENV}/bin:/usr/local/bin:/usr/bin:/bin VIRTUAL_ENV={VENV}",
        *lines,
    ]
    write(folder / "Dockerfile", "\n".join(text) + "\n")
    engine.cli("build", "-q", "-t", tag, folder)
