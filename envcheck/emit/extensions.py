"""Which packages of a lock have no wheel and are compiled in the image."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.emit import describe
from envcheck.errors import UsageError
from envcheck.matrix.schema import Extension

if TYPE_CHECKING:
    from envcheck.emit.options import Options
    from envcheck.matrix.loader import Matrix
    from envcheck.model.plan import Lock, Pin


def to_compile(lock: Lock, matrix: Matrix, options: Options) -> tuple[Pin, ...]:
    """Pins to compile: those that were asked for, and those that come as source only.

    Raises:
        UsageError: one that was asked for is not in the lock, or there is no CUDA to compile for.
    """
    pins = {pin.name: pin for pin in lock.stack.pins}
    frameworks = {each.name for each in lock.stack.frameworks}
    for name in options.extensions:
        if name not in pins:
            msg = f"--build-extensions: {name} is not in the lock: plan with --want {name}==N.N"
            raise UsageError(msg)
        if name in frameworks:
            msg = f"--build-extensions: {name} is the framework that extensions are compiled for"
            raise UsageError(msg)
    sources = set(matrix.values(Extension, "name"))
    found = tuple(
        pin for pin in lock.stack.pins if pin.name in options.extensions or pin.name in sources
    )
    if found and not describe.has_cuda(lock.stack):
        names = ", ".join(pin.name for pin in found)
        msg = f"{names} is compiled for CUDA, and the stack of the lock is for the CPU"
        raise UsageError(msg)
    return found
