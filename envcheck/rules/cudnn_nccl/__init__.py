"""Rules about the cuDNN and NCCL that frameworks load, in catalogue order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.rules.cudnn_nccl.cudnn_missing import cudnn_missing
from envcheck.rules.cudnn_nccl.cudnn_version_mismatch import cudnn_version_mismatch
from envcheck.rules.cudnn_nccl.nccl_cumem_unsupported import nccl_cumem_unsupported
from envcheck.rules.cudnn_nccl.nccl_network_unreachable import nccl_network_unreachable
from envcheck.rules.cudnn_nccl.nccl_version_mismatch import nccl_version_mismatch
from envcheck.rules.cudnn_nccl.nccl_wrong_interface import nccl_wrong_interface
from envcheck.rules.cudnn_nccl.ranks_share_gpu import ranks_share_gpu

if TYPE_CHECKING:
    from envcheck.rules.base import Rule

CUDNN_NCCL_RULES: tuple[Rule, ...] = (
    cudnn_missing,
    cudnn_version_mismatch,
    nccl_version_mismatch,
    nccl_wrong_interface,
    nccl_network_unreachable,
    nccl_cumem_unsupported,
    ranks_share_gpu,
)
