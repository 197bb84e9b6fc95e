"""The questions that rules ask of the tables: pure functions.

`None` or an empty tuple means that the tables do not know. Versions may come with more parts than a
table has, or with a local part (`2.8.0+cu128`); text that holds no version is answered like one
that no table knows.
"""

from __future__ import annotations

from envcheck.matrix.query.cuda import (
    branch,
    branch_ended,
    branch_of,
    capability,
    driver_cuda,
    forward_compat,
    host_compiler,
    minor_floor,
    nvswitch,
    oldest_branch_for_cuda,
    own_driver,
    pci_gpu,
    product,
    ptxas,
    supported_branches,
)
from envcheck.matrix.query.machine import (
    cuda_images,
    cuda_newer_than_table,
    distro,
    distro_package,
    distro_package_row,
    driver_newer_than_table,
    torch_newer_than_table,
    xid,
)
from envcheck.matrix.query.software import (
    companion,
    cudnn_release,
    cudnn_support,
    jax_plugin,
    jax_release,
    known_bad,
    nccl_release,
    nccl_targets,
    newest_torch,
    requirements,
    requirements_near,
    tensorflow_release,
    torch_build,
    torch_builds,
)

__all__ = [
    "branch",
    "branch_ended",
    "branch_of",
    "capability",
    "companion",
    "cuda_images",
    "cuda_newer_than_table",
    "cudnn_release",
    "cudnn_support",
    "distro",
    "distro_package",
    "distro_package_row",
    "driver_cuda",
    "driver_newer_than_table",
    "forward_compat",
    "host_compiler",
    "jax_plugin",
    "jax_release",
    "known_bad",
    "minor_floor",
    "nccl_release",
    "nccl_targets",
    "newest_torch",
    "nvswitch",
    "oldest_branch_for_cuda",
    "own_driver",
    "pci_gpu",
    "product",
    "ptxas",
    "requirements",
    "requirements_near",
    "supported_branches",
    "tensorflow_release",
    "torch_build",
    "torch_builds",
    "torch_newer_than_table",
    "xid",
]
