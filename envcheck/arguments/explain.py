"""What `envcheck explain` takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

DESCRIPTION = """\
Prints the page of a finding: what is checked, why it matters, and what puts it right."""

END = """\
examples:
  envcheck explain gpu-newer-than-build
  envcheck explain --list

exit status:
  0    printed
  2    no such id; the nearest one is suggested"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("id", nargs="?", metavar="ID", help="id of a finding, as reports show it")
    parser.add_argument("--list", action="store_true", help="list every id with its one-line title")
