"""Row types of the tables of systems: distributions and their packages, containers."""

from __future__ import annotations

from envcheck.matrix.row import Row
from envcheck.model.base import model


@model
class Distro(Row):
    """A Linux distribution release.

    Attributes:
        id: as in os-release, `ubuntu`.
        version: `24.04`, or the major number where minor releases do not matter.
        family: whose package names apply, `ubuntu`, `debian`, `rhel`, `suse`, ...
        manager: `apt`, `dnf`, `tdnf` or `zypper`.
        repo: folder of NVIDIA's package repository, `ubuntu2404`.
        in_guide: whether NVIDIA's driver guide still lists it.
        glibc: C library.
        kernel: kernel series at release.
        gcc: default compiler.
    """

    table = "distro"
    section = "distro"
    key = ("id", "version")
    versions = ("version", "glibc", "kernel", "gcc")

    id: str
    version: str
    family: str
    manager: str
    repo: str | None = None
    in_guide: bool | None = None
    glibc: str | None = None
    kernel: str | None = None
    gcc: str | None = None


@model
class DistroPackage(Row):
    """The package that serves a purpose.

    Attributes:
        family: family of distributions.
        purpose: `driver-open`, `driver-proprietary`, `fabric-manager`, `dcgm`, ...
        origin: `distribution` or `nvidia`, the archive that carries it.
        package: name, with parts to fill in: `{branch}` of the driver, `{cuda_major}`, `{cuda}` as
            `12-8`, `{kernel}` release. A dnf module is written as the dnf command that installs it.
        versions_only: distribution releases it is limited to.
    """

    table = "distro"
    section = "package"
    key = ("family", "purpose", "origin", "package")

    family: str
    purpose: str
    origin: str
    package: str
    versions_only: tuple[str, ...] | None = None


@model
class CudaImage(Row):
    """The tags of one CUDA base image release on one distribution.

    Attributes:
        cuda: full version.
        distro: tag suffix, `ubuntu24.04`.
        flavors: tag parts such as `base`, `devel`, `cudnn-devel`.
        cudnn: cuDNN inside the cuDNN flavours.
        ended: whether the image was moved to the end-of-life list.
    """

    table = "container"
    section = "image"
    key = ("cuda", "distro")
    versions = ("cuda", "cudnn")

    cuda: str
    distro: str
    flavors: tuple[str, ...]
    cudnn: str | None = None
    ended: bool | None = None


@model
class ToolkitRelease(Row):
    """A release of the container toolkit.

    Attributes:
        version: `1.19.1`.
        date: day of the release tag.
    """

    table = "container"
    section = "toolkit"
    key = ("version",)
    versions = ("version",)

    version: str
    date: str | None = None


@model
class SystemImage(Row):
    """An image with a plain system, to put wheels on that bring their own CUDA.

    Attributes:
        os: the system inside, as the distro table spells it: `ubuntu24.04`.
        python: the Python that the image has or that its own archive gives, `3.12`.
        image: name without tag, `ubuntu`.
        tag: `24.04`.
        python_from: `image` where it is there already, `apt` where it is a package to install.
        digest: of the image index that the tag named when it was read, `sha256:...`.
    """

    table = "container"
    section = "system"
    key = ("os", "python")
    versions = ("python",)

    os: str
    python: str
    image: str
    tag: str
    python_from: str
    digest: str | None = None


@model
class FrameworkImage(Row):
    """An image that brings a framework built by its maker, with the CUDA that belongs to it.

    Attributes:
        image: name without tag, `nvcr.io/nvidia/pytorch`.
        tag: `25.08-py3`.
        framework: torch, tensorflow or jax.
        version: what the framework calls itself, without local tag: `2.8.0a0`.
        cuda: CUDA minor release, `13.0`.
        maker: `nvidia`, or `upstream` for the framework's own project.
        os: the system inside, `ubuntu24.04`.
        python: `3.12`.
        cudnn: version inside.
        nccl: version inside.
        digest: of the image index that the tag named when it was read, `sha256:...`.
    """

    table = "container"
    section = "framework_image"
    key = ("image", "tag")
    versions = ("version", "cuda", "python", "cudnn", "nccl")

    image: str
    tag: str
    framework: str
    version: str
    cuda: str
    maker: str
    os: str | None = None
    python: str | None = None
    cudnn: str | None = None
    nccl: str | None = None
    digest: str | None = None


@model
class ImageTool(Row):
    """A tool that is put into an image on request, or that a build inside one needs.

    Attributes:
        name: as it is asked for, `nsys`.
        purpose: `profile`, `monitor` or `build`.
        installer: `pip` or `apt`.
        package: name of the distribution; of an apt package, its purpose in the distro table.
        version: exact for pip; for apt a pattern that the package must match, `2*`, for archives
            keep only the newest.
    """

    table = "container"
    section = "tool"
    key = ("name",)

    name: str
    purpose: str
    installer: str
    package: str
    version: str


@model
class Extension(Row):
    """A package without wheels, compiled with nvcc against the torch that it will run with.

    Attributes:
        name: normalised name of the distribution, `flash-attn`.
    """

    table = "container"
    section = "extension"
    key = ("name",)

    name: str
