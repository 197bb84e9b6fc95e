"""Facts about the Python environment of the user, and the native libraries it would load."""

from __future__ import annotations

from typing import Literal

from envcheck.model.base import model

Manager = Literal["pip", "uv", "conda", "poetry", "pdm", "system", "pipx"]
Origin = Literal[
    "index",
    "framework-index",
    "conda",
    "conda-forge",
    "ngc",
    "jetson",
    "distribution",
    "source",
    "unknown",
]
"""Who built a framework: the package index's default wheel, a variant wheel of the framework's own
index, conda channels, NVIDIA's containers or Jetson wheels, a Linux distribution, somebody's own
compiler. Table rows apply to the first two only."""


@model
class Python:
    """The interpreter of the target environment."""

    version: str | None = None
    executable: str | None = None
    prefix: str | None = None
    kind: Literal["venv", "conda", "system", "other"] | None = None
    manager: Manager | None = None
    """What installs packages here."""
    externally_managed: bool | None = None
    implementation: str | None = None
    tag: str | None = None
    """Wheel tag of this interpreter: `cp312`, `cp313t`."""
    platform: str | None = None
    """`linux_x86_64`, `linux_aarch64`, `win_amd64`, `macosx_arm64`."""
    libc: str | None = None
    """`glibc 2.39` or `musl 1.2`."""
    chosen_because: str | None = None
    """Why it is the target: `--python`, `VIRTUAL_ENV`, `CONDA_PREFIX`, `PATH`, `own`."""
    error: str | None = None
    """Why the environment could not be read."""


@model
class Package:
    """An installed distribution."""

    name: str
    """Normalised: lower case, dashes."""
    version: str
    installer: str | None = None
    location: str | None = None
    requires: tuple[str, ...] = ()
    """Requirement lines, kept for frameworks and their companions only."""
    build: str | None = None
    """Conda build string or wheel tag."""
    channel: str | None = None


@model
class Framework:
    """A framework or native extension that was built for a CUDA release."""

    name: str
    version: str
    """With its local tag: `2.8.0+cu128`."""
    cuda: str | None = None
    """CUDA release it was built with; None when it has none or it is not known (see `cpu_only`)."""
    cpu_only: bool | None = None
    hip: str | None = None
    xpu: str | None = None
    git_version: str | None = None
    cudnn: str | None = None
    """cuDNN that it was built for or pins."""
    nccl: str | None = None
    arches: tuple[str, ...] | None = None
    """`sm_90`, `compute_120`: read from the build itself, None when not read."""
    origin: Origin = "unknown"
    location: str | None = None
    platform: str | None = None
    gpu_available: bool | None = None
    """What the framework itself says, when it was asked (`--deep`, or a report)."""
    error: str | None = None
    """Why importing it failed, when it was imported."""
    loaded: tuple[LoadedLibrary, ...] = ()


@model
class LoadedLibrary:
    """A native library that a process of the framework really loaded (`--deep`)."""

    name: str
    version: str | None = None
    path: str | None = None


@model
class Library:
    """One copy of a CUDA library on disk."""

    name: str
    """cudart, cublas, cublasLt, cudnn, nccl, cufft, curand, cusolver, cusparse, nvrtc, nvjitlink,
    cupti, nvshmem, cusparselt; cuDNN's parts as cudnn_graph, cudnn_ops, ..."""
    soname: str
    version: str | None = None
    cuda_major: int | None = None
    path: str
    origin: Literal[
        "wheel", "bundled", "conda", "toolkit", "system", "driver", "variable", "other"
    ] = "other"
    package: str | None = None
    """Distribution that owns the file."""
    wins_for: tuple[str, ...] = ()
    """Frameworks whose loader would take this copy."""
    via: str | None = None
    """Why it wins: rpath, LD_LIBRARY_PATH, runpath, cache, default, LD_PRELOAD, framework (it
    opens the copy by its path)."""


@model
class SharedFile:
    """One path that the records of several installed distributions claim."""

    path: str
    packages: tuple[str, ...]


@model
class Toolkit:
    """A CUDA toolkit on disk."""

    version: str | None = None
    root: str
    nvcc: bool | None = None
    via: str | None = None
    on_path: bool = False
    """Its nvcc is the first one on PATH, or CUDA_HOME names it."""


@model
class Compiler:
    """A host compiler."""

    name: str
    version: str | None = None
    path: str | None = None


@model
class Variable:
    """An environment variable that changes how CUDA programs behave."""

    name: str
    value: str


@model
class Environment:
    """The Python environment and what lies around it."""

    python: Python = Python()
    packages: tuple[Package, ...] | None = None
    frameworks: tuple[Framework, ...] | None = None
    libraries: tuple[Library, ...] | None = None
    """None when copies were not resolved; `wins_for` is only meaningful when not None."""
    shared_files: tuple[SharedFile, ...] | None = None
    toolkits: tuple[Toolkit, ...] | None = None
    compilers: tuple[Compiler, ...] | None = None
    variables: tuple[Variable, ...] = ()

    def variable(self, name: str) -> str | None:
        """Value of an environment variable, None when it is not set."""
        return next((each.value for each in self.variables if each.name == name), None)

    def framework(self, name: str) -> Framework | None:
        """A framework by its distribution name."""
        return next((each for each in self.frameworks or () if each.name == name), None)

    def package(self, name: str) -> Package | None:
        """An installed distribution by its normalised name."""
        return next((each for each in self.packages or () if each.name == name), None)
