"""The rules: pure functions of a snapshot and the tables."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from envcheck.rules.base import Rule


@functools.cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule, in catalogue order: causes before what follows from them.

    A function and not a constant, so that importing one rule does not import all.
    """
    from envcheck.rules.activity import ACTIVITY_RULES
    from envcheck.rules.container import CONTAINER_RULES
    from envcheck.rules.cuda import CUDA_RULES
    from envcheck.rules.cudnn_nccl import CUDNN_NCCL_RULES
    from envcheck.rules.driver import DRIVER_RULES
    from envcheck.rules.framework import FRAMEWORK_RULES
    from envcheck.rules.gpu import GPU_RULES
    from envcheck.rules.smoke import SMOKE_RULES, explaining_smoke
    from envcheck.rules.told import listening

    rules = (
        *DRIVER_RULES,
        *GPU_RULES,
        *CONTAINER_RULES,
        *CUDA_RULES,
        *CUDNN_NCCL_RULES,
        *FRAMEWORK_RULES,
        *SMOKE_RULES,
        *ACTIVITY_RULES,
    )
    return explaining_smoke(listening(rules))
