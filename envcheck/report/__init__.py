"""Reports as text: one pure function per format, `render(report, view) -> str`."""

from __future__ import annotations

import importlib
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from envcheck.model.finding import Report
    from envcheck.report.view import View

FORMATS: Mapping[str, str] = MappingProxyType(
    {
        "text": "envcheck.report.plain",
        "json": "envcheck.report.json_report",
        "jsonl": "envcheck.report.jsonl",
        "markdown": "envcheck.report.markdown",
        "junit": "envcheck.report.junit",
        "sarif": "envcheck.report.sarif",
    }
)
"""Format name -> module that renders it; a module is imported when its format is asked for."""

TERMINAL = "envcheck.report.terminal"
"""The coloured form of `text`: same words, drawn by rich."""


def render(format: str, report: Report, view: View, *, colour: bool = False) -> str:
    """Render a report.

    Args:
        format: a key of `FORMATS`.
        report: the judgement.
        view: how the run ended and how wide the reader's screen is.
        colour: draw `text` for a terminal that shows colour.

    Returns:
        The whole output, ending in a newline.
    """
    name = TERMINAL if colour and format == "text" else FORMATS[format]
    try:
        module = importlib.import_module(name)
    except ImportError:
        if name != TERMINAL:
            raise
        # A damaged or absent rich must not keep a diagnosis from being read.
        module = importlib.import_module(FORMATS[format])
    text: str = module.render(report, view)
    return text
