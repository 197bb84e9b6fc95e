"""The README's examples: its blocks of code, and the commands in its prose and tables."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

README = Path(__file__).resolve().parents[3] / "README.md"

_WORDS = r"(?:envcheck|python3?|pip|pipx|uv|uvx|docker|podman|ansible\S*|srun|eval|\.venv/\S+) "
_SPAN = re.compile(r"`([^`\n]+)`")
_COMMAND = re.compile(rf"{_WORDS}.+|\.ci/run$")
_NOT_COMMANDS = ("python 3.",)
"""Words of a target, which only look like a command."""


class Block(NamedTuple):
    """A block of code: fenced, or indented by four spaces."""

    line: int
    before: str
    """The paragraph above it."""
    text: str


class Step(NamedTuple):
    """A command of a block, and the lines that are shown below it."""

    command: str
    shown: tuple[str, ...]


def split(text: str) -> tuple[list[Block], str]:
    """The blocks of a page, and the page without them and without headings."""
    blocks: list[Block] = []
    prose: list[str] = []
    lines = text.splitlines()
    at = 0
    while at < len(lines):
        start = at
        if lines[at].startswith("```"):
            at += 1
            while lines[at] != "```":
                at += 1
            found = lines[start + 1 : at]
            at += 1
        elif lines[at].startswith("    ") and not lines[at - 1]:
            while at < len(lines) and lines[at].startswith("    "):
                at += 1
            found = [line[4:] for line in lines[start:at]]
        else:
            prose.append("" if lines[at].startswith("#") else lines[at])
            at += 1
            continue
        paragraph = "\n".join(prose).strip().rpartition("\n\n")[2]
        blocks.append(Block(start + 1, paragraph, "\n".join(found)))
    return blocks, "\n".join(prose)


def commands(prose: str) -> list[str]:
    """Commands that stand in code spans, each once."""
    found = (each for each in _SPAN.findall(prose) if _COMMAND.match(each))
    return [each for each in dict.fromkeys(found) if not each.startswith(_NOT_COMMANDS)]


def steps(block: str) -> list[Step]:
    """The commands of a block, without the comments behind them.

    Lines after `$` are commands and the others what they print; a block without any `$` is commands
    only.
    """
    if not re.search(r"^\$ ", block, re.MULTILINE):
        return [Step(_bare(line), ()) for line in block.splitlines()]
    found = re.findall(r"^\$ (.+)\n?((?:(?!\$ ).*\n?)*)", block, re.MULTILINE)
    return [Step(_bare(command), tuple(shown.splitlines())) for command, shown in found]


def _bare(command: str) -> str:
    return re.sub(r"\s{2,}# .*$", "", command)


def same(shown: tuple[str, ...], printed: str) -> str:
    """How a capture differs from what was printed; empty when it does not.

    Days are any day, since tables are read again, also one of two. A line `...` stands for any
    lines.
    """
    pieces = [
        [_any_day(line) for line in piece.splitlines()]
        for piece in ("\n" + "\n".join(shown) + "\n").split("\n...\n")
    ]
    lines = [_any_day(line) for line in printed.splitlines()]
    at = 0
    for number, piece in enumerate(pieces):
        wanted = piece[1:] if number == 0 else piece
        if number == 0:
            starts = [0]
        elif number == len(pieces) - 1:
            starts = [len(lines) - len(wanted)]
        else:
            starts = list(range(at, len(lines) - len(wanted) + 1))
        found = next((s for s in starts if s >= at and lines[s : s + len(wanted)] == wanted), None)
        if found is None:
            return "\n".join(("shown:", *wanted, "printed:", *lines[at:]))
        at = found + len(wanted)
    if len(pieces) == 1 and at != len(lines):
        return "\n".join(("printed and not shown:", *lines[at:]))
    return ""


def _any_day(line: str) -> str:
    return re.sub(r"\d{4}-\d\d-\d\d( to \d{4}-\d\d-\d\d)?", "DAY", line.rstrip())
