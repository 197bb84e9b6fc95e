"""Which machine a command reads: this one, or one that was recorded."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import Namespace

    from envcheck.probe.live import Live
    from envcheck.probe.source import Source

_OWN_PACKAGES = frozenset(
    {
        *("envcheck", "distro", "jinja2", "markupsafe", "markdown-it-py", "mdurl", "nvidia-ml-py"),
        *("packaging", "pygments", "rich", "shtab", "tomli", "pip", "setuptools", "wheel"),
    }
)
"""What an environment holds that was made for envcheck alone."""


def open_machine(args: Namespace) -> Source:
    """The source that `--machine` names, else this machine.

    Raises:
        RecordingError: the recording cannot be read.
    """
    if args.machine is not None:
        from envcheck.probe.record import Recorded

        return Recorded(args.machine)
    return this_machine()


def this_machine() -> Live:
    """The machine that envcheck runs on, as its user's programs see it."""
    from envcheck.probe.live import Live

    return Live(_user_variables())


def _user_variables() -> dict[str, str]:
    """This process's variables, without what starting envcheck has added to them.

    `uvx` and their like make an environment that holds nothing but envcheck and put it in front of
    PATH, where the environment is looked for that the user works in.
    """
    variables = dict(os.environ)
    own = str(Path(sys.prefix) / "bin")
    folders = variables.get("PATH", "").split(os.pathsep)
    if own in folders and _holds_nothing_else(Path(sys.prefix)):
        variables["PATH"] = os.pathsep.join(each for each in folders if each != own)
    return variables


def _holds_nothing_else(prefix: Path) -> bool:
    """Whether a virtual environment holds envcheck and what that needs, and no more."""
    if not (prefix / "pyvenv.cfg").is_file():
        return False
    names = {
        path.name.partition("-")[0].lower().replace("_", "-")
        for path in prefix.glob("lib/python3*/site-packages/*.dist-info")
    }
    return "envcheck" in names <= _OWN_PACKAGES
