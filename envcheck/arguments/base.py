"""Arguments that several commands share, and the checks of their values."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, NamedTuple

from envcheck.spelling import suggestion

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

FORMATS = ("text", "json", "markdown", "junit", "sarif")

EXIT = """\
exit status:
  0    no finding at or above --fail-on
  1    at least one such finding
  2    the command line cannot be followed
  3    nothing could be determined: neither driver nor environment could be read
  4    a table, a report or a recording is damaged
  5    no plan meets the request
  130  interrupted"""

ENVIRONMENT = """\
environment:
  NO_COLOR                 not empty: never colour
  FORCE_COLOR              not empty: colour even when standard output is no terminal
  COLUMNS                  width of the text
  VIRTUAL_ENV, CONDA_PREFIX, PATH
                           which Python environment is judged, in this order
  ENVCHECK_DRIVER_VERSION  take this as the driver's version instead of reading it
  LD_LIBRARY_PATH, CUDA_HOME, CUDA_VISIBLE_DEVICES, NVIDIA_*, NCCL_*
                           are judged, as programs on this machine would see them"""


class Page(NamedTuple):
    """A page of help: what the lists show, what it says, and what stands after the flags."""

    summary: str
    description: str
    end: str


def machine(parser: argparse.ArgumentParser) -> None:
    """Add what says which machine and environment are read."""
    parser.add_argument(
        "--python",
        metavar="PATH",
        help="interpreter, or folder of an environment, to judge"
        " (default: the active environment, else python3 on PATH, else envcheck's own)",
    )
    parser.add_argument(
        "--machine", metavar="DIR", help="read a recorded machine instead of this one"
    )
    parser.add_argument(
        "--deep",
        action="store_true",
        help="also import the frameworks, each in a child, and ask tools for their versions",
    )
    parser.add_argument(
        "--timeout",
        type=seconds,
        default=10.0,
        metavar="S",
        help="seconds that each child process gets (default: 10)",
    )


def output(parser: argparse.ArgumentParser, what: str) -> None:
    """Add `-o`; `what` names what is written."""
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help=f"write {what} to a file, as a whole or not at all ('-': standard output)",
    )


def one_of(names: Sequence[str]) -> Callable[[str], str]:
    """A type of arguments that takes these names only, and knows what a misspelt one meant."""

    def check(text: str) -> str:
        if text in names:
            return text
        hint = suggestion(text, names) or f"choose from {', '.join(names)}"
        msg = f"'{text}' is not known: {hint}"
        raise argparse.ArgumentTypeError(msg)

    return check


def seconds(text: str) -> float:
    """A type of arguments: a time in seconds, at most a day."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    # Compared from both sides, so that NaN and infinity fall out too.
    if not 0.0 < value <= 86400.0:
        msg = f"'{text}' is not a number of seconds between 0 and 86400"
        raise argparse.ArgumentTypeError(msg)
    return value


def tables(parser: argparse.ArgumentParser) -> None:
    """Add `--tables`."""
    parser.add_argument("--tables", metavar="DIR", help="lay your own tables over the shipped ones")


def judging(parser: argparse.ArgumentParser) -> None:
    """Add what chooses findings, and says which of them fail."""
    for flag, text in (
        ("--select", "give only these findings; repeatable"),
        ("--ignore", "give every finding but these; repeatable"),
    ):
        parser.add_argument(flag, action="append", default=[], metavar="ID,...", help=text)
    parser.add_argument(
        "--fail-on",
        type=one_of(("warning", "error", "never")),
        choices=("warning", "error", "never"),
        default="error",
        metavar="LEVEL",
        help="mildest severity that makes the exit status 1: warning, error (default) or never",
    )
