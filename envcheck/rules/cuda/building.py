"""Whether extensions are built in this environment, and with which toolkit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.model.finding import Evidence

if TYPE_CHECKING:
    from envcheck.model.environment import Toolkit
    from envcheck.model.snapshot import Snapshot

BUILD_VARIABLES = (
    "TORCH_CUDA_ARCH_LIST",
    "FLASH_ATTENTION_FORCE_BUILD",
    "DS_BUILD_OPS",
    "NVCC_APPEND_FLAGS",
    "CUDAHOSTCXX",
)
"""Variables that only someone who compiles CUDA code sets."""

BUILDERS = frozenset({"deepspeed"})
"""Distributions that compile their kernels on the user's machine."""


def toolkit_in_use(snapshot: Snapshot) -> Toolkit | None:
    """The toolkit whose nvcc a build would take."""
    return next((t for t in snapshot.env.toolkits or () if t.on_path and t.nvcc is not False), None)


def evidence(snapshot: Snapshot) -> tuple[Evidence, ...]:
    """What shows that extensions are built here; empty when nothing does."""
    found = [
        Evidence(label=name, value=value, via="environment")
        for name in BUILD_VARIABLES
        if (value := snapshot.env.variable(name)) is not None
    ]
    found += [
        Evidence(label=p.name, value=f"{p.version} compiles kernels when it runs", via="metadata")
        for p in snapshot.env.packages or ()
        if p.name in BUILDERS
    ]
    return tuple(found)
