"""The report as one line of JSON, for many reports in one stream."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from envcheck.report.foreign import clean_all
from envcheck.report.json_report import document

if TYPE_CHECKING:
    from envcheck.model.finding import Report
    from envcheck.report.view import View


def render(report: Report, view: View) -> str:
    """Render a report as a line; `name` says which text it is about, when there are several."""
    name = {"name": view.name} if view.name else {}
    data = clean_all({**name, **document(report, view.exit_code)})
    return json.dumps(data, allow_nan=False, separators=(",", ":")) + "\n"
