"""Questions about frameworks and the libraries that they load."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from envcheck.matrix import schema
from envcheck.matrix.query.common import first, last, public, starts
from envcheck.versions import Release

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix


def torch_builds(
    matrix: Matrix, version: str, platform: str | None = None
) -> tuple[schema.TorchBuild, ...]:
    """Published builds of a torch version.

    Args:
        matrix: the tables.
        version: with or without a local part.
        platform: `linux_x86_64` or `linux_aarch64`; all when absent.
    """
    rows = matrix.find(schema.TorchBuild, version=public(version))
    return tuple(row for row in rows if platform is None or row.platform == platform)


def torch_build(
    matrix: Matrix, version: str, platform: str, variant: str
) -> schema.TorchBuild | None:
    """The build of a torch version for a platform and a variant such as `cu128` or `cpu`."""
    return first(row for row in torch_builds(matrix, version, platform) if row.variant == variant)


def newest_torch(matrix: Matrix) -> str:
    """Newest torch version in the table; empty when there is none."""
    versions = matrix.values(schema.TorchBuild, "version")
    return str(versions[-1]) if versions else ""


def companion(matrix: Matrix, torch_version: str) -> schema.Companion | None:
    """The torchvision and torchaudio that belong to a torch version."""
    return first(matrix.find(schema.Companion, torch=public(torch_version)))


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
    return last(exact or (row for row in matrix.cudnn_releases if starts(row.cudnn, version)))


def nccl_release(matrix: Matrix, version: str) -> schema.NcclRelease | None:
    """An NCCL release."""
    return first(matrix.find(schema.NcclRelease, nccl=version.strip()))


def nccl_targets(matrix: Matrix, cuda: str) -> schema.NcclTargets | None:
    """GPU targets of NCCL builds for a CUDA release: the nearest known one below."""
    wanted = Release.maybe(cuda)
    if wanted is None:
        return None
    return last(row for row in matrix.nccl_targets if Release.parse(row.cuda) <= wanted)


def known_bad(matrix: Matrix, package: str, *ids: str) -> tuple[schema.KnownBad, ...]:
    """Combinations with cuDNN or NCCL that are known to fail, by id.

    Args:
        matrix: the tables.
        package: a name that holds `cudnn` or `nccl`; nothing is known of others.
        ids: of the combinations.
    """
    rows: tuple[schema.KnownBad, ...] = ()
    if "cudnn" in package:
        rows = matrix.cudnn_known_bad
    elif "nccl" in package:
        rows = matrix.nccl_known_bad
    return tuple(row for row in rows if row.id in ids)


def tensorflow_release(matrix: Matrix, version: str) -> schema.TensorflowRelease | None:
    """A tensorflow release."""
    return first(matrix.find(schema.TensorflowRelease, version=public(version)))


def jax_release(matrix: Matrix, version: str) -> schema.JaxRelease | None:
    """A jax release."""
    return first(matrix.find(schema.JaxRelease, version=public(version)))


def jax_plugin(matrix: Matrix, version: str, cuda_major: str) -> schema.JaxPlugin | None:
    """The CUDA plugin of a jax release."""
    rows = matrix.find(schema.JaxPlugin, version=public(version), cuda_major=cuda_major)
    return first(rows)


def requirements(
    matrix: Matrix, library: str, version: str
) -> tuple[schema.LibraryRequirement, ...]:
    """What a library version asks of frameworks, extras included."""
    name = re.sub(r"[-_.]+", "-", library).lower()
    return matrix.find(schema.LibraryRequirement, library=name, version=public(version))


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
