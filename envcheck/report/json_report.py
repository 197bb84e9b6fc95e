"""The report as JSON; `schema/report-1.schema.json` in this package describes it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from envcheck.model.codec import encode
from envcheck.model.finding import SCHEMA_VERSION
from envcheck.report.foreign import clean_all

if TYPE_CHECKING:
    from envcheck.model.finding import Report
    from envcheck.model.snapshot import Snapshot
    from envcheck.report.view import View


def render(report: Report, view: View) -> str:
    """Render a report as JSON in ASCII, so that it passes through any locale."""
    return dump(document(report, view.exit_code))


def document(report: Report, exit_code: int) -> dict[str, Any]:
    """The report as plain data, keys in the documented order."""
    data: dict[str, Any] = encode(report)
    smoke = data["snapshot"]["smoke"]
    return {
        "schema_version": SCHEMA_VERSION,
        "verdict": data["verdict"],
        "exit_code": exit_code,
        "findings": data["findings"],
        "ask": data["ask"],
        "unknown": data["unknown"],
        **({"drift": data["drift"]} if report.drift is not None else {}),
        "snapshot": data["snapshot"],
        "tables": dict(report.tables),
        "notes": data["notes"],
        **({"stages": smoke["stages"]} if smoke is not None else {}),
    }


def failure(message: str, exit_code: int) -> str:
    """What `--json` prints when a run ends before there is a report."""
    return dump(
        {
            "schema_version": SCHEMA_VERSION,
            "error": {"message": message, "exit_code": exit_code},
        }
    )


def facts(snapshot: Snapshot) -> str:
    """A snapshot as JSON: what `envcheck snapshot` prints."""
    return dump(encode(snapshot))


def dump(data: dict[str, Any]) -> str:
    """Plain data as indented ASCII JSON with a final newline, foreign text made harmless."""
    return json.dumps(clean_all(data), indent=2, allow_nan=False) + "\n"
