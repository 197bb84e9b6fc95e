"""Rules about how well GPUs are used, judged on what `envcheck watch` sampled."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.rules.activity.busy_but_idle import busy_but_idle
from envcheck.rules.activity.comm_bound import comm_bound
from envcheck.rules.activity.cpu_training import cpu_training
from envcheck.rules.activity.gpu_idle import gpu_idle
from envcheck.rules.activity.input_bound import input_bound
from envcheck.rules.activity.launch_bound import launch_bound
from envcheck.rules.activity.memory_near_full import memory_near_full
from envcheck.rules.activity.near_limit import near_limit

if TYPE_CHECKING:
    from envcheck.rules.base import Rule

ACTIVITY_RULES: tuple[Rule, ...] = (
    cpu_training,
    input_bound,
    launch_bound,
    comm_bound,
    busy_but_idle,
    near_limit,
    gpu_idle,
    memory_near_full,
)
