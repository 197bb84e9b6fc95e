"""`envcheck completion`: scripts that teach a shell envcheck's commands and flags."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.commands.output import emit

if TYPE_CHECKING:
    from argparse import Namespace


def run(args: Namespace) -> int:
    """Run the command.

    Args:
        args: the command line; `shell` is one that shtab writes scripts for, `parser` the parser
            of the whole command line.
    """
    import shtab

    emit(shtab.complete(args.parser, shell=args.shell) + "\n", None)
    return 0
