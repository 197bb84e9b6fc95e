"""GPU names as drivers, tools and people write them, cut down to what identifies the GPU."""

from __future__ import annotations

import re

# Words of a GPU name that say nothing about the chip.
_PLAIN_WORDS = frozenset(
    (
        *("nvidia", "corporation", "tesla", "geforce", "quadro", "grid", "graphics", "device"),
        *("laptop", "gpu", "mobile", "max", "q", "with", "design", "generation", "edition"),
        *("founders", "workstation", "embedded", "pcie", "nvl", "mig", "me", "nvgpu", "cnx"),
        *("dgxs", "fhhl"),
    )
)
_PLAIN_SHAPES = re.compile(r"(?:\d+gb?|sxm\d?|nvl\d+|hbm\d?e?|\d+g\.\d+gb)\Z")
_WORD = re.compile(r"[a-z0-9.]+")
# `12 GB`, and the profile at the end of a vGPU name, `T4-16Q`.
_UNITS = re.compile(r"(?<=\d) +(?=gb\b)|-\d+[abcq]$")


def key(name: str) -> tuple[str, ...]:
    """The words of a GPU name that tell it from other GPUs; empty when there are none."""
    words = _WORD.findall(_UNITS.sub("", name.lower().strip()))
    return tuple(
        word for word in words if word not in _PLAIN_WORDS and not _PLAIN_SHAPES.match(word)
    )
