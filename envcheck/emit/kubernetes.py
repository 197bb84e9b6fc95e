"""`envcheck emit kubernetes`: every node of a cluster judged, as a DaemonSet, and tried, as a Job.

The DaemonSet takes no GPU from anybody: the runtime shows it all of a node's, and a pod is ready
while its node is in order. The Job asks for GPUs as work does, and ends as the test does.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from envcheck.emit import describe
from envcheck.emit.check import IMAGE, checked, shown
from envcheck.emit.dockerfile import USER_ID
from envcheck.emit.render import render
from envcheck.errors import UsageError
from envcheck.planner.lock import lock_text

if TYPE_CHECKING:
    from envcheck.emit.options import Options
    from envcheck.matrix.loader import Matrix
    from envcheck.model.plan import Lock

CONFIGMAP, DAEMONSET, JOB = "configmap.yaml", "daemonset.yaml", "job.yaml"
_ARCHES = {"linux_x86_64": "amd64", "linux_aarch64": "arm64"}
_SECONDS = 900
"""Between two looks at a node."""


def files(lock: Lock, matrix: Matrix, options: Options) -> dict[str, str]:
    """`daemonset.yaml`, `job.yaml` and `configmap.yaml`, which holds the lock.

    Raises:
        LockError, UsageError: see `checked`; or no image is named, or the stack needs no GPU.
    """
    checked(lock, options)
    image = _image(options)
    if not describe.has_cuda(lock.stack):
        msg = "the stack of the lock is for the CPU: there are no GPUs to look after"
        raise UsageError(msg)
    values = {
        "about": f"{describe.frameworks(lock.stack)}, on {describe.machine(lock)}",
        "image": image,
        "arch": _ARCHES[lock.stack.platform],
        "user": USER_ID,
        "seconds": _SECONDS,
        "gpus": 1 if options.gpus == "all" else int(options.gpus),
        "nodes": options.nodes,
        "shm": _quantity(options.shm_size),
        "lock": lock_text(lock).rstrip("\n"),
    }
    return {name: render(f"kubernetes-{name}", **values) for name in (CONFIGMAP, DAEMONSET, JOB)}


def _image(options: Options) -> str:
    if options.image is None:
        msg = (
            "--image: name the image that 'envcheck emit dockerfile' describes, where nodes pull it"
        )
        raise UsageError(msg)
    found = IMAGE.fullmatch(options.image)
    if found is None:
        msg = (
            f"--image: {shown(options.image)} is not an image such as registry.example.org/train:1"
        )
        raise UsageError(msg)
    if found["digest"] is None and found["tag"] in (None, "latest"):
        msg = f"--image: {options.image} names whatever is newest: give a tag or a digest"
        raise UsageError(msg)
    if not 1 <= options.nodes <= 10_000:
        msg = f"--nodes: {options.nodes} is not a number between 1 and 10000"
        raise UsageError(msg)
    return options.image


def _quantity(size: str) -> str:
    return re.sub(r"g$", "Gi", re.sub(r"m$", "Mi", size))
