"""Brings tables up to date from the wheels of a package index: read, derive, compare, write.

Nothing here runs unless `envcheck tables refresh` asks for it, and no address of an index is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from envcheck.refresh.derived import Derived, Scope
    from envcheck.refresh.wheel_index import WheelIndex

    Derive = Callable[[WheelIndex, Scope], Derived]
    Listed = Callable[[str, dict[str, Any]], bool]

TABLES = (
    "cudnn",
    "frameworks/jax",
    "frameworks/libraries",
    "frameworks/tensorflow",
    "frameworks/torch",
    "nccl",
)
"""Tables that follow from wheels."""


def reader(table: str) -> tuple[Derive, Listed]:
    """What derives the rows of a table, and what tells which of its rows an index should list."""
    match table:
        case "frameworks/torch":
            from envcheck.refresh import torch

            return torch.derive, torch.listed
        case "frameworks/tensorflow":
            from envcheck.refresh import tensorflow

            return tensorflow.derive, tensorflow.listed
        case "frameworks/jax":
            from envcheck.refresh import jax

            return jax.derive, jax.listed
        case "frameworks/libraries":
            from envcheck.refresh import libraries

            return libraries.derive, libraries.listed
        case "cudnn":
            from envcheck.refresh import nvidia

            return nvidia.derive_cudnn, nvidia.listed
        case "nccl":
            from envcheck.refresh import nvidia

            return nvidia.derive_nccl, nvidia.listed
    msg = f"no reader for {table}"
    raise KeyError(msg)
