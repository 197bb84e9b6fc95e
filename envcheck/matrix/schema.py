"""Row types of the hardware and driver tables, and the registry of all row types.

Missing optional values are `None`; lists are tuples. A version is always text.
"""

from __future__ import annotations

from typing import ClassVar

from envcheck.matrix.row import CONFIDENCES, METHODS, Row, TableSource, row
from envcheck.matrix.software import (
    Companion,
    CudaImage,
    CudnnRelease,
    CudnnSupport,
    Distro,
    DistroPackage,
    Framework,
    JaxPlugin,
    JaxRelease,
    LibraryRequirement,
    NcclRelease,
    NcclTargets,
    TensorflowRelease,
    TensorflowTested,
    ToolkitRelease,
    TorchBuild,
)

__all__ = [
    "CONFIDENCES",
    "METHODS",
    "ROWS",
    "TABLES",
    "Capability",
    "Companion",
    "CudaImage",
    "CudaToolkit",
    "CudnnKnownBad",
    "CudnnRelease",
    "CudnnSupport",
    "Distro",
    "DistroPackage",
    "DriverBranch",
    "ForwardCompat",
    "Framework",
    "GpuProduct",
    "HostCompiler",
    "JaxPlugin",
    "JaxRelease",
    "KnownBad",
    "LibraryRequirement",
    "MinorFloor",
    "NcclKnownBad",
    "NcclRelease",
    "NcclTargets",
    "NvSwitch",
    "PciGpu",
    "PtxasTargets",
    "Row",
    "TableSource",
    "TensorflowRelease",
    "TensorflowTested",
    "ToolkitRelease",
    "TorchBuild",
    "Xid",
]


@row
class CudaToolkit(Row):
    """A CUDA toolkit release and the driver of that release.

    Attributes:
        cuda: full version, `12.8.1`.
        driver_linux: lowest Linux driver of this very release; absent when none was published.
        driver_windows: the same for Windows.
        bundled_linux: driver inside the Linux installer where it differs from `driver_linux`.
    """

    table: ClassVar[str] = "cuda"
    section: ClassVar[str] = "toolkit"
    key: ClassVar[tuple[str, ...]] = ("cuda",)
    versions: ClassVar[tuple[str, ...]] = ("cuda", "driver_linux", "driver_windows", "bundled_linux")

    cuda: str
    driver_linux: str | None = None
    driver_windows: str | None = None
    bundled_linux: str | None = None


@row
class MinorFloor(Row):
    """The driver with which every minor release of a CUDA major runs, PTX and new features aside.

    Attributes:
        cuda_major: `12`.
        driver_linux: lowest Linux driver.
        driver_windows: lowest Windows driver.
    """

    table: ClassVar[str] = "cuda"
    section: ClassVar[str] = "minor_floor"
    key: ClassVar[tuple[str, ...]] = ("cuda_major",)
    versions: ClassVar[tuple[str, ...]] = ("cuda_major", "driver_linux", "driver_windows")

    cuda_major: str
    driver_linux: str
    driver_windows: str | None = None


@row
class ForwardCompat(Row):
    """Older driver branches on which the compat package of a CUDA release works.

    Attributes:
        cuda: full version of the release.
        branches: driver branches, oldest first.
    """

    table: ClassVar[str] = "cuda"
    section: ClassVar[str] = "forward_compat"
    key: ClassVar[tuple[str, ...]] = ("cuda",)
    versions: ClassVar[tuple[str, ...]] = ("cuda", "branches")

    cuda: str
    branches: tuple[str, ...]


@row
class PtxasTargets(Row):
    """Machine-code targets of the assembler in a toolkit.

    Attributes:
        cuda: minor release, `12.8`.
        arches: targets such as `sm_90a`.
    """

    table: ClassVar[str] = "cuda"
    section: ClassVar[str] = "ptxas"
    key: ClassVar[tuple[str, ...]] = ("cuda",)
    versions: ClassVar[tuple[str, ...]] = ("cuda",)

    cuda: str
    arches: tuple[str, ...]


@row
class HostCompiler(Row):
    """Host compilers that nvcc of a toolkit accepts, as major versions, bounds included.

    Attributes:
        cuda: minor release, `12.8`.
        gcc_max: newest accepted GCC.
        clang_max: newest accepted Clang.
        gcc_min: oldest accepted GCC, where the header names one.
        clang_min: oldest accepted Clang, where the header names one.
    """

    table: ClassVar[str] = "cuda"
    section: ClassVar[str] = "host_compiler"
    key: ClassVar[tuple[str, ...]] = ("cuda",)
    versions: ClassVar[tuple[str, ...]] = ("cuda", "gcc_max", "clang_max", "gcc_min", "clang_min")

    cuda: str
    gcc_max: str
    clang_max: str
    gcc_min: str | None = None
    clang_min: str | None = None


@row
class DriverBranch(Row):
    """A driver branch.

    Attributes:
        branch: first number of its versions, `580`.
        kind: `lts`, `production`, `new-feature`, `developer` or `legacy`.
        eol: last month with fixes, `2028-06`.
        ended: whether it was listed as ended, where no month is known.
        cuda: CUDA version that its drivers report, `13.0`.
        open_module: `default` (recommended where the GPU allows), `only`, `available` or absent.
    """

    table: ClassVar[str] = "driver"
    section: ClassVar[str] = "branch"
    key: ClassVar[tuple[str, ...]] = ("branch",)
    versions: ClassVar[tuple[str, ...]] = ("branch", "cuda")

    branch: str
    kind: str
    eol: str | None = None
    ended: bool | None = None
    cuda: str | None = None
    open_module: str | None = None


@row
class Capability(Row):
    """A compute capability.

    Attributes:
        cc: `8.9`.
        architecture: `Ada`.
        first_cuda: first toolkit that compiles for it.
        last_cuda: last minor release that does; absent while support goes on.
        min_driver: first driver branch that runs it.
        last_driver_branch: last one; absent while support goes on.
        module: kernel modules that can drive it: `proprietary`, `either` or `open`.
        tegra: whether it is an integrated GPU whose driver comes with the board's own system.
    """

    table: ClassVar[str] = "gpu"
    section: ClassVar[str] = "capability"
    key: ClassVar[tuple[str, ...]] = ("cc",)
    versions: ClassVar[tuple[str, ...]] = (
        "cc",
        "first_cuda",
        "last_cuda",
        "min_driver",
        "last_driver_branch",
    )

    cc: str
    architecture: str
    tegra: bool
    first_cuda: str | None = None
    last_cuda: str | None = None
    min_driver: str | None = None
    last_driver_branch: str | None = None
    module: str | None = None


@row
class GpuProduct(Row):
    """A GPU as it is sold.

    Attributes:
        name: without the maker, memory size and form factor, `GeForce RTX 4090`.
        cc: compute capability.
        kind: `datacenter`, `workstation`, `geforce`, `titan`, `jetson`, `embedded`, `cloud` or `mining`.
        forward_compat: whether CUDA forward compatibility is offered on it; absent when not known.
    """

    table: ClassVar[str] = "gpu"
    section: ClassVar[str] = "product"
    key: ClassVar[tuple[str, ...]] = ("name",)
    versions: ClassVar[tuple[str, ...]] = ("cc",)

    name: str
    cc: str
    kind: str
    forward_compat: bool | None = None


@row
class PciGpu(Row):
    """A GPU by its PCI device id under NVIDIA's vendor id.

    Attributes:
        id: four lower-case hexadecimal digits.
        chip: code name of the chip, `GH100`.
        name: the registered name.
        cc: compute capability.
    """

    table: ClassVar[str] = "pci"
    section: ClassVar[str] = "device"
    key: ClassVar[tuple[str, ...]] = ("id",)
    versions: ClassVar[tuple[str, ...]] = ("cc",)

    id: str
    chip: str
    name: str
    cc: str


@row
class NvSwitch(Row):
    """An NVSwitch by its PCI device id.

    Attributes:
        id: four lower-case hexadecimal digits.
        name: the registered name.
    """

    table: ClassVar[str] = "pci"
    section: ClassVar[str] = "nvswitch"
    key: ClassVar[tuple[str, ...]] = ("id",)

    id: str
    name: str


@row
class KnownBad(Row):
    """A combination that is known to fail.

    Attributes:
        id: short name of the combination.
        combination: what meets what.
        symptom: the message it gives.
        cause: why.
        fix: what helps.
    """

    key: ClassVar[tuple[str, ...]] = ("id",)

    id: str
    combination: str
    symptom: str
    cause: str | None = None
    fix: str | None = None


@row
class CudnnKnownBad(KnownBad):
    """A combination with cuDNN that is known to fail."""

    table: ClassVar[str] = "cudnn"
    section: ClassVar[str] = "known_bad"


@row
class NcclKnownBad(KnownBad):
    """A combination with NCCL that is known to fail."""

    table: ClassVar[str] = "nccl"
    section: ClassVar[str] = "known_bad"


@row
class Xid(Row):
    """An error number that the NVIDIA kernel module logs.

    Attributes:
        number: the Xid.
        mnemonic: the driver's name for it.
        meaning: in words.
        severity: `error` (the machine needs attention), `warning` or `info` (the program, or nothing).
        action: what to do.
        finding: id of the finding that reports it, where one is more precise than `gpu-xid`.
    """

    table: ClassVar[str] = "xid"
    section: ClassVar[str] = "xid"
    key: ClassVar[tuple[str, ...]] = ("number",)

    number: int
    mnemonic: str
    meaning: str
    severity: str
    action: str
    finding: str | None = None


ROWS: tuple[type[Row], ...] = (
    CudaToolkit,
    MinorFloor,
    ForwardCompat,
    PtxasTargets,
    HostCompiler,
    DriverBranch,
    Capability,
    GpuProduct,
    PciGpu,
    NvSwitch,
    CudnnSupport,
    CudnnRelease,
    CudnnKnownBad,
    NcclRelease,
    NcclTargets,
    NcclKnownBad,
    Distro,
    DistroPackage,
    Xid,
    CudaImage,
    ToolkitRelease,
    Framework,
    TorchBuild,
    Companion,
    TensorflowRelease,
    TensorflowTested,
    JaxRelease,
    JaxPlugin,
    LibraryRequirement,
)

TABLES: tuple[str, ...] = tuple(dict.fromkeys(cls.table for cls in ROWS if cls is not Framework))
