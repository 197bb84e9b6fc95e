"""Rules about frameworks and what is installed around them, in catalogue order, causes first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.rules.framework.extension_binary_missing import extension_binary_missing
from envcheck.rules.framework.extension_built_for_other import (
    extension_built_for_other_cuda,
    extension_built_for_other_torch,
)
from envcheck.rules.framework.framework_cpu_build import framework_cpu_build
from envcheck.rules.framework.framework_variant_conflict import (
    framework_variant_conflict,
)
from envcheck.rules.framework.glibc_too_old import glibc_too_old
from envcheck.rules.framework.gpu_and_build import (
    gpu_newer_than_build,
    gpu_older_than_build,
)
from envcheck.rules.framework.jax_plugin_mismatch import jax_plugin_mismatch
from envcheck.rules.framework.jetson_generic_wheel import jetson_generic_wheel
from envcheck.rules.framework.library_drops_gpu import library_drops_gpu
from envcheck.rules.framework.library_requires_other_framework import (
    library_requires_other_framework,
)
from envcheck.rules.framework.no_wheel_for_python import no_wheel_for_python
from envcheck.rules.framework.numpy_abi_mismatch import numpy_abi_mismatch
from envcheck.rules.framework.package_pair_mismatch import package_pair_mismatch
from envcheck.rules.framework.tensorflow_windows_no_gpu import tensorflow_windows_no_gpu
from envcheck.rules.framework.torch_companion_mismatch import torch_companion_mismatch

if TYPE_CHECKING:
    from envcheck.rules.base import Rule

FRAMEWORK_RULES: tuple[Rule, ...] = (
    jetson_generic_wheel,
    tensorflow_windows_no_gpu,
    framework_cpu_build,
    gpu_newer_than_build,
    gpu_older_than_build,
    library_drops_gpu,
    framework_variant_conflict,
    package_pair_mismatch,
    torch_companion_mismatch,
    extension_built_for_other_torch,
    extension_built_for_other_cuda,
    extension_binary_missing,
    library_requires_other_framework,
    numpy_abi_mismatch,
    no_wheel_for_python,
    glibc_too_old,
    jax_plugin_mismatch,
)
