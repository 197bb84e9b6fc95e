"""`envcheck emit conda`: an `environment.yml` whose wheels pip installs.

conda makes the environment and pip fills it: the wheels are what was judged, and conda's own builds
of these frameworks are others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.emit import describe
from envcheck.emit.check import checked
from envcheck.emit.extensions import to_compile
from envcheck.emit.render import render
from envcheck.emit.requirements import EXTENSIONS, extensions_text
from envcheck.planner.commands import CONDA_CHANNEL, requirement

if TYPE_CHECKING:
    from envcheck.emit.options import Options
    from envcheck.matrix.loader import Matrix
    from envcheck.model.plan import Lock


def files(lock: Lock, matrix: Matrix, options: Options) -> dict[str, str]:
    """`environment.yml`, and a requirements file of what is compiled afterwards.

    Raises:
        LockError, UsageError: see `checked`.
    """
    checked(lock, options)
    stack = lock.stack
    compiled = to_compile(lock, matrix, options)
    wheels = [pin for pin in stack.pins if pin not in compiled]
    text = render(
        "environment.yml",
        name=describe.slug(stack),
        frameworks=describe.frameworks(stack),
        machine=describe.machine(lock),
        channel=CONDA_CHANNEL,
        python=stack.python,
        indexes=tuple(dict.fromkeys(pin.index for pin in wheels if pin.index)),
        requirements=tuple(map(requirement, wheels)),
        extensions=EXTENSIONS if compiled else None,
    )
    found = {"environment.yml": text}
    if compiled:
        found[EXTENSIONS] = extensions_text(compiled)
    return found
