"""The picture as JUnit XML: a test case per host, failed when its report fails."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

from envcheck.errors import UndeterminedError
from envcheck.fleet import words
from envcheck.report.describe import drift_line
from envcheck.report.foreign import clean, one_line

if TYPE_CHECKING:
    from envcheck.fleet.model import Absent, Damaged, Fleet, Node

_FAILING = {"warning": ("error", "warning"), "error": ("error",), "never": ()}


def render(fleet: Fleet) -> str:
    """Render a picture as JUnit XML, in ASCII with character references."""
    cases = [_node(each, fleet) for each in fleet.nodes]
    cases += [_absent(each) for each in words.unjudged(fleet)]
    cases += [_damaged(each) for each in fleet.damaged]
    counts = {
        "tests": str(len(cases)),
        "failures": str(sum(case.find("failure") is not None for case in cases)),
        "errors": str(sum(case.find("error") is not None for case in cases)),
        "skipped": str(sum(case.find("skipped") is not None for case in cases)),
    }
    suites = ET.Element("testsuites", {"name": "envcheck", **counts})
    suite = ET.SubElement(suites, "testsuite", {"name": "envcheck fleet", **counts})
    properties = ET.SubElement(suite, "properties")
    for name, value in (("envcheck", fleet.envcheck), ("exit_code", str(fleet.exit_code))):
        ET.SubElement(properties, "property", {"name": name, "value": clean(value)})
    suite.extend(cases)
    ET.indent(suites)
    xml: bytes = ET.tostring(suites, encoding="us-ascii", xml_declaration=True)
    return xml.decode("ascii") + "\n"


def _case(name: str) -> ET.Element:
    return ET.Element(
        "testcase", {"classname": "envcheck.fleet", "name": one_line(name), "time": "0"}
    )


def _node(node: Node, fleet: Fleet) -> ET.Element:
    case = _case(node.name)
    failing = [each for each in node.findings if each.severity in _FAILING[fleet.fail_on]]
    drift = () if fleet.fail_on == "never" else node.drift or ()
    lines = [one_line(f"{each.severity} {each.id}: {each.title}") for each in node.findings]
    lines += [f"drift: {drift_line(each)}" for each in node.drift or ()]
    lines += [one_line(f"could not tell: {each}") for each in node.unknown]
    if failing or drift:
        kind = failing[0].id if failing else "drift"
        message = failing[0].title if failing else drift_line(drift[0])
        said = ET.SubElement(
            case, "failure", {"type": one_line(kind), "message": one_line(message)}
        )
        said.text = "\n".join(lines)
    elif node.exit_code == UndeterminedError.exit_code:
        message = "too little could be read to judge this machine"
        ET.SubElement(case, "skipped", {"message": message}).text = "\n".join(lines)
    elif lines:
        ET.SubElement(case, "system-out").text = "\n".join(lines)
    return case


def _absent(absent: Absent) -> ET.Element:
    case = _case(absent.name)
    ET.SubElement(case, "error", {"type": absent.kind, "message": one_line(absent.reason)})
    return case


def _damaged(damaged: Damaged) -> ET.Element:
    case = _case(damaged.path)
    ET.SubElement(case, "error", {"type": "damaged", "message": one_line(damaged.reason)})
    return case
