"""Questions about CUDA releases, drivers and GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.matrix import schema
from envcheck.matrix.query.common import first, last, same_series, series
from envcheck.versions import Release

if TYPE_CHECKING:
    from datetime import date

    from envcheck.matrix.loader import Matrix

# Driver branches are numbered in steps of five at least; Windows and WSL count within a step.
BRANCH_STEP = 5


def own_driver(matrix: Matrix, cuda: str) -> schema.CudaToolkit | None:
    """First release of a CUDA minor version that names a Linux driver: what its new features need.

    Args:
        matrix: the tables.
        cuda: `12.8` or `12.8.1`.
    """
    return matrix.memo(
        f"query.own_driver.{cuda}",
        lambda: first(
            row for row in matrix.toolkits if row.driver_linux and same_series(row.cuda, cuda)
        ),
    )


def minor_floor(matrix: Matrix, cuda: str) -> schema.MinorFloor | None:
    """Driver with which all minor releases of the CUDA major run."""
    release = Release.maybe(cuda)
    if release is None:
        return None
    return first(row for row in matrix.minor_floors if row.cuda_major == str(release.major))


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
    if below and release.major - int(below[-1].branch) < BRANCH_STEP:
        return below[-1]
    return None


def driver_cuda(matrix: Matrix, version: str) -> str | None:
    """CUDA version that a driver of this version reports."""
    found = branch(matrix, version)
    return None if found is None else found.cuda


def oldest_branch_for_cuda(matrix: Matrix, cuda: str) -> schema.DriverBranch | None:
    """Oldest branch whose drivers report this CUDA minor version or a newer one."""
    wanted = series(cuda)
    if wanted is None:
        return None
    return first(row for row in matrix.branches if row.cuda and Release.parse(row.cuda) >= wanted)


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
    return last(row for row in matrix.forward_compat if same_series(row.cuda, cuda))


def ptxas(matrix: Matrix, cuda: str) -> schema.PtxasTargets | None:
    """Targets that the assembler of a CUDA minor version knows."""
    return first(row for row in matrix.ptxas if same_series(row.cuda, cuda))


def host_compiler(matrix: Matrix, cuda: str) -> schema.HostCompiler | None:
    """Host compilers that nvcc of a CUDA minor version accepts."""
    return first(row for row in matrix.host_compilers if same_series(row.cuda, cuda))


def capability(matrix: Matrix, cc: str) -> schema.Capability | None:
    """A compute capability, `8.9`."""
    return first(matrix.find(schema.Capability, cc=cc))


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
    return first(matrix.find(schema.GpuProduct, name=known)) if known else None


def pci_gpu(matrix: Matrix, device_id: str) -> schema.PciGpu | None:
    """A GPU by PCI device id, as `2330`, `0x2330` or `10de:2330`."""
    return first(matrix.find(schema.PciGpu, id=_pci_id(device_id)))


def nvswitch(matrix: Matrix, device_id: str) -> schema.NvSwitch | None:
    """An NVSwitch by PCI device id."""
    return first(matrix.find(schema.NvSwitch, id=_pci_id(device_id)))


def _pci_id(text: str) -> str:
    return text.strip().lower().rsplit(":", 1)[-1].removeprefix("0x")
