"""`envcheck emit devcontainer`: the image as a place to write programs in."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from envcheck.emit import describe, dockerfile

if TYPE_CHECKING:
    from envcheck.emit.options import Options
    from envcheck.matrix.loader import Matrix
    from envcheck.model.plan import Lock

FOLDER = ".devcontainer"
WHEEL_IN = FOLDER


def files(lock: Lock, matrix: Matrix, options: Options) -> dict[str, str]:
    """`.devcontainer/devcontainer.json` and everything that the image is built from.

    Raises:
        LockError, UsageError: see `dockerfile.files`.
    """
    found = dockerfile.files(lock, matrix, options)
    arguments = [f"--gpus={options.gpus}"] if describe.has_cuda(lock.stack) else []
    # The engine ignores the size where the container uses the host's shared memory.
    size = [f"--shm-size={options.shm_size}"] if options.ipc != "host" else []
    container = {
        "name": describe.slug(lock.stack),
        "build": {"dockerfile": "Dockerfile", "context": "."},
        "runArgs": [*arguments, *size, f"--ipc={options.ipc}"],
        "remoteUser": dockerfile.USER,
        "customizations": {
            "vscode": {
                "extensions": ["ms-python.python"],
                "settings": {"python.defaultInterpreterPath": f"{dockerfile.VENV}/bin/python"},
            }
        },
    }
    text = json.dumps(container, indent=2) + "\n"
    return {
        f"{FOLDER}/devcontainer.json": text,
        **{f"{FOLDER}/{path}": content for path, content in found.items()},
    }
