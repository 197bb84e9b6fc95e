"""What `envcheck snapshot` takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.arguments.base import EXIT, machine, output

if TYPE_CHECKING:
    import argparse

DESCRIPTION = """\
Prints everything that envcheck reads, as JSON, without judging it. With --record, everything that
was read is also kept in a folder that 'envcheck doctor --machine DIR' judges anywhere; this is what
to attach to a bug report. Host, user, addresses, UUIDs and serial numbers are left out, the home
folder is written '~'."""

END = f"""\
examples:
  envcheck snapshot -o facts.json
  envcheck snapshot --record my-node && tar czf my-node.tgz my-node

{EXIT}"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    machine(parser)
    parser.add_argument(
        "--record", metavar="DIR", help="write a recording of this machine to a new folder"
    )
    output(parser, "the facts")
