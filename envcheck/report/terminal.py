"""The text report in colour: the words of the plain one, drawn by rich.

Every text is handed over as `Text`, never as markup, so that a GPU called `[bold]` stays one.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from rich.box import ROUNDED
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from envcheck.report.describe import Command, Entry, Heading, Table, blocks
from envcheck.report.plain import LABEL_WIDTH, layout

if TYPE_CHECKING:
    from envcheck.model.finding import Report
    from envcheck.report.components import Row
    from envcheck.report.describe import Block
    from envcheck.report.view import View

_TONES = {
    "error": "bold red",
    "warning": "bold yellow",
    "info": "bold cyan",
    "unknown": "bold magenta",
    "ok": "bold green",
    "plain": "bold",
}
_STATES = {"found": "", "absent": "dim", "unknown": "magenta"}
_NARROW = 60
"""Columns below which a frame costs more than it gives."""


def render(report: Report, view: View) -> str:
    """Render a report with terminal colours."""
    out = io.StringIO()
    console = Console(
        file=out,
        force_terminal=True,
        width=view.width,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )
    for block in blocks(report, view):
        if isinstance(block, Table) and view.width >= _NARROW:
            console.print(_frame(block.rows))
        else:
            for line in _styled(block, view.width):
                # Lines are wrapped already; a command or an address longer than the screen is left
                # to the terminal, so that it can be copied whole.
                console.print(line, soft_wrap=True)
    return out.getvalue()


def _frame(rows: tuple[Row, ...]) -> Grid:
    grid = Grid(box=ROUNDED, show_header=False, border_style="dim")
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for row in rows:
        grid.add_row(Text(row.name), Text(row.text, style=_STATES[row.state]))
    return grid


def _styled(block: Block, width: int) -> list[Text]:
    lines = [Text(line) for line in layout(block, width)]
    match block:
        case Heading(word=word, tone=tone):
            lines[0].stylize(_TONES[tone], 0, len(word))
            for line in lines:
                line.stylize("bold")
        case Command():
            lines[0].stylize("green")
        case Entry(label=label) if label:
            lines[0].stylize("dim", 0, 2 + LABEL_WIDTH)
    return lines
