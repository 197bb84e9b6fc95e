"""`envcheck emit compose`: the image and a service that gives it GPUs and shared memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.emit import describe, dockerfile
from envcheck.emit.render import render

if TYPE_CHECKING:
    from envcheck.emit.options import Options
    from envcheck.matrix.loader import Matrix
    from envcheck.model.plan import Lock

WHEEL_IN = ""
_PLATFORMS = {"linux_x86_64": "linux/amd64", "linux_aarch64": "linux/arm64"}


def files(lock: Lock, matrix: Matrix, options: Options) -> dict[str, str]:
    """`compose.yaml` and everything that the image is built from.

    Raises:
        LockError, UsageError: see `dockerfile.files`.
    """
    found = dockerfile.files(lock, matrix, options)
    text = render(
        "compose.yaml",
        frameworks=describe.frameworks(lock.stack),
        machine=describe.machine(lock),
        image=describe.slug(lock.stack),
        platform=_PLATFORMS[lock.stack.platform],
        gpu=describe.has_cuda(lock.stack),
        gpus=options.gpus,
        shm_size=options.shm_size,
        ipc=options.ipc,
    )
    return {"compose.yaml": text, **found}
