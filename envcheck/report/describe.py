"""The text report as a list of blocks, so that plain and coloured output use the same words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from envcheck.errors import UndeterminedError
from envcheck.model.base import model
from envcheck.report import stages
from envcheck.report.activity import activity_rows
from envcheck.report.components import Row, components
from envcheck.report.foreign import clean, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from envcheck.model.finding import Citation, Drift, Evidence, Finding, Fix, Report, Unknown
    from envcheck.report.view import View

Tone = Literal["error", "warning", "info", "unknown", "ok", "plain"]


@model
class Table:
    """The component table."""

    rows: tuple[Row, ...]


@model
class Heading:
    """First line of a part; `word` is its first word or words, the rest is `text`."""

    word: str
    text: str = ""
    tone: Tone = "plain"
    whole: bool = False
    """Never broken into several lines."""


@model
class Entry:
    """A labelled paragraph under a heading; without label, a list item."""

    label: str
    text: str


@model
class Command:
    """Something to type: one line, never wrapped."""

    text: str


@model
class Blank:
    """An empty line."""


Block = Table | Heading | Entry | Command | Blank


def blocks(report: Report, view: View) -> Iterator[Block]:
    """The whole text report, in order; the last block is the status line."""
    activity = report.snapshot.activity
    if activity is None:
        yield Table(rows=components(report.snapshot, report.tables))
    else:
        yield Table(rows=activity_rows(activity, report.tables))
    if report.snapshot.smoke is not None and report.snapshot.smoke.stages:
        yield Blank()
        yield Heading(word="smoke test")
        yield Table(rows=stages.rows(report.snapshot.smoke))
    for each in report.findings:
        yield Blank()
        yield from _finding(each)
    if report.drift is not None:
        yield Blank()
        yield from _drift(report.drift)
    if report.unknown:
        yield Blank()
        yield Heading(word="could not tell", tone="unknown")
        for question in report.unknown:
            yield Entry(label="", text=unknown_line(question))
    if report.ask:
        yield Blank()
        yield Heading(word="to find out")
        for fix in report.ask:
            yield from _fix("", fix, one_line(fix.title))
    if report.notes:
        yield Blank()
        for note in report.notes:
            yield Entry(label="note", text=one_line(note))
    if view.verbose:
        yield from _details(report)
    yield Blank()
    yield status(report, view.exit_code)


def _finding(finding: Finding) -> Iterator[Block]:
    title = one_line(finding.title)
    yield Heading(word=f"{finding.severity} {finding.id}:", text=title, tone=finding.severity)
    if finding.subject not in finding.title:
        yield Entry(label="about", text=one_line(finding.subject))
    for label, text in (
        ("found", finding.found),
        ("needed", finding.needed),
        ("why", finding.why),
    ):
        if text:
            yield Entry(label=label, text=one_line(text))
    for label, lines in (
        ("evidence", [evidence_line(each) for each in finding.evidence]),
        ("source", [source_line(each) for each in finding.sources]),
    ):
        for at, line in enumerate(lines):
            yield Entry(label=label if at == 0 else " ", text=line)
    for at, fix in enumerate(finding.fix):
        yield from _fix("fix" if at == 0 else "or", fix, titled(fix, at))
    if finding.consequences:
        yield Entry(label="leads to", text=", ".join(finding.consequences))


def _drift(drifts: tuple[Drift, ...]) -> Iterator[Block]:
    if not drifts:
        yield Heading(word="no drift:", text="all as in the lock, as far as it was read")
        return
    yield Heading(word="drift from the lock", tone="error")
    for each in drifts:
        yield Entry(label="", text=drift_line(each))


def drift_line(drift: Drift) -> str:
    """`torch: locked 2.8.0+cu128, found 2.9.0+cu130`."""
    return one_line(f"{drift.field}: locked {drift.locked}, found {drift.found}")


def titled(fix: Fix, at: int) -> str:
    """Title of the nth way out, without the `Or` that the layout says already."""
    title = one_line(fix.title)
    bare = title.removeprefix("Or ") if at > 0 else title
    return bare[:1].upper() + bare[1:]


def _fix(label: str, fix: Fix, title: str) -> Iterator[Block]:
    yield Entry(label=label, text=title)
    for command in fix.commands:
        yield Command(text=clean(command))


def _details(report: Report) -> Iterator[Block]:
    if report.snapshot.gaps:
        yield Blank()
        yield Heading(word="not read")
        for gap in report.snapshot.gaps:
            yield Entry(label="", text=one_line(f"{gap.path}: {gap.reason}"))
    if report.tables:
        yield Blank()
        yield Heading(word="tables")
        for name, date in report.tables:
            yield Entry(label="", text=one_line(f"{name}: {date}"))


def evidence_line(evidence: Evidence) -> str:
    """`label: value (via)`."""
    via = f" ({evidence.via})" if evidence.via else ""
    return one_line(f"{evidence.label}: {evidence.value}{via}")


def source_line(source: Citation) -> str:
    """`title, url (read date)`, of which only the title is always there."""
    url = f", {source.url}" if source.url else ""
    read = f" (read {source.retrieved})" if source.retrieved else ""
    return one_line(f"{source.title}{url}{read}")


def unknown_line(unknown: Unknown) -> str:
    """`check: reason`, with the kind when it is not simply a missing fact."""
    kind = {
        "missing": "",
        "newer-than-table": " (not in the tables)",
        "crashed": " (the check itself crashed: please report it)",
    }[unknown.kind]
    return one_line(f"{unknown.check}: {unknown.reason}{kind}")


def status(report: Report, exit_code: int) -> Heading:
    """The final line, and always one line: what the report comes to."""
    counts = counted(report)
    if report.drift and report.verdict != "error":
        text = "this is not what the lock says"
        return Heading(word=f"{', '.join(counts)}:", text=text, tone="error", whole=True)
    if report.verdict in ("error", "warning"):
        first = one_line(report.findings[0].title)
        return Heading(word=f"{', '.join(counts)}:", text=first, tone=report.verdict, whole=True)
    if report.verdict == "unknown":
        text = (
            "too little could be read to judge this machine"
            if exit_code == UndeterminedError.exit_code
            else "no problem found, but not every check could tell"
        )
    else:
        text = "no problem found"
    rest = f" ({', '.join(counts)})" if counts else ""
    return Heading(word=f"{report.verdict}:", text=text + rest, tone=report.verdict, whole=True)


def counted(report: Report) -> list[str]:
    """`1 error`, `2 warnings`, `1 note`, `3 unknown`: what there is any of."""
    severities = [each.severity for each in report.findings]
    numbers = (
        (severities.count("error"), "error", "errors"),
        (severities.count("warning"), "warning", "warnings"),
        (severities.count("info"), "note", "notes"),
        (len(report.drift or ()), "field drifted", "fields drifted"),
        (len(report.unknown), "unknown", "unknown"),
    )
    return [f"{n} {one if n == 1 else many}" for n, one, many in numbers if n]
