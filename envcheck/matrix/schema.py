"""Row types of the hardware and driver tables, and the registry of all row types.

Missing optional values are `None`; lists are tuples. A version is always text.
"""

from __future__ import annotations

from envcheck.matrix.activity import ActivityThreshold
from envcheck.matrix.row import CONFIDENCES, METHODS, Row, TableSource
from envcheck.matrix.software import (
    Companion,
    CudnnKnownBad,
    CudnnRelease,
    CudnnSupport,
    Framework,
    JaxPlugin,
    JaxRelease,
    KnownBad,
    LibraryRequirement,
    NcclKnownBad,
    NcclRelease,
    NcclTargets,
    TensorflowRelease,
    TensorflowTested,
    TorchBuild,
)
from envcheck.matrix.symptoms import SymptomRow
from envcheck.matrix.systems import (
    CudaImage,
    Distro,
    DistroPackage,
    Extension,
    FrameworkImage,
    ImageTool,
    SystemImage,
    ToolkitRelease,
)
from envcheck.model.base import model

__all__ = [
    "CONFIDENCES",
    "METHODS",
    "ROWS",
    "TABLES",
    "ActivityThreshold",
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
    "Extension",
    "ForwardCompat",
    "Framework",
    "FrameworkImage",
    "GpuProduct",
    "HostCompiler",
    "ImageTool",
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
    "SymptomRow",
    "SystemImage",
    "TableSource",
    "TensorflowRelease",
    "TensorflowTested",
    "ToolkitRelease",
    "TorchBuild",
    "Xid",
]


@model
class CudaToolkit(Row):
    """A CUDA toolkit release and the driver of that release.

    Attributes:
        cuda: full version, `12.8.1`.
        driver_linux: lowest Linux driver of this very release; absent when none was published.
        driver_windows: the same for Windows.
        bundled_linux: driver inside the Linux installer where it differs from `driver_linux`.
    """

    table = "cuda"
    section = "toolkit"
    key = ("cuda",)
    versions = (
        "cuda",
        "driver_linux",
        "driver_windows",
        "bundled_linux",
    )

    cuda: str
    driver_linux: str | None = None
    driver_windows: str | None = None
    bundled_linux: str | None = None


@model
class MinorFloor(Row):
    """The driver with which every minor release of a CUDA major runs, PTX and new features aside.

    Attributes:
        cuda_major: `12`.
        driver_linux: lowest Linux driver.
        driver_windows: lowest Windows driver.
    """

    table = "cuda"
    section = "minor_floor"
    key = ("cuda_major",)
    versions = ("cuda_major", "driver_linux", "driver_windows")

    cuda_major: str
    driver_linux: str
    driver_windows: str | None = None


@model
class ForwardCompat(Row):
    """Older driver branches on which the compat package of a CUDA release works.

    Attributes:
        cuda: full version of the release.
        branches: driver branches, oldest first.
    """

    table = "cuda"
    section = "forward_compat"
    key = ("cuda",)
    versions = ("cuda", "branches")

    cuda: str
    branches: tuple[str, ...]


@model
class PtxasTargets(Row):
    """Machine-code targets of the assembler in a toolkit.

    Attributes:
        cuda: minor release, `12.8`.
        arches: targets such as `sm_90a`.
    """

    table = "cuda"
    section = "ptxas"
    key = ("cuda",)
    versions = ("cuda",)

    cuda: str
    arches: tuple[str, ...]


@model
class HostCompiler(Row):
    """Host compilers that nvcc of a toolkit accepts, as major versions, bounds included.

    Attributes:
        cuda: minor release, `12.8`.
        gcc_max: newest accepted GCC.
        clang_max: newest accepted Clang.
        gcc_min: oldest accepted GCC, where the header names one.
        clang_min: oldest accepted Clang, where the header names one.
    """

    table = "cuda"
    section = "host_compiler"
    key = ("cuda",)
    versions = ("cuda", "gcc_max", "clang_max", "gcc_min", "clang_min")

    cuda: str
    gcc_max: str
    clang_max: str
    gcc_min: str | None = None
    clang_min: str | None = None


@model
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

    table = "driver"
    section = "branch"
    key = ("branch",)
    versions = ("branch", "cuda")

    branch: str
    kind: str
    eol: str | None = None
    ended: bool | None = None
    cuda: str | None = None
    open_module: str | None = None


@model
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

    table = "gpu"
    section = "capability"
    key = ("cc",)
    versions = (
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


@model
class GpuProduct(Row):
    """A GPU as it is sold.

    Attributes:
        name: without the maker, memory size and form factor, `GeForce RTX 4090`.
        cc: compute capability.
        kind: `datacenter`, `workstation`, `geforce`, `titan`, `jetson`, `embedded`, `cloud` or
            `mining`.
        forward_compat: whether CUDA forward compatibility is offered on it; absent when not known.
    """

    table = "gpu"
    section = "product"
    key = ("name",)
    versions = ("cc",)

    name: str
    cc: str
    kind: str
    forward_compat: bool | None = None


@model
class PciGpu(Row):
    """A GPU by its PCI device id under NVIDIA's vendor id.

    Attributes:
        id: four lower-case hexadecimal digits.
        chip: code name of the chip, `GH100`.
        name: the registered name.
        cc: compute capability.
    """

    table = "pci"
    section = "device"
    key = ("id",)
    versions = ("cc",)

    id: str
    chip: str
    name: str
    cc: str


@model
class NvSwitch(Row):
    """An NVSwitch by its PCI device id.

    Attributes:
        id: four lower-case hexadecimal digits.
        name: the registered name.
    """

    table = "pci"
    section = "nvswitch"
    key = ("id",)

    id: str
    name: str


@model
class Xid(Row):
    """An error number that the NVIDIA kernel module logs.

    Attributes:
        number: the Xid.
        mnemonic: the driver's name for it.
        meaning: in words.
        severity: `error` (the machine needs attention), `warning`, or `info` (the program is at
            fault, or nothing is).
        action: what to do.
        finding: id of the finding that reports it, where one is more precise than `gpu-xid`.
    """

    table = "xid"
    section = "xid"
    key = ("number",)

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
    SystemImage,
    FrameworkImage,
    ImageTool,
    Extension,
    Framework,
    TorchBuild,
    Companion,
    TensorflowRelease,
    TensorflowTested,
    JaxRelease,
    JaxPlugin,
    LibraryRequirement,
    ActivityThreshold,
    SymptomRow,
)

TABLES: tuple[str, ...] = tuple(dict.fromkeys(cls.table for cls in ROWS if cls is not Framework))
