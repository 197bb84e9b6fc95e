"""`envcheck doctor`: probe, judge, report."""

from __future__ import annotations

from typing import TYPE_CHECKING

import envcheck
from envcheck.commands.checks import checks
from envcheck.commands.machine import open_machine
from envcheck.commands.output import emit, say, wants_colour, width
from envcheck.engine import exit_code, judge
from envcheck.errors import UsageError
from envcheck.matrix.loader import Matrix
from envcheck.probe.snapshot import take_snapshot
from envcheck.report import render
from envcheck.report.describe import status
from envcheck.report.view import View
from envcheck.rules import all_rules
from envcheck.spelling import suggestion

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterable
    from pathlib import Path

    from envcheck.rules.base import Rule


def run(args: Namespace) -> int:
    """Run the command; the exit status is the same in every format."""
    form = _format(args)
    rules = all_rules()
    chosen = _chosen(args.select, args.ignore, rules)
    overlay = _overlay(args.tables)
    matrix = Matrix.shipped(overlay)
    if overlay is not None:
        # Your own tables are read as a whole, used or not: a mistake in them should show at once.
        Matrix.shipped(overlay).load_all()
    snapshot = take_snapshot(
        open_machine(args), python=args.python, deep=args.deep, timeout=args.timeout
    )
    report = judge(snapshot, matrix, rules, chosen=chosen, require_gpu=args.require_gpu)
    code = exit_code(report, args.fail_on, require_gpu=args.require_gpu)
    view = View(
        version=envcheck.__version__,
        exit_code=code,
        fail_on=args.fail_on,
        checks=checks(rules, chosen),
        width=width(),
        verbose=args.verbose,
        artifact=f"{snapshot.source.partition(':')[2] or 'this-machine'}/machine.toml",
    )
    colour = wants_colour(refused=args.no_color, path=args.output)
    emit(render(form, report, view, colour=colour), args.output)
    if args.output not in (None, "-"):
        last = status(report, code)
        say(f"{last.word} {last.text}")
    return code


def _format(args: Namespace) -> str:
    if args.json and args.format not in (None, "json"):
        msg = f"--json and --format {args.format} contradict each other"
        raise UsageError(msg)
    return "json" if args.json else args.format or "text"


def _overlay(folder: str | None) -> Path | None:
    if folder is None:
        return None
    from pathlib import Path

    path = Path(folder)
    if not path.is_dir():
        msg = f"--tables {folder}: no such folder"
        raise UsageError(msg)
    return path


def _chosen(
    select: Iterable[str], ignore: Iterable[str], rules: tuple[Rule, ...]
) -> frozenset[str] | None:
    """Ids that may be given; None for all.

    Raises:
        UsageError: an id is not one of the rules', or none is left.
    """
    known = {id: None for rule in rules for id in rule.ids}
    chosen = _ids("--select", select, tuple(known))
    left_out = _ids("--ignore", ignore, tuple(known))
    if not chosen and not left_out:
        return None
    left = (chosen or known.keys()) - left_out
    if not left:
        msg = "--select and --ignore leave nothing to check"
        raise UsageError(msg)
    return frozenset(left)


def _ids(flag: str, lists: Iterable[str], known: tuple[str, ...]) -> set[str]:
    ids = {id.strip() for text in lists for id in text.split(",") if id.strip()}
    for id in sorted(ids):
        if id not in known:
            hint = suggestion(id, known) or "see 'envcheck explain --list'"
            msg = f"{flag}: no finding '{id}': {hint}"
            raise UsageError(msg)
    return ids
