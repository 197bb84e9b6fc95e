"""What goes into an image, and what is taken out of it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from envcheck.emit import describe
from envcheck.emit.images import CUDA_IMAGE
from envcheck.errors import UsageError
from envcheck.matrix import query
from envcheck.matrix.schema import ImageTool
from envcheck.model.base import model
from envcheck.versions import Release

if TYPE_CHECKING:
    from collections.abc import Sequence

    from envcheck.emit.images import Image
    from envcheck.emit.options import Options
    from envcheck.matrix.loader import Matrix
    from envcheck.matrix.schema import Distro
    from envcheck.model.plan import Lock, Pin

_ARCHIVES = {"linux_x86_64": "x86_64", "linux_aarch64": "sbsa"}
"""Platform -> folder of NVIDIA's package repository."""
_BROUGHT = {
    "torch": re.compile(r"torch|torchvision|torchaudio|triton"),
    "tensorflow": re.compile(r"tensorflow|keras"),
    "jax": re.compile(r"jax|jaxlib|jax-cuda[0-9]+-(?:plugin|pjrt)"),
}
"""Framework -> what an image that brings it has its own builds of."""
_NVIDIA = re.compile(r"nvidia-.+")


@model
class Tools:
    """Tools to put into an image.

    Attributes:
        apt: packages with the pattern of their version.
        pip: packages for envcheck's own environment.
        commands: names to link into the path.
        keyring: address of the package that adds NVIDIA's repository; None where it is there.
    """

    apt: tuple[str, ...] = ()
    pip: tuple[ImageTool, ...] = ()
    commands: tuple[str, ...] = ()
    keyring: str | None = None


# -- packages of the system ------------------------------------------------------------------------
#
# Versions are patterns: archives keep only the newest of a release, and a build that asks for
# another one fails on the day of the next security update.


def python_packages(image: Image, *, headers: bool = False) -> tuple[str, ...]:
    """Packages that give an image its Python; with `headers`, also what compiles extensions."""
    if not image.apt_python:
        return ()
    more = (
        ("build-essential=12.*", "git=1:2.*", *venv_packages(image), _python(image, "-dev"))
        if headers
        else ()
    )
    return tuple(sorted(("ca-certificates=20*", _python(image), *more)))


def venv_packages(image: Image) -> tuple[str, ...]:
    """Package that lets a system's Python make environments."""
    return (_python(image, "-venv"),)


def _python(image: Image, part: str = "") -> str:
    return f"{image.python}{part}={image.python.removeprefix('python')}.*"


# -- Python packages -------------------------------------------------------------------------------


def to_install(lock: Lock, base: Image, compiled: Sequence[Pin]) -> tuple[Pin, ...]:
    """Pins that pip installs: all but what is compiled and what the image brings.

    Raises:
        UsageError: the image brings another framework than the lock has.
    """
    pins = tuple(pin for pin in lock.stack.pins if pin not in compiled)
    if base.framework is None:
        return pins
    if [each.name for each in lock.stack.frameworks] != [base.framework]:
        msg = f"{base.named} brings {base.brings}, and the lock {describe.frameworks(lock.stack)}"
        raise UsageError(msg)
    own = _BROUGHT[base.framework]
    return tuple(
        pin for pin in pins if not own.fullmatch(pin.name) and not _NVIDIA.fullmatch(pin.name)
    )


# -- tools -----------------------------------------------------------------------------------------


def tools(lock: Lock, matrix: Matrix, options: Options, base: Image) -> Tools:
    """Tools that were asked for, without those that the image has.

    Raises:
        UsageError: a tool cannot be had in this image, or has nothing to watch there.
    """
    rows = [row for row in matrix.rows(ImageTool) if row.name in options.tools]
    if rows and not describe.has_cuda(lock.stack):
        msg = f"--with: {rows[0].name} is for GPUs, and the stack of the lock is for the CPU"
        raise UsageError(msg)
    pip = tuple(row for row in rows if row.installer == "pip")
    apt = [row for row in rows if row.installer == "apt"]
    if base.framework is not None:  # NVIDIA's images have a profiler of their own
        apt = [row for row in apt if row.purpose != "profile"]
    packages = tuple(_package(row, lock, matrix, base) for row in apt)
    keyring = None
    if packages and base.name.rpartition("/")[2] != CUDA_IMAGE.rpartition("/")[2]:
        keyring = _keyring(lock, matrix, base)
    return Tools(
        apt=tuple(sorted(packages)),
        pip=pip,
        commands=("envcheck", *(row.name for row in pip)),
        keyring=keyring,
    )


def _package(row: ImageTool, lock: Lock, matrix: Matrix, base: Image) -> str:
    system = _distro(matrix, base)
    major = Release.parse(describe.cuda(lock.stack) or "0").major
    name = (
        query.distro_package(matrix, system, row.package, origin="nvidia", cuda_major=str(major))
        if system is not None and base.framework is None
        else None
    )
    if name is None:
        msg = f"--with {row.name}: which package {base.named} takes it from is not known"
        raise UsageError(msg)
    return f"{name}={row.version}"


def _keyring(lock: Lock, matrix: Matrix, base: Image) -> str:
    system = _distro(matrix, base)
    address = (
        query.distro_package(
            matrix,
            system,
            "repository",
            origin="nvidia",
            repo=system.repo or "",
            arch=_ARCHIVES[lock.stack.platform],
        )
        if system is not None
        else None
    )
    if address is None or not address.endswith(".deb"):
        msg = f"--with: NVIDIA's package repository for {base.named} is not known"
        raise UsageError(msg)
    return address


def _distro(matrix: Matrix, base: Image) -> Distro | None:
    match = re.fullmatch(r"([a-z]+)([0-9.]+)", base.os or "")
    return query.distro(matrix, match[1], match[2]) if match else None


# -- what CUDA images do on GPUs that they were not made for ---------------------------------------


def compat_to_remove(lock: Lock, matrix: Matrix, base: Image) -> tuple[str, ...]:
    """Packages of CUDA's forward compatibility, where a GPU of the target does not have it.

    Its libcuda takes the place of the driver's own, and on such GPUs every call then fails.
    """
    if base.cuda is None or not _without_forward_compat(lock, matrix):
        return ()
    system = _distro(matrix, base)
    release = Release.parse(base.cuda)
    name = (
        query.distro_package(
            matrix, system, "cuda-compat", origin="nvidia", cuda=release.series.replace(".", "-")
        )
        if system is not None
        else None
    )
    return (name,) if name else ()


def _without_forward_compat(lock: Lock, matrix: Matrix) -> bool:
    if lock.target.forward_compat is not None:
        return not lock.target.forward_compat
    rows = (query.product(matrix, name) for name in lock.target.gpus)
    return any(row is not None and row.forward_compat is False for row in rows)


def refused_by_require(lock: Lock, matrix: Matrix, base: Image) -> bool:
    """Whether NVIDIA_REQUIRE_CUDA of the image would refuse a driver that runs the stack.

    It asks for the driver of the CUDA release inside, where minor version compatibility is content
    with an older one.
    """
    driver = lock.target.driver or lock.stack.min_driver
    if base.cuda is None or driver is None:
        return False
    reports = Release.maybe(query.driver_cuda(matrix, driver))
    return reports is not None and reports < Release.parse(Release.parse(base.cuda).series)
