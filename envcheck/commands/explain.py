"""`envcheck explain`: the page of a finding."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.commands.checks import checks
from envcheck.commands.output import emit, width
from envcheck.errors import UsageError
from envcheck.report.plain import labelled, wrap
from envcheck.rules import all_rules
from envcheck.spelling import suggestion

if TYPE_CHECKING:
    from argparse import Namespace

    from envcheck.report.view import Check
    from envcheck.rules.base import Rule


def run(args: Namespace) -> int:
    """Run the command."""
    if args.list == (args.id is not None):
        msg = "name one finding, or give --list"
        raise UsageError(msg)
    rules = all_rules()
    known = {each.id: each for each in checks(rules)}
    if args.list:
        emit(_list(tuple(known.values())), None)
        return 0
    if args.id not in known:
        hint = suggestion(args.id, tuple(known)) or "see 'envcheck explain --list'"
        msg = f"no finding '{args.id}': {hint}"
        raise UsageError(msg)
    rule = next(each for each in rules if args.id in each.ids)
    emit(_page(known[args.id], rule), None)
    return 0


def _list(known: tuple[Check, ...]) -> str:
    column = max(len(each.id) for each in known) + 2
    lines: list[str] = []
    component = None
    for each in known:
        if each.component != component:
            lines += ([""] if lines else []) + [each.component]
            component = each.component
        lines += labelled(f"  {each.id}", each.title, column + 2, width())
    return "\n".join(lines) + "\n"


def _page(check: Check, rule: Rule) -> str:
    """The rule's docstring, its paragraphs filled to the reader's screen."""
    lines = [f"{check.id} ({check.component})", ""]
    for paragraph in check.page.split("\n\n"):
        first, *rest = paragraph.split("\n")
        if first.endswith(":") and rest:  # a section: its name, then an indented paragraph
            lines.append(first)
            lines += wrap(" ".join(" ".join(rest).split()), width(), first=2, hanging=2)
        else:
            indent = len(first) - len(first.lstrip())
            lines += wrap(
                " ".join(paragraph.split()), width(), first=min(indent, 2), hanging=min(indent, 2)
            )
        lines.append("")
    others = [id for id in rule.ids if id != check.id]
    if others:
        lines += wrap(f"The same check gives: {', '.join(others)}", width())
    if rule.explains:
        lines += wrap(f"Leads to: {', '.join(rule.explains)}", width())
    return "\n".join(lines).rstrip() + "\n"
