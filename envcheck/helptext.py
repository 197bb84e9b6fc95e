"""Words of `--help`, and how they are set: the manual page of the command line."""

from __future__ import annotations

import argparse
import re
import textwrap
from typing import Any

from envcheck.arguments.base import ENVIRONMENT, EXIT

MAIN = """\
Tells whether this machine's GPU stack fits together - NVIDIA driver, CUDA, cuDNN, NCCL, PyTorch and
what is built on it - says why not, and exactly what to type.

It reads files and asks NVIDIA's libraries in child processes. It changes nothing, sends nothing and
needs no network, no GPU and no root."""

MAIN_END = f"""\
examples:
  envcheck doctor                        judge this machine and the active environment
  envcheck doctor --python ~/venv        judge another environment
  envcheck explain driver-too-old        what a finding means
  envcheck COMMAND --help                everything about one command

{EXIT}

{ENVIRONMENT}"""

COMMANDS = {
    "doctor": "judge a machine and say what to type",
    "smoke": "run a tiny training step on every GPU, stage by stage",
    "snapshot": "print or record the facts, without judging",
    "plan": "find the stack that a machine can run, and say how to get it",
    "emit": "write Dockerfiles and other files that reproduce a plan",
    "image": "build and check container images",
    "explain": "explain a finding",
    "tables": "list, show, check and refresh the compatibility tables",
    "watch": "see what the time of GPUs goes into, and what to do about it",
    "fleet": "ask many machines, and make one picture of them",
    "completion": "print a completion script for a shell",
}
"""Command -> its summary; `arguments/` and `commands/` have a module of the same name."""


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Keeps the layout of examples and lists, and fills paragraphs to the reader's screen."""

    def __init__(self, prog: str, **settings: Any) -> None:
        """Give flags a column that takes the longest command."""
        super().__init__(prog, max_help_position=28, **settings)

    def _format_args(self, action: argparse.Action, default_metavar: str) -> str:
        # `PATH ...` says it as well as `PATH [PATH ...]`.
        text = super()._format_args(action, default_metavar)
        return re.sub(r"^(\S+) \[\1 \.\.\.\]$", r"\1 ...", text)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        paragraphs = (_paragraph(each, width) for each in text.split("\n\n"))
        return textwrap.indent("\n\n".join(paragraphs), indent)


def _paragraph(text: str, width: int) -> str:
    # A paragraph with indented lines is a list; prose has none.
    if "\n " not in text:
        return textwrap.fill(text, width)
    return "\n".join(_item(line, width) for line in text.split("\n"))


def _item(line: str, width: int) -> str:
    """A line of a list; what does not fit continues below the last column, or indented."""
    if len(line) <= width:
        return line
    columns = [match.end() for match in re.finditer(r"(?:^|(?<=\S)) {2,}", line)]
    aligned = bool(columns) and 4 < columns[-1] < width - 20
    column = columns[-1] if aligned else 4
    body = line[column:] if aligned else " ".join(line.split())
    head = line[:column] if aligned else "  "
    lines = textwrap.wrap(body, width - column, break_long_words=False, break_on_hyphens=False)
    return ("\n" + " " * column).join([head + lines[0], *lines[1:]])
