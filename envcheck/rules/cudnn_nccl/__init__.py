"""Rules about the cuDNN and NCCL that frameworks load, in catalogue order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.rules.cudnn_nccl.cudnn_missing import cudnn_missing
from envcheck.rules.cudnn_nccl.cudnn_version_mismatch import cudnn_version_mismatch
from envcheck.rules.cudnn_nccl.nccl_version_mismatch import nccl_version_mismatch

if TYPE_CHECKING:
    from envcheck.rules.base import Rule

CUDNN_NCCL_RULES: tuple[Rule, ...] = (
    cudnn_missing,
    cudnn_version_mismatch,
    nccl_version_mismatch,
)
