"""Asks the rules about CUDA, cuDNN, NCCL and frameworks, against the shipped tables."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from envcheck.engine import judge
from envcheck.matrix.loader import Matrix
from envcheck.model.environment import Library, Package
from envcheck.rules.cuda import CUDA_RULES
from envcheck.rules.cudnn_nccl import CUDNN_NCCL_RULES
from envcheck.rules.framework import FRAMEWORK_RULES
from tests.support import gpu

if TYPE_CHECKING:
    from envcheck.model.finding import Finding, Report
    from envcheck.model.host import Gpu
    from envcheck.model.snapshot import Snapshot

STACK_RULES = (*CUDA_RULES, *CUDNN_NCCL_RULES, *FRAMEWORK_RULES)

SITE = "~/venv/lib/python3.12/site-packages"

_LINUX_X86 = '; platform_system == "Linux" and platform_machine == "x86_64"'
_LINUX = '; platform_system == "Linux"'

TORCH_28_REQUIRES = (
    "filelock",
    'setuptools; python_version >= "3.12"',
    f"nvidia-cuda-nvrtc-cu12==12.8.93{_LINUX_X86}",
    f"nvidia-cuda-runtime-cu12==12.8.90{_LINUX_X86}",
    f"nvidia-cuda-cupti-cu12==12.8.90{_LINUX_X86}",
    f"nvidia-cudnn-cu12==9.10.2.21{_LINUX_X86}",
    f"nvidia-cublas-cu12==12.8.4.1{_LINUX_X86}",
    f"nvidia-cufft-cu12==11.3.3.83{_LINUX_X86}",
    f"nvidia-curand-cu12==10.3.9.90{_LINUX_X86}",
    f"nvidia-cusolver-cu12==11.7.3.90{_LINUX_X86}",
    f"nvidia-cusparse-cu12==12.5.8.93{_LINUX_X86}",
    f"nvidia-cusparselt-cu12==0.7.1{_LINUX_X86}",
    f"nvidia-nccl-cu12==2.27.3{_LINUX_X86}",
    f"nvidia-nvtx-cu12==12.8.90{_LINUX_X86}",
    f"nvidia-nvjitlink-cu12==12.8.93{_LINUX_X86}",
    f"nvidia-cufile-cu12==1.13.1.3{_LINUX_X86}",
    f"triton==3.4.0{_LINUX_X86}",
    'optree>=0.13.0; extra == "optree"',
)
"""Requires-Dist of torch 2.8.0 from the package index."""

TORCH_211_REQUIRES = (
    "filelock",
    "cuda-toolkit[cublas,cudart,cufft,cufile,cupti,curand,cusolver,cusparse,nvjitlink,nvrtc,nvtx]"
    f"==13.0.2{_LINUX}",
    f"cuda-bindings<14,>=13.0.3{_LINUX}",
    f"nvidia-cudnn-cu13==9.19.0.56{_LINUX}",
    f"nvidia-cusparselt-cu13==0.8.0{_LINUX}",
    f"nvidia-nccl-cu13==2.28.9{_LINUX}",
    f"nvidia-nvshmem-cu13==3.4.5{_LINUX}",
    f"triton==3.6.0{_LINUX}",
)
"""Requires-Dist of torch 2.11.0 from the package index."""

H200_WHEELS = {
    "cuda-toolkit": "13.0.2",
    "nvidia-cublas": "13.1.0.3",
    "nvidia-cuda-cupti": "13.0.85",
    "nvidia-cuda-nvrtc": "13.0.88",
    "nvidia-cuda-runtime": "13.0.96",
    "nvidia-cudnn-cu13": "9.19.0.56",
    "nvidia-cufft": "12.0.0.61",
    "nvidia-cufile": "1.15.1.6",
    "nvidia-curand": "10.4.0.35",
    "nvidia-cusolver": "12.0.4.66",
    "nvidia-cusparse": "12.6.3.3",
    "nvidia-cusparselt-cu13": "0.8.0",
    "nvidia-nccl-cu13": "2.28.9",
    "nvidia-nvjitlink": "13.0.88",
    "nvidia-nvshmem-cu13": "3.4.5",
    "nvidia-nvtx": "13.0.85",
}
"""NVIDIA wheels of a healthy machine with torch 2.11.0 from the package index."""


@functools.cache
def tables() -> Matrix:
    """The tables of this checkout, read once."""
    return Matrix.shipped()


def report(snapshot: Snapshot) -> Report:
    """What the rules about CUDA, cuDNN, NCCL and frameworks say of a machine; none may crash."""
    answer = judge(snapshot, tables(), STACK_RULES)
    assert [each for each in answer.unknown if each.kind == "crashed"] == []
    return answer


def said(snapshot: Snapshot) -> list[tuple[str, str]]:
    """(id, severity) of every finding."""
    return [(each.id, each.severity) for each in report(snapshot).findings]


def unknowns(snapshot: Snapshot) -> list[tuple[str, str]]:
    """(check, kind) of every question that stayed open."""
    return [(each.check, each.kind) for each in report(snapshot).unknown]


def only(snapshot: Snapshot) -> Finding:
    """The one finding of a machine, which must have exactly one and no open question."""
    answer = report(snapshot)
    assert [each.id for each in answer.findings] == [answer.findings[0].id]
    assert answer.unknown == ()
    return answer.findings[0]


def commands(finding: Finding) -> list[str]:
    """Every command of every road of a finding."""
    return [command for road in finding.fix for command in road.commands]


def card(name: str, arch: str) -> tuple[Gpu, ...]:
    """One GPU."""
    return (gpu(name=name, arch=arch),)


def package(name: str, version: str, **facts: Any) -> Package:
    """A distribution that pip installed into the environment."""
    return Package(name=name, version=version, **{"installer": "pip", "location": SITE, **facts})


def packages(wheels: dict[str, str], *more: Package) -> tuple[Package, ...]:
    """Distributions by name and version, and some more."""
    return (*more, *(package(name, version) for name, version in wheels.items()))


def torch_28_wheels(**changed: str | None) -> tuple[Package, ...]:
    """torch 2.8.0 with the wheels that it pins; change or leave out some by stem (`cudnn=None`)."""
    found = [package("torch", "2.8.0", requires=TORCH_28_REQUIRES)]
    for line in TORCH_28_REQUIRES:
        name, _, rest = line.partition("==")
        if not name.startswith("nvidia-"):
            continue
        version = changed.get(name.split("-")[-2], rest.partition(";")[0])
        if version is not None:
            found.append(package(name, version))
    return tuple(found)


def library(name: str, version: str, path: str, **facts: Any) -> Library:
    """A copy of a library that torch's loader takes."""
    soname = path.rpartition("/")[2]
    return Library(
        name=name,
        **{"soname": soname, "version": version, "path": path, "wins_for": ("torch",), **facts},
    )
