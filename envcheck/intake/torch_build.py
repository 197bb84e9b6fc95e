"""Tells from a text which build of torch it is about: whose, and for which CUDA."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from envcheck.matrix import query
from envcheck.model.environment import Framework, Origin

if TYPE_CHECKING:
    from envcheck.intake.collected import Collected
    from envcheck.matrix.loader import Matrix
    from envcheck.model.environment import Package, Python

_LOCAL = re.compile(r"cu(\d{2})(\d)(?!\d)")


def torch_framework(found: Collected, matrix: Matrix, python: Python) -> Framework | None:
    """The torch that a text is about, None when it names none."""
    torch, package = found.torch, found.packages.get("torch")
    version = torch.version or (package.version if package else None)
    if version is None or version == "0":
        return None
    if package is not None and "+" not in version and package.version.startswith(f"{version}+"):
        version = package.version
    origin = _origin(found, version, package, python)
    cuda, cpu_only = torch.cuda, None
    local = version.partition("+")[2]
    tag = _LOCAL.match(local)
    if cuda is None and tag is not None and not torch.cuda_said:
        cuda = f"{tag[1]}.{tag[2]}"
    build = (package.build or "") if package is not None else ""
    conda_cuda = re.search(r"cuda_?(\d{2}\.\d|\d{2,3})", build)
    if cuda is None and conda_cuda and not torch.cuda_said and "cpu" not in build:
        digits = conda_cuda[1].replace(".", "")
        cuda = f"{digits[:2]}.{digits[2:]}" if len(digits) == 3 else None
    other = torch.hip or torch.xpu or local.startswith(("rocm", "xpu"))
    if cuda is None and not other:
        if torch.cuda_said or local == "cpu" or re.search(r"(?:^|_)cpu(?:_|$)", build):
            cpu_only = True
        elif origin == "index":
            cuda, cpu_only = _default(found, matrix, version, python)
    elif cuda is not None:
        cpu_only = False
    return Framework(
        name="torch",
        version=version,
        cuda=cuda,
        cpu_only=cpu_only,
        hip=torch.hip or (local if local.startswith("rocm") else None),
        xpu=torch.xpu or (local if local.startswith("xpu") else None),
        arches=torch.arches,
        origin=origin,
        platform=python.platform,
        gpu_available=torch.available,
    )


def _default(
    found: Collected, matrix: Matrix, version: str, python: Python
) -> tuple[str | None, bool | None]:
    """CUDA of the build that a plain `pip install` gets: known when its wheels are listed too."""
    platform = python.platform or "linux_x86_64"
    if platform.startswith("win") and found.torch.version is None:
        # Only the list of packages names it: the index has builds without CUDA for Windows.
        return None, True if found.torch.available is False else None
    if not platform.startswith("linux"):
        return None, None
    row = next(
        (
            each
            for each in query.torch_builds(matrix, version.partition("+")[0], platform=platform)
            if each.index_default
        ),
        None,
    )
    if row is None:
        return None, None
    if row.cuda == "cpu":
        return None, True
    major = row.cuda.partition(".")[0]
    bundled = any(
        re.fullmatch(rf"nvidia-[a-z-]+-cu{major}", name)
        or name in {"nvidia-cublas", "cuda-toolkit"}
        for name in found.packages
    )
    return (row.cuda, False) if bundled or found.torch.available else (None, None)


def _origin(found: Collected, version: str, package: Package | None, python: Python) -> Origin:
    """Whose build it is; table rows are about wheels of the index and of torch's own site."""
    local = version.partition("+")[2]
    if re.search(r"(?:^|\.)nv\d", local):
        return "jetson" if found.jetson or found.os.get("tegra") else "ngc"
    if re.search(r"a0(?:\+|$)|git", version):
        return "source"
    if package is not None and package.installer == "conda":
        return "conda-forge" if package.channel == "conda-forge" else "conda"
    if found.torch.settings == "USE_CUDA=0" and found.python.get("built_by_conda"):
        return "conda"
    if ".dev" in version:
        return "unknown"
    if re.fullmatch(r"cu\d{2,3}", local):
        row_default = package is not None and "+" not in package.version
        return "index" if row_default else "framework-index"
    if local == "cpu":
        return "framework-index"
    if not local:
        if found.torch.cuda_said and found.torch.cuda is None:
            # A wheel of the index that has no CUDA, or conda's build under the same version.
            return "conda" if python.kind == "conda" and package is None else "index"
        return "conda" if python.kind == "conda" and package is None else "index"
    return "unknown"
