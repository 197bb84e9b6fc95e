"""The report as Markdown, ready to be pasted into an issue.

Foreign text stands in code spans or is escaped, so that it neither formats, links, mentions anybody
nor opens a tag.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from envcheck.report.components import components
from envcheck.report.describe import status, titled, unknown_line
from envcheck.report.foreign import clean, one_line

if TYPE_CHECKING:
    from envcheck.model.finding import Citation, Drift, Finding, Fix, Report
    from envcheck.report.view import View

_SPECIAL = re.compile(r"([\\`*_\[\]|~$])")
_FIRST = re.compile(r"^(|\d+(?=[.)](?:\s|$)))([-+#>=]|(?<=\d)[.)])")
_QUOTED = re.compile(r"`([^`|]+)`")
_ENTITY = re.compile(r"[&<]")
_LINKED = re.compile(r"(?<![A-Za-z0-9])[@#](?=\w)|(?<=\w)#(?=\d)|(?:https?:)(?=//)|(?<=www)\.")


def render(report: Report, view: View) -> str:
    """Render a report as GitHub-flavoured Markdown."""
    last = status(report, view.exit_code)
    lines = [f"**{prose(last.word)}** {prose(last.text)}", "", "| Component | |", "|---|---|"]
    for row in components(report.snapshot, report.tables):
        lines.append(f"| {prose(row.name)} | {prose(row.text)} |")
    for each in report.findings:
        lines += ["", *_finding(each)]
    if report.drift is not None:
        lines += ["", *_drift(report.drift)]
    if report.unknown:
        lines += ["", "### Could not tell", ""]
        lines += [f"- {prose(unknown_line(each))}" for each in report.unknown]
    if report.ask:
        lines += ["", "### To find out"]
        for fix in report.ask:
            lines += ["", *_fix(fix, fix.title)]
    lines += [line for each in report.notes for line in ("", f"Note: {prose(each)}")]
    lines += ["", f"envcheck {prose(view.version)}, exit status {view.exit_code}"]
    return "\n".join(lines) + "\n"


def _finding(finding: Finding) -> list[str]:
    lines = [
        f"### {finding.severity}: {prose(finding.id)}",
        "",
        f"{prose(finding.title)} ({code(finding.subject)})",
        "",
    ]
    for label, text in (
        ("Found", finding.found),
        ("Needed", finding.needed),
        ("Why", finding.why),
    ):
        if text:
            lines.append(f"- **{label}**: {prose(text)}")
    for fact in finding.evidence:
        via = f" (read from {code(fact.via)})" if fact.via else ""
        lines.append(f"- **Evidence**: {prose(fact.label)} {code(fact.value)}{via}")
    lines += [f"- **Source**: {_source(each)}" for each in finding.sources]
    if finding.consequences:
        lines.append(f"- **Leads to**: {', '.join(prose(each) for each in finding.consequences)}")
    for at, fix in enumerate(finding.fix):
        lines += ["", *_fix(fix, titled(fix, at), "Fix: " if at == 0 else "Or: ")]
    return lines


def _drift(drifts: tuple[Drift, ...]) -> list[str]:
    if not drifts:
        return ["No drift from the lock."]
    rows = [f"| {prose(d.field)} | {code(d.locked)} | {code(d.found)} |" for d in drifts]
    return ["### Drift from the lock", "", "| Field | Locked | Found |", "|---|---|---|", *rows]


def _fix(fix: Fix, title: str, prefix: str = "") -> list[str]:
    lines = [f"{prefix}{prose(title)}"]
    if fix.commands:
        commands = [clean(each) for each in fix.commands]
        fence = "`" * max(3, 1 + max(_longest_run(each) for each in commands))
        lines += ["", f"{fence}sh", *commands, fence]
    return lines


def _source(source: Citation) -> str:
    read = f" (read {prose(source.retrieved)})" if source.retrieved else ""
    url = one_line(source.url)
    if re.fullmatch(r"https?://[^\s<>()\[\]`|]+", url):
        return f"[{prose(source.title)}]({url}){read}"
    return prose(source.title) + (f", {code(url)}" if url else "") + read


def prose(text: str) -> str:
    """Escape text so that Markdown shows exactly its characters; `quoted` parts become code."""
    text = one_line(text)
    parts = _QUOTED.split(text)
    # Every second part is what stood between two backticks.
    return "".join(
        code(part) if at % 2 else _literal(part, at_start=at == 0) for at, part in enumerate(parts)
    )


def _literal(text: str, *, at_start: bool) -> str:
    text = _SPECIAL.sub(r"\\\1", text)
    text = _ENTITY.sub(lambda each: {"&": "&amp;", "<": "&lt;"}[each.group()], text)
    if at_start:
        text = _FIRST.sub(r"\1\\\2", text)
    # An empty comment after the sign keeps the site from making a link or a mention of it.
    return _LINKED.sub(lambda each: f"{each.group()}<!-- -->", text)


def code(text: str) -> str:
    """A code span that shows exactly the text, also inside a table cell."""
    text = one_line(text)
    if not text:
        return ""
    fence = "`" * (1 + _longest_run(text))
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)
