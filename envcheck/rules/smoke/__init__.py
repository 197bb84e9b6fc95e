"""Rules about what happened when something small was run on the GPU."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from envcheck.rules.smoke.smoke_crashed import smoke_crashed
from envcheck.rules.smoke.smoke_timeout import smoke_timeout
from envcheck.rules.smoke.smoke_wrong_result import smoke_wrong_result

if TYPE_CHECKING:
    from envcheck.rules.base import Rule

SMOKE_RULES: tuple[Rule, ...] = (smoke_wrong_result, smoke_crashed, smoke_timeout)

_DATA = frozenset({"gpu-fell-off-bus", "gpu-memory-error", "p2p-blocked-by-iommu"})
"""Causes that also make numbers wrong; the others make a stage fail or hang only."""

CAUSES = _DATA | {
    "no-gpu",
    "driver-missing",
    "driver-not-loaded",
    "driver-library-mismatch",
    "driver-module-rejected",
    "nouveau-conflict",
    "driver-state-stale",
    "driver-too-old",
    "gpu-dropped-by-driver",
    "gpu-needs-newer-driver",
    "driver-flavour-wrong",
    "gpu-exclusive-mode",
    "gpu-init-failed",
    "gpu-memory-occupied",
    "fabric-manager-not-running",
    "fabric-manager-version-mismatch",
    "mig-instance-limit",
    "cuda-visible-devices-invalid",
    "forward-compat-unsupported",
    "ptx-newer-than-driver",
    "cuda-libraries-missing",
    "cuda-runtime-mismatch",
    "mixed-cuda-majors",
    "library-path-shadows-cuda",
    "library-path-shadows-cudnn",
    "library-path-shadows-nccl",
    "libcuda-not-linkable",
    "ptxas-too-old-for-gpu",
    "cudnn-missing",
    "cudnn-version-mismatch",
    "nccl-version-mismatch",
    "shm-too-small",
    "nccl-network-unreachable",
    "nccl-wrong-interface",
    "nccl-cumem-unsupported",
    "ranks-share-gpu",
    "framework-cpu-build",
    "gpu-newer-than-build",
    "gpu-older-than-build",
    "library-drops-gpu",
    "numpy-abi-mismatch",
    "glibc-too-old",
    "jax-plugin-mismatch",
    "wsl-gpu-unavailable",
    "wsl-linux-driver",
    "container-toolkit-missing",
    "container-without-gpu",
    "container-device-access-lost",
    "driver-capabilities-missing",
}
"""Errors under which a failed smoke test is folded: it is then what they lead to."""


def explaining_smoke(rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
    """The same rules, where those that explain a failed smoke test say so.

    Here and not in forty places: which causes they are is one question.
    """
    told = []
    for rule in rules:
        effects: tuple[str, ...] = ()
        if CAUSES.intersection(rule.ids):
            effects = ("smoke-crashed", "smoke-timeout")
        if _DATA.intersection(rule.ids):
            effects = (*effects, "smoke-wrong-result")
        told.append(dataclasses.replace(rule, explains=(*rule.explains, *effects)))
    return tuple(told)
