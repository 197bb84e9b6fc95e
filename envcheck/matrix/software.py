"""Row types of the software tables: frameworks, and the libraries below and above them."""

from __future__ import annotations

from envcheck.matrix.row import Row
from envcheck.model.base import model


@model
class CudnnSupport(Row):
    """One row of a cuDNN support matrix; it holds until a newer row of the same CUDA major.

    Attributes:
        cudnn: first version it was read for, `9.10.2`.
        cuda_major: `12`.
        toolkits: CUDA minor releases, first and last of the supported range.
        min_driver_linux: lowest Linux driver.
        min_driver_windows: lowest Windows driver.
        capabilities: compute capabilities named by the matrix.
    """

    table = "cudnn"
    section = "support"
    key = ("cudnn", "cuda_major", "min_driver_linux")
    versions = (
        "cudnn",
        "cuda_major",
        "toolkits",
        "min_driver_linux",
        "min_driver_windows",
        "capabilities",
    )

    cudnn: str
    cuda_major: str
    toolkits: tuple[str, ...]
    min_driver_linux: str
    min_driver_windows: str | None = None
    capabilities: tuple[str, ...]


@model
class CudnnRelease(Row):
    """A cuDNN release as published in wheels.

    Attributes:
        cudnn: `9.10.2.21`.
        cuda_majors: CUDA majors with a wheel.
        libraries: shared objects that belong together; mixing them across releases fails.
        yanked: whether the release was withdrawn.
    """

    table = "cudnn"
    section = "release"
    key = ("cudnn",)
    versions = ("cudnn", "cuda_majors")

    cudnn: str
    cuda_majors: tuple[str, ...]
    libraries: tuple[str, ...]
    yanked: bool = False


@model
class NcclRelease(Row):
    """An NCCL release.

    Attributes:
        nccl: `2.27.5`.
        cuda_majors: CUDA majors with a wheel; empty when there is none.
        date: day of the release tag.
    """

    table = "nccl"
    section = "release"
    key = ("nccl",)
    versions = ("nccl", "cuda_majors")

    nccl: str
    cuda_majors: tuple[str, ...]
    date: str | None = None


@model
class KnownBad(Row):
    """A combination that is known to fail.

    Attributes:
        id: short name of the combination.
        combination: what meets what.
        symptom: the message it gives.
        cause: why.
        fix: what helps.
    """

    key = ("id",)

    id: str
    combination: str
    symptom: str
    cause: str | None = None
    fix: str | None = None


@model
class CudnnKnownBad(KnownBad):
    """A combination with cuDNN that is known to fail."""

    table = "cudnn"
    section = "known_bad"


@model
class NcclKnownBad(KnownBad):
    """A combination with NCCL that is known to fail."""

    table = "nccl"
    section = "known_bad"


@model
class NcclTargets(Row):
    """What an NCCL build targets by default when built with a CUDA release or a newer one.

    Attributes:
        cuda: first minor release it holds for.
        arches: `sm_80`, and `compute_90` for PTX.
    """

    table = "nccl"
    section = "target"
    key = ("cuda",)
    versions = ("cuda",)

    cuda: str
    arches: tuple[str, ...]


@model
class Framework(Row):
    """Head of a framework's table.

    Attributes:
        name: `torch`.
        distributions: names of its Python distributions.
        index_url: package index of one build variant; `{variant}` stands for it.
    """

    section = "framework"
    key = ("name",)

    name: str
    distributions: tuple[str, ...]
    index_url: str | None = None


@model
class TorchBuild(Row):
    """One published build of torch.

    Attributes:
        version: `2.8.0`.
        platform: `linux_x86_64` or `linux_aarch64`.
        variant: `cu128`, or `cpu`.
        cuda: CUDA minor release it was built with, or `cpu`.
        index_default: whether a plain `pip install torch` gets it.
        cudnn: cuDNN that it pins or bundles.
        nccl: NCCL that it pins or bundles.
        triton: its triton requirement, as an exact version or a specifier.
        python: CPython tags, `cp312`.
        arches: what `torch.cuda.get_arch_list()` gives, sorted.
        glibc: lowest glibc, from the wheel's platform tag.
        git_version: commit that `torch.version.git_version` gives.
    """

    table = "frameworks/torch"
    section = "build"
    key = ("version", "platform", "variant")
    versions = ("version", "cudnn", "nccl", "glibc")

    version: str
    platform: str
    variant: str
    cuda: str
    index_default: bool
    cudnn: str | None = None
    nccl: str | None = None
    triton: str | None = None
    python: tuple[str, ...] | None = None
    arches: tuple[str, ...] | None = None
    glibc: str | None = None
    git_version: str | None = None


@model
class Companion(Row):
    """The packages that belong to a torch release.

    Attributes:
        torch: `2.8.0`.
        torchvision: the version to install with it.
        torchaudio: the version to install with it.
    """

    table = "frameworks/torch"
    section = "companion"
    key = ("torch",)
    versions = ("torch", "torchvision", "torchaudio")

    torch: str
    torchvision: str | None = None
    torchaudio: str | None = None


@model
class TensorflowRelease(Row):
    """A tensorflow release and what its `and-cuda` extra asks for.

    Attributes:
        version: `2.18.0`.
        requires_python: specifier.
        python: CPython tags of its Linux wheels.
        platforms: `linux_x86_64`, `linux_aarch64`.
        cuda_major: CUDA major of the extra; absent where there is no extra.
        cudnn: cuDNN requirement of the extra, a specifier.
        nccl: NCCL requirement of the extra, a specifier.
        runtime: CUDA runtime requirement of the extra, a specifier.
        keras: requirement.
        numpy: requirement.
    """

    table = "frameworks/tensorflow"
    section = "release"
    key = ("version",)
    versions = ("version",)

    version: str
    requires_python: str
    python: tuple[str, ...]
    platforms: tuple[str, ...]
    cuda_major: str | None = None
    cudnn: str | None = None
    nccl: str | None = None
    runtime: str | None = None
    keras: str | None = None
    numpy: str | None = None


@model
class TensorflowTested(Row):
    """A build configuration that TensorFlow's page calls tested.

    Attributes:
        version: `2.18.0`.
        python: range as printed, `3.9-3.12`.
        cuda: `12.5`.
        cudnn: `9.3`.
    """

    table = "frameworks/tensorflow"
    section = "tested"
    key = ("version",)
    versions = ("version", "cuda", "cudnn")

    version: str
    python: str
    cuda: str
    cudnn: str


@model
class JaxRelease(Row):
    """A jax release.

    Attributes:
        version: `0.7.1`.
        requires_python: specifier.
        jaxlib: its jaxlib requirement.
        cuda_extra: CUDA major that the plain `cuda` extra selects.
    """

    table = "frameworks/jax"
    section = "release"
    key = ("version",)
    versions = ("version",)

    version: str
    requires_python: str
    jaxlib: str | None = None
    cuda_extra: str | None = None


@model
class JaxPlugin(Row):
    """The CUDA plugin of a jax release for one CUDA major.

    Attributes:
        version: jax version.
        cuda_major: `12`.
        requires: NVIDIA packages with their bounds, `nvidia-cudnn-cu12<10.0,>=9.8`.
        python: CPython tags.
        platforms: `linux_x86_64`, `linux_aarch64`.
        min_driver_linux: documented lowest driver.
        min_capability: documented lowest compute capability.
    """

    table = "frameworks/jax"
    section = "plugin"
    key = ("version", "cuda_major")
    versions = (
        "version",
        "cuda_major",
        "min_driver_linux",
        "min_capability",
    )

    version: str
    cuda_major: str
    requires: tuple[str, ...]
    python: tuple[str, ...]
    platforms: tuple[str, ...]
    min_driver_linux: str | None = None
    min_capability: str | None = None


@model
class LibraryRequirement(Row):
    """What a library asks of a framework.

    Attributes:
        library: distribution name, normalised.
        version: its version.
        requires_framework: distribution name of the framework.
        specifier: accepted versions; empty means any.
        extra: the extra that brings the requirement in; absent for a plain one.
        requires_python: specifier.
    """

    table = "frameworks/libraries"
    section = "requirement"
    key = ("library", "version", "requires_framework", "extra")
    versions = ("version",)

    library: str
    version: str
    requires_framework: str
    specifier: str
    extra: str | None = None
    requires_python: str | None = None
