"""The picture as Markdown; foreign text is escaped as in the report of one machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.fleet import words
from envcheck.report.describe import titled
from envcheck.report.foreign import clean
from envcheck.report.markdown import code as span
from envcheck.report.markdown import prose

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from envcheck.fleet.model import Fleet, Tally


def render(fleet: Fleet) -> str:
    """Render a picture as GitHub-flavoured Markdown."""
    lines = [f"**{prose(words.status(fleet))}**", "", prose(words.headline(fleet))]
    if words.period(fleet):
        lines += ["", prose(words.period(fleet)[:1].upper() + words.period(fleet)[1:])]
    lines += _outliers(fleet)
    lines += _usual(fleet)
    if fleet.findings:
        lines += ["", "### Findings"]
        for each in fleet.findings:
            lines += ["", *_finding(each)]
    if fleet.drift is not None:
        lines += _drift(fleet)
    lines += _table(
        "Could not tell",
        ("Check", "Hosts"),
        [(prose(each.check), _hosts(each.hosts)) for each in fleet.unknown],
    )
    lines += _table(
        "Drivers and torch",
        ("Driver", "torch", "Hosts"),
        [(prose(each.driver), prose(each.torch), str(each.hosts)) for each in fleet.matrix],
    )
    lines += _table(
        "Not answered",
        ("Host", "", "Reason"),
        [(code(each.name), words.ABSENT[each.kind], prose(each.reason)) for each in fleet.absent],
    )
    lines += _table(
        "Damaged reports",
        ("File", "Reason"),
        [(code(each.path), prose(each.reason)) for each in fleet.damaged],
    )
    lines += ["", f"envcheck {prose(fleet.envcheck)}, exit status {fleet.exit_code}"]
    return "\n".join(lines) + "\n"


def code(text: str) -> str:
    """A code span that keeps a table's cell whole."""
    return span(text).replace("|", r"\|")


def _outliers(fleet: Fleet) -> list[str]:
    rows = [
        (_hosts(group.hosts), prose(each.part), prose(each.here), prose(each.usual))
        for group in words.outliers(fleet)
        for each in group.differences
    ]
    return _table("Outliers", ("Hosts", "Part", "Here", "Usual"), rows)


def _usual(fleet: Fleet) -> list[str]:
    rows = [
        (prose(group.gpus), _hosts(group.hosts), prose(words.summary(group)))
        for group in words.usual(fleet)
    ]
    return _table("Usual stacks", ("GPUs", "Hosts", "Stack"), rows)


def _finding(tally: Tally) -> Iterator[str]:
    yield f"#### {tally.severity}: {prose(tally.id)} ({words.hosts(len(tally.hosts))})"
    yield ""
    yield prose(words.titled(tally))
    yield ""
    yield f"Hosts: {_hosts(tally.hosts)}"
    for at, fix in enumerate(tally.fix):
        yield ""
        yield f"{'Fix' if at == 0 else 'Or'}: {prose(titled(fix, at))}"
        if fix.commands:
            commands = [clean(each) for each in fix.commands]
            fence = "`" * max(3, 1 + max(each.count("`") for each in commands))
            yield from ("", f"{fence}sh", *commands, fence)


def _drift(fleet: Fleet) -> list[str]:
    name = f"Drift from {code(fleet.lock)}" if fleet.lock else "Drift from the lock"
    if not fleet.drift:
        return ["", f"### {name}", "", "None, as far as it was read."]
    rows = [
        (prose(each.field), code(each.locked), code(each.found), _hosts(each.hosts))
        for each in fleet.drift
    ]
    return _table(name, ("Field", "Locked", "Found", "Hosts"), rows)


def _hosts(names: Sequence[str]) -> str:
    shown = ", ".join(code(each) for each in names[: words.SHOWN])
    more = len(names) - words.SHOWN
    return shown + (f" and {more} more" if more > 0 else "")


def _table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    if not rows:
        return []
    lines = ["", f"### {title}", "", f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    return lines + [f"| {' | '.join(row)} |" for row in rows]
