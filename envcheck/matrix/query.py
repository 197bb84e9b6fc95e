"""The questions that rules ask of the tables: pure functions.

`None` or an empty tuple means that the tables do not know. Versions may come with more parts than a
table has, or with a local part (`2.8.0+cu128`); text that holds no version is answered like one
that no table knows.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeVar

from envcheck.matrix import schema
from envcheck.versions import Release

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import date

    from envcheck.matrix.loader import Matrix

R = TypeVar("R", bound=schema.Row)

# Driver branches are numbered in steps of five at least; Windows and WSL count within a step.
_BRANCH_STEP = 5


# -- CUDA and the driver ---------------------------------------------------------------------------


def own_driver(matrix: Matrix, cuda: str) -> schema.CudaToolkit | None:
    """First release of a CUDA minor version that names a Linux driver: what its new features need.

    Args:
        matrix: the tables.
        cuda: `12.8` or `12.8.1`.
    """
    return matrix.memo(
        f"query.own_driver.{cuda}",
        lambda: _first(
            row for row in matrix.toolkits if row.driver_linux and _same_series(row.cuda, cuda)
        ),
    )


def minor_floor(matrix: Matrix, cuda: str) -> schema.MinorFloor | None:
    """Driver with which all minor releases of the CUDA major run."""
    release = Release.maybe(cuda)
    if release is None:
        return None
    return _first(row for row in matrix.minor_floors if row.cuda_major == str(release.major))


def branch_of(version: str) -> str:
    """Branch number of a driver version, `580` of `580.95.05`; empty for text without a version."""
    release = Release.maybe(version)
    return "" if release is None else str(release.major)


def branch(matrix: Matrix, version: str) -> schema.DriverBranch | None:
    """Branch of a driver version or branch number.

    Windows drivers, which WSL reports, have numbers between branches: 576.02 belongs to 575.
    """
    release = Release.maybe(version)
    if release is None:
        return None
    below = [row for row in matrix.branches if int(row.branch) <= release.major]
    if below and release.major - int(below[-1].branch) < _BRANCH_STEP:
        return below[-1]
    return None


def driver_cuda(matrix: Matrix, version: str) -> str | None:
    """CUDA version that a driver of this version reports."""
    found = branch(matrix, version)
    return None if found is None else found.cuda


def oldest_branch_for_cuda(matrix: Matrix, cuda: str) -> schema.DriverBranch | None:
    """Oldest branch whose drivers report this CUDA minor version or a newer one."""
    wanted = _series(cuda)
    if wanted is None:
        return None
    return _first(row for row in matrix.branches if row.cuda and Release.parse(row.cuda) >= wanted)


def supported_branches(
    matrix: Matrix, cc: str, today: date | None = None
) -> tuple[schema.DriverBranch, ...]:
    """Branches that run a compute capability, oldest first.

    Args:
        matrix: the tables.
        cc: compute capability.
        today: leave out what has ended by then; without it, ended branches count too.
    """
    found = capability(matrix, cc)
    if found is None:
        return ()
    first, last = found.min_driver, found.last_driver_branch
    return tuple(
        row
        for row in matrix.branches
        if (first is None or int(row.branch) >= int(first))
        and (last is None or int(row.branch) <= int(last))
        and (today is None or not branch_ended(row, today))
    )


def branch_ended(row: schema.DriverBranch, today: date) -> bool:
    """Whether a branch is known to get no more fixes."""
    if row.eol is not None:
        return f"{today:%Y-%m}" > row.eol
    return bool(row.ended)


def forward_compat(matrix: Matrix, cuda: str) -> schema.ForwardCompat | None:
    """Branches that the compat package of a CUDA minor version lifts, as of its newest update."""
    return _last(row for row in matrix.forward_compat if _same_series(row.cuda, cuda))


def ptxas(matrix: Matrix, cuda: str) -> schema.PtxasTargets | None:
    """Targets that the assembler of a CUDA minor version knows."""
    return _first(row for row in matrix.ptxas if _same_series(row.cuda, cuda))


def host_compiler(matrix: Matrix, cuda: str) -> schema.HostCompiler | None:
    """Host compilers that nvcc of a CUDA minor version accepts."""
    return _first(row for row in matrix.host_compilers if _same_series(row.cuda, cuda))


# -- GPUs ------------------------------------------------------------------------------------------


def capability(matrix: Matrix, cc: str) -> schema.Capability | None:
    """A compute capability, `8.9`."""
    return _first(matrix.find(schema.Capability, cc=cc))


def product(matrix: Matrix, name: str) -> schema.GpuProduct | None:
    """A GPU by name, as drivers, tools and people write it.

    Maker, brand, memory size, form factor and "Laptop GPU" do not matter; every other word does, so
    that an "RTX 3080 Ti" is never taken for an "RTX 3080".
    """
    from envcheck.matrix.names import key

    names = matrix.memo(
        "query.product",
        lambda: {key(known): known for known in reversed(matrix.values(schema.GpuProduct, "name"))},
    )
    known = names.get(key(name)) if key(name) else None
    return _first(matrix.find(schema.GpuProduct, name=known)) if known else None


def pci_gpu(matrix: Matrix, device_id: str) -> schema.PciGpu | None:
    """A GPU by PCI device id, as `2330`, `0x2330` or `10de:2330`."""
    return _first(matrix.find(schema.PciGpu, id=_pci_id(device_id)))


def nvswitch(matrix: Matrix, device_id: str) -> schema.NvSwitch | None:
    """An NVSwitch by PCI device id."""
    return _first(matrix.find(schema.NvSwitch, id=_pci_id(device_id)))


def _pci_id(text: str) -> str:
    return text.strip().lower().rsplit(":", 1)[-1].removeprefix("0x")


# -- torch -----------------------------------------------------------------------------------------


def torch_builds(
    matrix: Matrix, version: str, platform: str | None = None
) -> tuple[schema.TorchBuild, ...]:
    """Published builds of a torch version.

    Args:
        matrix: the tables.
        version: with or without a local part.
        platform: `linux_x86_64` or `linux_aarch64`; all when absent.
    """
    rows = matrix.find(schema.TorchBuild, version=_public(version))
    return tuple(row for row in rows if platform is None or row.platform == platform)


def torch_build(
    matrix: Matrix, version: str, platform: str, variant: str
) -> schema.TorchBuild | None:
    """The build of a torch version for a platform and a variant such as `cu128` or `cpu`."""
    return _first(row for row in torch_builds(matrix, version, platform) if row.variant == variant)


def newest_torch(matrix: Matrix) -> str:
    """Newest torch version in the table; empty when there is none."""
    versions = matrix.values(schema.TorchBuild, "version")
    return str(versions[-1]) if versions else ""


def companion(matrix: Matrix, torch_version: str) -> schema.Companion | None:
    """The torchvision and torchaudio that belong to a torch version."""
    return _first(matrix.find(schema.Companion, torch=_public(torch_version)))


# -- cuDNN and NCCL --------------------------------------------------------------------------------


def cudnn_support(matrix: Matrix, version: str, cuda_major: str) -> tuple[schema.CudnnSupport, ...]:
    """Rows of the newest support matrix not newer than a cuDNN version, lowest driver first."""
    release = Release.maybe(version)
    if release is None:
        return ()
    rows = [
        row
        for row in matrix.cudnn_support
        if row.cuda_major == cuda_major and Release.parse(row.cudnn) <= release
    ]
    return tuple(row for row in rows if row.cudnn == rows[-1].cudnn)


def cudnn_release(matrix: Matrix, version: str) -> schema.CudnnRelease | None:
    """A cuDNN release; of a version with fewer parts, the newest that starts so."""
    exact = matrix.find(schema.CudnnRelease, cudnn=version)
    return _last(exact or (row for row in matrix.cudnn_releases if _starts(row.cudnn, version)))


def nccl_release(matrix: Matrix, version: str) -> schema.NcclRelease | None:
    """An NCCL release."""
    return _first(matrix.find(schema.NcclRelease, nccl=version.strip()))


def nccl_targets(matrix: Matrix, cuda: str) -> schema.NcclTargets | None:
    """What NCCL targets by default when built with a CUDA minor version."""
    wanted = _series(cuda)
    if wanted is None:
        return None
    return _last(row for row in matrix.nccl_targets if Release.parse(row.cuda) <= wanted)


# -- other frameworks and libraries ----------------------------------------------------------------


def tensorflow_release(matrix: Matrix, version: str) -> schema.TensorflowRelease | None:
    """A tensorflow release."""
    return _first(matrix.find(schema.TensorflowRelease, version=_public(version)))


def jax_release(matrix: Matrix, version: str) -> schema.JaxRelease | None:
    """A jax release."""
    return _first(matrix.find(schema.JaxRelease, version=_public(version)))


def jax_plugin(matrix: Matrix, version: str, cuda_major: str) -> schema.JaxPlugin | None:
    """The CUDA plugin of a jax release."""
    rows = matrix.find(schema.JaxPlugin, version=_public(version), cuda_major=cuda_major)
    return _first(rows)


def requirements(
    matrix: Matrix, library: str, version: str
) -> tuple[schema.LibraryRequirement, ...]:
    """What a library version asks of frameworks, extras included."""
    name = re.sub(r"[-_.]+", "-", library).lower()
    return matrix.find(schema.LibraryRequirement, library=name, version=_public(version))


def requirements_near(
    matrix: Matrix, library: str, version: str
) -> tuple[schema.LibraryRequirement, ...]:
    """What a library version asks for; of a version without rows, what both neighbours agree on."""
    exact = requirements(matrix, library, version)
    have = Release.maybe(version)
    if exact or have is None:
        return exact
    name = re.sub(r"[-_.]+", "-", library).lower()
    known = sorted(
        {row.version for row in matrix.find(schema.LibraryRequirement, library=name)},
        key=lambda text: Release.parse(text).parts,
    )
    below = [text for text in known if Release.parse(text) < have]
    above = [text for text in known if Release.parse(text) > have]
    if not below or not above:
        return ()
    later = {
        (row.requires_framework, row.specifier, row.extra)
        for row in requirements(matrix, library, above[0])
    }
    return tuple(
        row
        for row in requirements(matrix, library, below[-1])
        if (row.requires_framework, row.specifier, row.extra) in later
    )


# -- machine ---------------------------------------------------------------------------------------


def distro(matrix: Matrix, id: str, version: str) -> schema.Distro | None:
    """A distribution release; `9.4` finds the row of `9`."""
    rows = matrix.find(schema.Distro, id=id)
    return _first(
        row for row in rows if version == row.version or version.startswith(row.version + ".")
    )


def distro_package(
    matrix: Matrix,
    distro: schema.Distro,
    purpose: str,
    branch: str | None = None,
    *,
    origin: str | None = None,
    **parts: str,
) -> str | None:
    """Name of the package that serves a purpose on a distribution.

    Args:
        matrix: the tables.
        distro: a row of the distribution table.
        purpose: such as `driver-open` or `fabric-manager`.
        branch: driver branch, for names that carry it.
        origin: `distribution` or `nvidia`; the distribution's own archive wins when absent.
        **parts: other parts of names, such as `cuda_major="13"`.

    Returns:
        The name, or None when no row fits or a part of the name is not given.
    """
    row = distro_package_row(matrix, distro, purpose, origin)
    if row is None:
        return None
    name = row.package
    for part, value in {**parts, "branch": branch}.items():
        if value is not None:
            name = name.replace("{" + part + "}", value)
    return None if "{" in name else name


def distro_package_row(
    matrix: Matrix, distro: schema.Distro, purpose: str, origin: str | None = None
) -> schema.DistroPackage | None:
    """The row behind `distro_package`, to cite."""
    return _first(
        row
        for row in matrix.find(schema.DistroPackage, family=distro.family, purpose=purpose)
        if (origin is None or row.origin == origin)
        and (row.versions_only is None or distro.version in row.versions_only)
    )


def xid(matrix: Matrix, number: int) -> schema.Xid | None:
    """An error number of the kernel module."""
    return _first(matrix.find(schema.Xid, number=number))


def cuda_images(
    matrix: Matrix, cuda: str, distro: str | None = None
) -> tuple[schema.CudaImage, ...]:
    """CUDA base images of a CUDA version, oldest first."""
    release = Release.maybe(cuda)
    return tuple(
        row
        for row in matrix.cuda_images
        if release is not None
        and Release.parse(row.cuda).starts_like(release)
        and (distro is None or row.distro == distro)
    )


# -- beyond the tables -----------------------------------------------------------------------------


def torch_newer_than_table(matrix: Matrix, version: str) -> bool:
    """Whether a torch version is newer than all that the table knows."""
    return _newer(version, newest_torch(matrix))


def cuda_newer_than_table(matrix: Matrix, cuda: str) -> bool:
    """Whether a CUDA minor version is newer than all that the table knows."""
    wanted, rows = _series(cuda), matrix.toolkits
    return wanted is not None and bool(rows) and wanted.parts > Release.parse(rows[-1].cuda).parts


def driver_newer_than_table(matrix: Matrix, version: str) -> bool:
    """Whether a driver is of a newer branch than all that the table knows."""
    rows = matrix.branches
    release = Release.maybe(version)
    if release is None or not rows:
        return False
    return release.major >= int(rows[-1].branch) + _BRANCH_STEP


# -- common ----------------------------------------------------------------------------------------


def _first(rows: Iterable[R]) -> R | None:
    return next(iter(rows), None)


def _last(rows: Iterable[R]) -> R | None:
    found = None
    for found in rows:  # noqa: B007
        pass
    return found


def _series(text: str) -> Release | None:
    release = Release.maybe(text)
    return None if release is None else Release.parse(release.series)


def _same_series(known: str, asked: str) -> bool:
    release = Release.maybe(asked)
    return release is not None and Release.parse(known).series == release.series


def _starts(known: str, asked: str) -> bool:
    release = Release.maybe(asked)
    return release is not None and Release.parse(known).starts_like(release)


def _newer(version: str, newest: str) -> bool:
    asked, known = Release.maybe(version), Release.maybe(newest)
    return asked is not None and known is not None and asked > known


def _public(version: str) -> str:
    return version.partition("+")[0].strip()
