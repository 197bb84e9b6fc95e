"""What `envcheck doctor` takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.arguments.base import (
    ENVIRONMENT,
    EXIT,
    FORMATS,
    judging,
    machine,
    one_of,
    output,
    tables,
)

if TYPE_CHECKING:
    import argparse

DESCRIPTION = """\
Prints a table of the components, then the findings, the root cause first: what was found, what is
needed and by which source, and the commands that put it right on this distribution, with this
package manager and this GPU. What follows from a cause is named under it and not repeated. A check
that cannot tell says so. The last line sums up."""

END = f"""\
examples:
  envcheck doctor
  envcheck doctor --python ~/miniforge3/envs/train
  envcheck doctor --require-gpu --fail-on warning       in a job's prologue
  envcheck doctor --json | python3 -m json.tool
  envcheck doctor --format junit -o envcheck.xml        in CI
  envcheck doctor --machine recorded-node               a machine that somebody recorded
  envcheck doctor --report issue.txt --format markdown  the text of a bug report
  envcheck doctor --report reports/ --format jsonl      many of them, one line each
  envcheck doctor --image train:7                       an image, before it is run
  envcheck doctor --ignore driver-branch-ended,gpu-throttled

{EXIT}

{ENVIRONMENT}"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    machine(parser)
    parser.add_argument(
        "--report",
        nargs="+",
        action="extend",
        default=[],
        metavar="PATH",
        help="judge pasted texts instead: files, folders of them, '-' for standard input",
    )
    parser.add_argument(
        "--image",
        metavar="REF",
        help="judge a container image with this machine, by its files and without running it",
    )
    parser.add_argument(
        "--format",
        type=one_of((*FORMATS, "jsonl")),
        choices=(*FORMATS, "jsonl"),
        default=None,
        metavar="FORMAT",
        help="text (default), json, jsonl (one line a report), markdown, junit or sarif",
    )
    parser.add_argument("--json", action="store_true", help="the same as --format json")
    output(parser, "the report")
    judging(parser)
    parser.add_argument(
        "--require-gpu", action="store_true", help="a machine without a GPU is an error"
    )
    parser.add_argument(
        "--smoke",
        action="store_true",
        help="also run a tiny training step on every GPU, as 'envcheck smoke' does",
    )
    parser.add_argument(
        "--against",
        metavar="LOCK",
        help="also compare with a lock of 'envcheck plan'; drift makes the exit status 1",
    )
    tables(parser)
    parser.add_argument("--no-color", action="store_true", help="never colour the text")
    parser.add_argument(
        "-v",
        "--verbose",
        action="store_true",
        help="list also what could not be read and the tables that were used",
    )
