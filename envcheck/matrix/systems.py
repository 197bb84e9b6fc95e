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
