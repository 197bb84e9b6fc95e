"""The report as SARIF 2.1.0, for code scanning services.

A finding of envcheck is about a machine, not about a line of a file; viewers want a place all the
same, so every result points at the view's artifact and names its subject as a logical location.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from envcheck.report.describe import drift_line, evidence_line, unknown_line
from envcheck.report.foreign import clean_all

if TYPE_CHECKING:
    from envcheck.model.finding import Drift, Finding, Report, Unknown
    from envcheck.report.view import Check, View

_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_DRIFT = "lock-drift"
"""Rule of results that compare with a lock; no finding has this id."""
_LEVELS = {"error": "error", "warning": "warning", "info": "note"}


def render(report: Report, view: View) -> str:
    """Render a report as SARIF."""
    rules = _rules(report, view)
    index = {rule["id"]: at for at, rule in enumerate(rules)}
    run = {
        "tool": {"driver": {"name": "envcheck", "semanticVersion": view.version, "rules": rules}},
        "invocations": [
            {
                # It ran to its end; what it found is in the results.
                "executionSuccessful": True,
                "exitCode": view.exit_code,
                "toolExecutionNotifications": [_notification(each) for each in report.unknown],
            }
        ],
        "results": [
            *(_result(each, index[each.id], view) for each in report.findings),
            *(_drifted(each, index[_DRIFT], view) for each in report.drift or ()),
        ],
        "properties": {
            "verdict": report.verdict,
            "tables": dict(report.tables),
            "notes": list(report.notes),
        },
    }
    document = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(clean_all(document), indent=2) + "\n"


def _rules(report: Report, view: View) -> list[dict[str, Any]]:
    rules = {check.id: _rule(check) for check in view.checks}
    for each in report.findings:
        rules.setdefault(each.id, {"id": each.id, "shortDescription": {"text": each.title}})
    if report.drift is not None:
        rules[_DRIFT] = {"id": _DRIFT, "shortDescription": {"text": "As the lock says."}}
    return list(rules.values())


def _rule(check: Check) -> dict[str, Any]:
    return {
        "id": check.id,
        "shortDescription": {"text": check.title or check.id},
        "help": {"text": check.page or check.title or check.id},
        "properties": {"tags": [check.component]},
    }


def _result(finding: Finding, rule_index: int, view: View) -> dict[str, Any]:
    # The same cause on the same thing keeps its fingerprint from run to run.
    key = hashlib.sha256(f"{finding.id}\0{finding.subject}".encode("utf-8", "replace")).hexdigest()
    return {
        "ruleId": finding.id,
        "ruleIndex": rule_index,
        "level": _LEVELS[finding.severity],
        "message": {"text": _message(finding)},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": view.artifact},
                    "region": {"startLine": 1},
                },
                "logicalLocations": [
                    {
                        "name": finding.subject,
                        "fullyQualifiedName": f"{finding.component}/{finding.subject}",
                    }
                ],
            }
        ],
        "partialFingerprints": {"finding/v1": key},
        "properties": {
            "component": finding.component,
            "found": finding.found,
            "needed": finding.needed,
            "evidence": [evidence_line(each) for each in finding.evidence],
            "fix": [{"title": fix.title, "commands": list(fix.commands)} for fix in finding.fix],
            "sources": [
                {"title": each.title, "url": each.url, "retrieved": each.retrieved}
                for each in finding.sources
            ],
            "consequences": list(finding.consequences),
        },
    }


def _drifted(drift: Drift, rule_index: int, view: View) -> dict[str, Any]:
    key = hashlib.sha256(f"{_DRIFT}\0{drift.field}".encode("utf-8", "replace")).hexdigest()
    return {
        "ruleId": _DRIFT,
        "ruleIndex": rule_index,
        "level": "error",
        "message": {"text": drift_line(drift)},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": view.artifact},
                    "region": {"startLine": 1},
                },
                "logicalLocations": [
                    {"name": drift.field, "fullyQualifiedName": f"lock/{drift.field}"}
                ],
            }
        ],
        "partialFingerprints": {"finding/v1": key},
        "properties": {"field": drift.field, "locked": drift.locked, "found": drift.found},
    }


def _message(finding: Finding) -> str:
    lines = [
        finding.title,
        f"Found: {finding.found}",
        f"Needed: {finding.needed}",
        f"Why: {finding.why}",
    ]
    for fix in finding.fix:
        lines.append(f"Fix: {fix.title}")
        lines += [f"    {command}" for command in fix.commands]
    return "\n".join(lines)


def _notification(unknown: Unknown) -> dict[str, Any]:
    return {
        "level": "error" if unknown.kind == "crashed" else "note",
        "message": {"text": unknown_line(unknown)},
        "properties": {"check": unknown.check, "kind": unknown.kind},
    }
