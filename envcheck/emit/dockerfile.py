"""`envcheck emit dockerfile`: an image for a plan, and everything that it is built from.

What the lock pins stands in files that pip reads; of the lock, RUN lines hold the number of a
Python and nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import envcheck
from envcheck.emit import describe, images, inside
from envcheck.emit.check import checked
from envcheck.emit.extensions import to_compile
from envcheck.emit.render import render
from envcheck.emit.requirements import (
    EXTENSIONS,
    REQUIREMENTS,
    extensions_text,
    text,
)
from envcheck.errors import UsageError
from envcheck.matrix.schema import ImageTool
from envcheck.planner.lock import lock_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from envcheck.emit.images import Image
    from envcheck.emit.options import Options
    from envcheck.matrix.loader import Matrix
    from envcheck.model.plan import Lock, Pin

WHEEL_IN = ""
WHEEL = f"envcheck-{envcheck.__version__}-py3-none-any.whl"
LOCK = "envcheck.lock"
BUILD = "requirements-build.txt"
TOOLS = "requirements-tools.txt"

USER = "app"
USER_ID = 10001
"""Above what distributions give to people: Ubuntu's images have a user of number 1000."""
VENV = "/opt/venv"
OLDEST_PYTHON = (3, 10)
"""Of envcheck itself, which is in the image and runs on the plan's Python."""


def files(lock: Lock, matrix: Matrix, options: Options) -> dict[str, str]:
    """A Dockerfile and its context, but for envcheck's own wheel.

    Raises:
        LockError: the lock holds what a lock may not hold.
        UsageError: no image of the tables fits, or options contradict the lock.
    """
    checked(lock, options)
    stack = lock.stack
    if tuple(map(int, stack.python.split("."))) < OLDEST_PYTHON:
        oldest = ".".join(map(str, OLDEST_PYTHON))
        msg = f"the lock is for Python {stack.python}, and envcheck in the image needs {oldest}"
        raise UsageError(msg)
    compiled = to_compile(lock, matrix, options)
    base, toolkit = _images(lock, matrix, options, compiled)
    pins = inside.to_install(lock, base, compiled)
    tools = inside.tools(lock, matrix, options, base)
    context = {
        **({REQUIREMENTS: text(lock, pins)} if pins or compiled else {}),
        LOCK: lock_text(lock),
        **({TOOLS: _pip_tools(tools.pip, "envcheck's environment")} if tools.pip else {}),
        **({EXTENSIONS: extensions_text(compiled)} if compiled else {}),
        **({BUILD: _pip_tools(_builders(matrix), "compiling extensions")} if compiled else {}),
    }
    values = {
        **_head(lock, options, base),
        **_stages(base, toolkit, options),
        "install": bool(pins),
        "compiled": bool(compiled),
        "tools": tools,
        "names": {
            "requirements": REQUIREMENTS,
            "extensions": EXTENSIONS,
            "build": BUILD,
            "tools": TOOLS,
            "lock": LOCK,
            "wheel": WHEEL,
        },
        "compat": inside.compat_to_remove(lock, matrix, base),
        "ignore_require": inside.refused_by_require(lock, matrix, base),
        "labels": _labels(lock, base, options),
        "arches": ";".join(lock.target.arches) if describe.has_torch(stack) else "",
        "health": _health(lock),
    }
    kept = [f"!{name}" for name in (*sorted(context), WHEEL)]
    return {
        "Dockerfile": render(f"{options.profile}.Dockerfile", v=values),
        ".dockerignore": "\n".join(["# What the build needs, and nothing else.", "*", *kept])
        + "\n",
        **context,
    }


def _images(
    lock: Lock, matrix: Matrix, options: Options, compiled: Sequence[Pin]
) -> tuple[Image, Image | None]:
    """The image to start from, and the one to compile extensions in."""
    given = images.named(options.base, lock, matrix) if options.base is not None else None
    if options.profile == "ngc":
        base = given or images.of_maker(lock, matrix)
        return base, (base if compiled else None)
    if options.profile == "devel":
        base = given or images.toolkit(lock, matrix)
        return base, (base if compiled else None)
    if not compiled:
        return given or images.system(lock, matrix), None
    toolkit = images.toolkit(lock, matrix)
    # What is compiled on a system runs on that system: on an older C library it may not.
    row = images.ubuntu(lock, matrix)
    return given or images.named(f"{row.image}:{row.tag}", lock, matrix), toolkit


def _head(lock: Lock, options: Options, base: Image) -> dict[str, Any]:
    stack = lock.stack
    gpu = describe.has_cuda(stack)
    shared = "--ipc host" if options.ipc == "host" else f"--shm-size {options.shm_size}"
    flags = f"--gpus {options.gpus} {shared}" if gpu else shared
    return {
        "frameworks": describe.frameworks(stack),
        "version": envcheck.__version__,
        "machine": describe.machine(lock),
        "gpu": gpu,
        "brings": base.brings,
        "image": describe.slug(stack),
        "flags": flags,
        "venv": VENV,
        "user": USER,
        "user_id": USER_ID,
    }


def _stages(base: Image, toolkit: Image | None, options: Options) -> dict[str, Any]:
    """Images and the packages that each stage takes from its system's archive."""
    devel = options.profile == "devel"
    own = inside.python_packages(base, headers=devel)
    return {
        "base": base,
        "toolkit": toolkit,
        "base_packages": own if devel else inside.python_packages(base),
        "build_packages": () if devel or not base.apt_python else inside.venv_packages(base),
        "toolkit_packages": inside.python_packages(toolkit, headers=True) if toolkit else (),
    }


def _labels(lock: Lock, base: Image, options: Options) -> tuple[tuple[str, str], ...]:
    more = [
        ("org.opencontainers.image.base.name", base.named),
        ("io.envcheck.version", envcheck.__version__),
        ("io.envcheck.profile", options.profile),
    ]
    if base.digest:
        more.append(("org.opencontainers.image.base.digest", base.digest))
    if base.brings:
        more.append(("io.envcheck.image.brings", base.brings))
    return tuple(sorted([*describe.labels(lock), *more]))


def _health(lock: Lock) -> tuple[str, ...]:
    """A command that ends well while the container can do what it is for."""
    if describe.has_cuda(lock.stack):
        return ("envcheck", "doctor")
    # A CPU image may run beside GPUs that it was not given, which the doctor would point out.
    names = ", ".join(each.name for each in lock.stack.frameworks)
    return ("python", "-c", f"import {names}")


def _builders(matrix: Matrix) -> tuple[ImageTool, ...]:
    return matrix.find(ImageTool, purpose="build")


def _pip_tools(rows: Sequence[ImageTool], what: str) -> str:
    lines = [f"# For {what}.", *(f"{row.package}=={row.version}" for row in rows)]
    return "\n".join(lines) + "\n"
