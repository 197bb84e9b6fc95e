"""Reads what a native extension says about the torch and the CUDA that it was built for."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from envcheck.model.base import model
from envcheck.versions import Release

if TYPE_CHECKING:
    from envcheck.model.environment import Package

COMPANIONS = frozenset({"torchvision", "torchaudio"})

_CUDA = re.compile(r"(?<![a-z])cu(\d{2,3})(?!\d)", re.IGNORECASE)
_TORCH = re.compile(r"(?:torch|(?<![a-z])pt)(\d+(?:\.\d+)*)", re.IGNORECASE)

NATIVE = frozenset(
    {
        "auto-gptq",
        "causal-conv1d",
        "exllamav2",
        "fbgemm-gpu",
        "flash-attn",
        "flash-attn-3",
        "gptqmodel",
        "mamba-ssm",
        "mmcv",
        "natten",
        "pyg-lib",
        "pytorch3d",
        "sgl-kernel",
        "torch-cluster",
        "torch-scatter",
        "torch-sparse",
        "torch-spline-conv",
        "torchtext",
        "vllm",
        "vllm-flash-attn",
        "xformers",
    }
)
"""Distributions that hold machine code linked against torch."""


@model
class Built:
    """What an extension's tag names.

    Attributes:
        package: the extension.
        torch: releases of torch that the tag may mean, `2.5`; `pt210` is 2.1 or 2.10.
        cuda_major: of the tag.
        text: the tag.
    """

    package: Package
    torch: tuple[str, ...]
    cuda_major: int | None
    text: str


def built(package: Package) -> Built | None:
    """Read an extension's local tag; None for distributions that are no torch extension.

    Tags look like `+cu12torch2.5cxx11abiFALSE`, `+pt25cu124`, `+cu121`. They stand in the version
    or, when the wheel was renamed, only in the file name that was installed.
    """
    text = next(
        (
            tag
            for source in (package.version, package.build or "")
            if (tag := source.partition("+")[2].partition("-")[0])
        ),
        "",
    )
    torch = _TORCH.search(text)
    if torch is None and package.name not in NATIVE:
        return None
    cuda = _CUDA.search(text)
    if torch is None and cuda is None:
        return None
    return Built(
        package=package,
        torch=_releases(torch.group(1)) if torch else (),
        cuda_major=int(cuda.group(1)[:2]) if cuda else None,
        text=text,
    )


def _releases(digits: str) -> tuple[str, ...]:
    """Releases that a tag's digits may mean: `2.5.1` is 2.5; `25` is 2.5; `210` is 2.1 or 2.10."""
    if "." in digits:
        return (Release.parse(digits).series,)
    major, rest = digits[0], digits[1:]
    lengths = range(1, min(len(rest), 2) + 1)
    return tuple(f"{major}.{int(rest[:length])}" for length in lengths)
