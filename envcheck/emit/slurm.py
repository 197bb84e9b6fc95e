"""`envcheck emit slurm`: the health check and the prologue of nodes, as slurmd runs them.

slurmd takes a health check that ends well for done and leaves the node to it, so that the check
itself drains and resumes; a prologue that fails drains its node and puts the job back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.emit import describe
from envcheck.emit.check import checked
from envcheck.emit.render import render
from envcheck.errors import UsageError
from envcheck.planner.lock import lock_text

if TYPE_CHECKING:
    from envcheck.emit.options import Options
    from envcheck.matrix.loader import Matrix
    from envcheck.model.plan import Lock

HEALTH, PROLOG, LOCK, README = (
    "envcheck-health.sh",
    "envcheck-prolog.sh",
    "envcheck.lock",
    "README.md",
)


def files(lock: Lock, matrix: Matrix, options: Options) -> dict[str, str]:
    """Both scripts, the lock that they compare with, and how they are put in place.

    Raises:
        LockError, UsageError: see `checked`; or the stack needs no GPU.
    """
    checked(lock, options)
    if not describe.has_cuda(lock.stack):
        msg = "the stack of the lock is for the CPU: there are no GPUs to look after"
        raise UsageError(msg)
    about = f"{describe.frameworks(lock.stack)}, on {describe.machine(lock)}"
    return {
        HEALTH: render("slurm-health.sh", about=about),
        PROLOG: render("slurm-prolog.sh", about=about),
        LOCK: lock_text(lock),
        README: render("slurm-readme.md", about=about),
    }
