"""Writes files that reproduce a plan: pure, from a lock and the tables to text.

A target is a module with

    files(lock: Lock, matrix: Matrix, options: Options) -> dict[str, str]

which gives relative path -> content, the same for the same input, and raises `EnvcheckError` when
the lock or an option cannot be followed. It checks its input with `envcheck.emit.check.checked`
first: what it writes ends in shells that run as root. Where what it wrote needs envcheck's own
wheel beside it, the module says `WHEEL_IN = "folder"` ("" for the top), and the command puts it
there.

A new target is a line here, its page and arguments in `envcheck/arguments/emit.py`, and fields of
`Options` for the arguments that it alone has.
"""

from __future__ import annotations

TARGETS: dict[str, str] = {
    "dockerfile": "envcheck.emit.dockerfile",
    "compose": "envcheck.emit.compose",
    "devcontainer": "envcheck.emit.devcontainer",
    "requirements": "envcheck.emit.requirements",
    "conda": "envcheck.emit.conda",
    "ansible": "envcheck.emit.ansible",
    "kubernetes": "envcheck.emit.kubernetes",
    "slurm": "envcheck.emit.slurm",
}
"""Name on the command line -> module."""
