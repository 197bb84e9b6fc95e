"""Rules about the driver: is one there, does it fit, is it in the kernel, does it answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.rules.driver.driver_branch_ended import driver_branch_ended
from envcheck.rules.driver.driver_library_mismatch import driver_library_mismatch
from envcheck.rules.driver.driver_missing import driver_missing
from envcheck.rules.driver.driver_module_rejected import driver_module_rejected
from envcheck.rules.driver.driver_not_loaded import driver_not_loaded
from envcheck.rules.driver.driver_state_stale import driver_state_stale
from envcheck.rules.driver.gpu_dropped_by_driver import (
    driver_flavour_wrong,
    gpu_dropped_by_driver,
    gpu_needs_newer_driver,
)
from envcheck.rules.driver.no_gpu import no_gpu
from envcheck.rules.driver.nouveau_conflict import nouveau_conflict
from envcheck.rules.driver.wsl_gpu_unavailable import wsl_gpu_unavailable, wsl_linux_driver

if TYPE_CHECKING:
    from envcheck.rules.base import Rule

DRIVER_RULES: tuple[Rule, ...] = (
    no_gpu,
    driver_missing,
    wsl_linux_driver,
    wsl_gpu_unavailable,
    gpu_dropped_by_driver,
    gpu_needs_newer_driver,
    driver_flavour_wrong,
    nouveau_conflict,
    driver_module_rejected,
    driver_library_mismatch,
    driver_not_loaded,
    driver_state_stale,
    driver_branch_ended,
)
