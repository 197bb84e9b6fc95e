"""Rules about CUDA: what the driver runs, which libraries are there, which copy wins, what builds.

In catalogue order, causes first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.rules.cuda.cuda_libraries_missing import cuda_libraries_missing
from envcheck.rules.cuda.cuda_runtime_mismatch import cuda_runtime_mismatch
from envcheck.rules.cuda.driver_too_old import driver_too_old
from envcheck.rules.cuda.forward_compat_unsupported import forward_compat_unsupported
from envcheck.rules.cuda.host_compiler_unsupported import host_compiler_unsupported
from envcheck.rules.cuda.libcuda_not_linkable import libcuda_not_linkable
from envcheck.rules.cuda.library_path_shadows import (
    library_path_shadows_cuda,
    library_path_shadows_cudnn,
    library_path_shadows_nccl,
)
from envcheck.rules.cuda.mixed_cuda_majors import mixed_cuda_majors
from envcheck.rules.cuda.nvcc_cuda_major_mismatch import nvcc_cuda_major_mismatch
from envcheck.rules.cuda.ptx_newer_than_driver import ptx_newer_than_driver
from envcheck.rules.cuda.ptxas_too_old_for_gpu import ptxas_too_old_for_gpu

if TYPE_CHECKING:
    from envcheck.rules.base import Rule

CUDA_RULES: tuple[Rule, ...] = (
    forward_compat_unsupported,
    driver_too_old,
    ptx_newer_than_driver,
    mixed_cuda_majors,
    cuda_libraries_missing,
    cuda_runtime_mismatch,
    library_path_shadows_cuda,
    library_path_shadows_cudnn,
    library_path_shadows_nccl,
    nvcc_cuda_major_mismatch,
    host_compiler_unsupported,
    libcuda_not_linkable,
    ptxas_too_old_for_gpu,
)
