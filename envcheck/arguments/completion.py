"""What `envcheck completion` takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.arguments.base import one_of

if TYPE_CHECKING:
    import argparse

SHELLS = ("bash", "zsh", "tcsh")

DESCRIPTION = """\
Prints a script that teaches a shell the commands and flags of envcheck."""

END = """\
examples:
  eval "$(envcheck completion bash)"
  envcheck completion zsh > "${fpath[1]}/_envcheck"
  envcheck completion tcsh > ~/.envcheck.tcsh"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "shell", type=one_of(SHELLS), choices=SHELLS, metavar="SHELL", help="bash, zsh or tcsh"
    )
