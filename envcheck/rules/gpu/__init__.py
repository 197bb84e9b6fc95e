"""Rules about GPUs: are all there, are they well, may this process use them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.rules.gpu.cuda_visible_devices_invalid import (
    cuda_visible_devices_invalid,
    mig_instance_limit,
)
from envcheck.rules.gpu.fabric_manager_not_running import (
    fabric_manager_not_running,
    fabric_manager_version_mismatch,
)
from envcheck.rules.gpu.gpu_exclusive_mode import gpu_exclusive_mode
from envcheck.rules.gpu.gpu_fell_off_bus import gpu_fell_off_bus
from envcheck.rules.gpu.gpu_init_failed import gpu_init_failed
from envcheck.rules.gpu.gpu_memory_error import gpu_memory_error, gpu_row_remap_pending
from envcheck.rules.gpu.gpu_memory_occupied import gpu_memory_occupied
from envcheck.rules.gpu.gpu_missing_from_driver import gpu_missing_from_driver
from envcheck.rules.gpu.gpu_throttled import gpu_throttled, pcie_link_degraded
from envcheck.rules.gpu.gpu_xid import gpu_xid
from envcheck.rules.gpu.p2p_blocked_by_iommu import p2p_blocked_by_iommu
from envcheck.rules.gpu.p2p_unavailable import p2p_unavailable

if TYPE_CHECKING:
    from envcheck.rules.base import Rule

GPU_RULES: tuple[Rule, ...] = (
    gpu_fell_off_bus,
    gpu_init_failed,
    gpu_missing_from_driver,
    gpu_memory_error,
    gpu_row_remap_pending,
    gpu_xid,
    fabric_manager_version_mismatch,
    fabric_manager_not_running,
    gpu_exclusive_mode,
    mig_instance_limit,
    cuda_visible_devices_invalid,
    gpu_throttled,
    pcie_link_degraded,
    gpu_memory_occupied,
    p2p_blocked_by_iommu,
    p2p_unavailable,
)
