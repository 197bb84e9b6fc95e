"""Questions about systems, and about what is beyond the tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.matrix import schema
from envcheck.matrix.query.common import first, newer, series
from envcheck.matrix.query.cuda import BRANCH_STEP
from envcheck.matrix.query.software import newest_torch
from envcheck.versions import Release

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix


def distro(matrix: Matrix, id: str, version: str) -> schema.Distro | None:
    """A distribution release; `9.4` finds the row of `9`."""
    rows = matrix.find(schema.Distro, id=id)
    return first(
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
    return first(
        row
        for row in matrix.find(schema.DistroPackage, family=distro.family, purpose=purpose)
        if (origin is None or row.origin == origin)
        and (row.versions_only is None or distro.version in row.versions_only)
    )


def xid(matrix: Matrix, number: int) -> schema.Xid | None:
    """An error number of the kernel module."""
    return first(matrix.find(schema.Xid, number=number))


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


def torch_newer_than_table(matrix: Matrix, version: str) -> bool:
    """Whether a torch version is newer than all that the table knows."""
    return newer(version, newest_torch(matrix))


def cuda_newer_than_table(matrix: Matrix, cuda: str) -> bool:
    """Whether a CUDA minor version is newer than all that the table knows."""
    wanted, rows = series(cuda), matrix.toolkits
    return wanted is not None and bool(rows) and wanted.parts > Release.parse(rows[-1].cuda).parts


def driver_newer_than_table(matrix: Matrix, version: str) -> bool:
    """Whether a driver is of a newer branch than all that the table knows."""
    rows = matrix.branches
    release = Release.maybe(version)
    if release is None or not rows:
        return False
    return release.major >= int(rows[-1].branch) + BRANCH_STEP
