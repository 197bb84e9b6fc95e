"""The text report without colour: for pipes, files, `NO_COLOR` and plain terminals."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from envcheck.report.describe import Blank, Command, Entry, Heading, Table, blocks

if TYPE_CHECKING:
    from envcheck.model.finding import Report
    from envcheck.report.describe import Block
    from envcheck.report.view import View

LABEL_WIDTH = 10
"""Columns of `evidence` and two spaces."""
COMMAND_INDENT = 6


def render(report: Report, view: View) -> str:
    """Render a report as plain text."""
    lines = [line for block in blocks(report, view) for line in layout(block, view.width)]
    return "\n".join(lines) + "\n"


def layout(block: Block, width: int) -> list[str]:
    """Lines of one block."""
    match block:
        case Blank():
            return [""]
        case Command(text=text):
            return [" " * COMMAND_INDENT + text]
        case Heading(word=word, text=text, whole=True):
            return [f"{word} {text}"]
        case Heading(word=word, text=text):
            return wrap(f"{word} {text}".rstrip(), width, hanging=2)
        case Entry(label="", text=text):
            return wrap(text, width, first=2, hanging=4)
        case Entry(label=label, text=text):
            return labelled(f"  {label}", text, 2 + LABEL_WIDTH, width)
        case Table(rows=rows):
            column = max(len(row.name) for row in rows) + 2
            return [line for row in rows for line in labelled(row.name, row.text, column, width)]


def labelled(label: str, text: str, column: int, width: int) -> list[str]:
    """A label and a paragraph that starts at a column; on a narrow screen, beneath the label."""
    if width - column < 24:
        below = wrap(text, width, first=4, hanging=4)
        return [label, *below] if label.strip() else below
    first, *rest = wrap(text, width - column) or [""]
    return [f"{label:<{column}}{first}", *(" " * column + line for line in rest)]


def wrap(text: str, width: int, *, first: int = 0, hanging: int = 0) -> list[str]:
    """Break prose at spaces; a path, a version or an address is never broken."""
    return textwrap.wrap(
        text,
        max(width, 20),
        initial_indent=" " * first,
        subsequent_indent=" " * hanging,
        break_long_words=False,
        break_on_hyphens=False,
    )
