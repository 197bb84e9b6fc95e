"""`envcheck emit requirements`: what pip installs to get a stack."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.emit import describe
from envcheck.emit.check import checked
from envcheck.emit.extensions import to_compile
from envcheck.planner.commands import requirement

if TYPE_CHECKING:
    from collections.abc import Iterable

    from envcheck.emit.options import Options
    from envcheck.matrix.loader import Matrix
    from envcheck.model.plan import Lock, Pin

REQUIREMENTS = "requirements.txt"
EXTENSIONS = "requirements-extensions.txt"


def files(lock: Lock, matrix: Matrix, options: Options) -> dict[str, str]:
    """`requirements.txt`, and a second file where something has to be compiled against the first.

    Raises:
        LockError, UsageError: see `checked`.
    """
    checked(lock, options)
    compiled = to_compile(lock, matrix, options)
    wheels = [pin for pin in lock.stack.pins if pin not in compiled]
    found = {REQUIREMENTS: text(lock, wheels)}
    if compiled:
        found[EXTENSIONS] = extensions_text(compiled)
    return found


def text(lock: Lock, pins: Iterable[Pin]) -> str:
    """A requirements file.

    The local tag of a version (`+cu128`) names one build, so that it does not matter which of the
    indexes is asked first.
    """
    pins = tuple(pins)
    indexes = dict.fromkeys(pin.index for pin in pins if pin.index)
    lines = [
        f"# {describe.frameworks(lock.stack)} for Python {lock.stack.python} on"
        f" {lock.stack.platform}.",
        "# Made by envcheck from envcheck.lock: pip install -r requirements.txt",
        *(f"--extra-index-url {index}" for index in indexes),
        *map(requirement, pins),
    ]
    return "\n".join(lines) + "\n"


def extensions_text(pins: Iterable[Pin]) -> str:
    """A requirements file of what is compiled against what is installed already."""
    pins = tuple(pins)
    lines = [
        "# Compiled with nvcc against the torch of requirements.txt, after that is installed:",
        "# pip install --no-cache-dir --no-build-isolation -r requirements-extensions.txt",
        f"--no-binary {','.join(pin.name for pin in pins)}",
        *map(requirement, pins),
    ]
    return "\n".join(lines) + "\n"
