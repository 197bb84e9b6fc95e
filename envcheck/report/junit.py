"""The report as JUnit XML: one test case per check, failed when its finding fails the run."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

from envcheck.report.describe import drift_line, evidence_line, source_line, unknown_line
from envcheck.report.foreign import clean, one_line

if TYPE_CHECKING:
    from envcheck.model.finding import Finding, Report, Unknown
    from envcheck.report.view import View

_FAILING = {"warning": ("error", "warning"), "error": ("error",), "never": ()}


def render(report: Report, view: View) -> str:
    """Render a report as JUnit XML, in ASCII with character references."""
    failing = _FAILING[view.fail_on]
    cases = [_finding(each, each.severity in failing) for each in report.findings]
    cases += [_unknown(each, view) for each in report.unknown]
    cases += _drift(report, view)
    spoken = {each.id for each in report.findings} | {each.check for each in report.unknown}
    spoken |= {effect for each in report.findings for effect in each.consequences}
    cases += [
        _case(check.component, check.id)
        for check in view.checks
        if check.id not in spoken and check.rule not in {each.check for each in report.unknown}
    ]
    if not cases:
        cases = [_case("envcheck", report.verdict)]
    counts = {
        "tests": str(len(cases)),
        "failures": str(sum(case.find("failure") is not None for case in cases)),
        "errors": str(sum(case.find("error") is not None for case in cases)),
        "skipped": str(sum(case.find("skipped") is not None for case in cases)),
    }
    suites = ET.Element("testsuites", {"name": "envcheck", **counts})
    suite = ET.SubElement(suites, "testsuite", {"name": "envcheck doctor", **counts})
    if report.snapshot.taken_at:
        suite.set("timestamp", clean(report.snapshot.taken_at))
    properties = ET.SubElement(suite, "properties")
    facts = {
        "envcheck": view.version,
        "verdict": report.verdict,
        "exit_code": str(view.exit_code),
        **{f"table {name}": date for name, date in report.tables},
        **{f"note {at}": note for at, note in enumerate(report.notes, 1)},
    }
    for name, value in facts.items():
        ET.SubElement(properties, "property", {"name": clean(name), "value": clean(value)})
    suite.extend(cases)
    ET.indent(suites)
    xml: bytes = ET.tostring(suites, encoding="us-ascii", xml_declaration=True)
    return xml.decode("ascii") + "\n"


def _case(component: str, name: str) -> ET.Element:
    return ET.Element(
        "testcase", {"classname": f"envcheck.{clean(component)}", "name": clean(name), "time": "0"}
    )


def _finding(finding: Finding, failed: bool) -> ET.Element:
    case = _case(finding.component, f"{finding.id} [{one_line(finding.subject)}]")
    text = _text(finding)
    if failed:
        failure = ET.SubElement(
            case, "failure", {"type": finding.severity, "message": one_line(finding.title)}
        )
        failure.text = text
    else:
        ET.SubElement(case, "system-out").text = f"{finding.severity}: {text}"
    return case


def _drift(report: Report, view: View) -> list[ET.Element]:
    """A case for each field that differs from the lock, or one that says that none does."""
    if report.drift is None:
        return []
    cases = []
    for each in report.drift:
        case = _case("lock", each.field)
        tag = "system-out" if view.fail_on == "never" else "failure"
        said = ET.SubElement(case, tag)
        if tag == "failure":
            said.attrib.update(type="drift", message=drift_line(each))
        said.text = drift_line(each)
        cases.append(case)
    return cases or [_case("lock", "no drift")]


def _text(finding: Finding) -> str:
    lines = [
        one_line(finding.title),
        f"found: {one_line(finding.found)}",
        f"needed: {one_line(finding.needed)}",
        f"why: {one_line(finding.why)}",
        *(f"evidence: {evidence_line(each)}" for each in finding.evidence),
        *(f"source: {source_line(each)}" for each in finding.sources),
    ]
    for fix in finding.fix:
        lines.append(f"fix: {one_line(fix.title)}")
        lines += [f"    {clean(command)}" for command in fix.commands]
    if finding.consequences:
        lines.append(f"leads to: {', '.join(finding.consequences)}")
    return "\n".join(lines)


def _unknown(unknown: Unknown, view: View) -> ET.Element:
    component = next(
        (each.component for each in view.checks if unknown.check in (each.id, each.rule)),
        "envcheck",
    )
    case = _case(component, unknown.check)
    tag = "error" if unknown.kind == "crashed" else "skipped"
    attributes = {"message": unknown_line(unknown)}
    if tag == "error":
        attributes["type"] = unknown.kind
    ET.SubElement(case, tag, attributes)
    return case
