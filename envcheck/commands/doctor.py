"""`envcheck doctor`: probe, judge, report."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import envcheck
from envcheck.commands.folders import overlay
from envcheck.commands.machine import open_machine
from envcheck.errors import UsageError
from envcheck.probe.snapshot import take_snapshot
from envcheck.spelling import suggestion
from envcheck.symptoms.live import from_snapshot

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterable

    from envcheck.model.finding import Report
    from envcheck.model.plan import Lock
    from envcheck.model.snapshot import Snapshot
    from envcheck.probe.redact import Redactor
    from envcheck.rules.base import Rule


def run(args: Namespace) -> int:
    """Run the command; the exit status is the same in every format."""
    form = wanted_format(args)
    if args.image is not None:
        from envcheck.commands import image

        return image.run_doctor(args, form, Judgement(args))
    if args.report:
        from envcheck.commands import reports

        return reports.run(args, form, Judgement(args))
    # A mistake in what was asked shows before anything is probed; with nothing asked, rules and
    # tables are loaded while the machine answers.
    judgement = (
        Judgement(args) if args.select or args.ignore or args.tables or args.against else None
    )
    prepared: list[Judgement] = [] if judgement is None else [judgement]

    def meanwhile() -> None:
        if not prepared:
            prepared.append(Judgement(args))

    snapshot = take_snapshot(
        open_machine(args),
        python=args.python,
        deep=args.deep,
        timeout=args.timeout,
        meanwhile=meanwhile,
    )
    snapshot = dataclasses.replace(snapshot, symptoms=from_snapshot(snapshot, prepared[0].matrix))
    if args.smoke:
        from envcheck.commands.smoke import with_smoke

        snapshot = with_smoke(snapshot, open_machine(args), args, prepared[0].matrix)
    return prepared[0].report(snapshot, form)


LISTING = ("junit", "sarif")
"""Formats that list what was checked, and not only what was found."""


class Judgement:
    """Rules, tables and renderers, ready for a snapshot."""

    def __init__(self, args: Namespace) -> None:
        """Load what the command line asks for.

        Raises:
            UsageError: an id or a folder is not there.
            LockError: the lock to compare with is damaged.
        """
        from envcheck.matrix.loader import Matrix
        from envcheck.rules import all_rules

        self._args = args
        self._rules = all_rules()
        self._redactor: Redactor | None = None
        against = getattr(args, "against", None)
        self._lock = None if against is None else read_lock(against)
        self._chosen = _chosen(args.select, args.ignore, self._rules)
        folder = overlay(args.tables)
        self.matrix = Matrix.shipped(folder)
        if folder is not None:
            # Your own tables are read as a whole, used or not: a mistake in them should show at
            # once.
            Matrix.shipped(folder).load_all()

    def report(self, snapshot: Snapshot, form: str) -> int:
        """Judge, write the report, and give the exit status."""
        from envcheck.commands.output import emit, say
        from envcheck.report.describe import status

        args = self._args
        report, code = self.judged(snapshot)
        emit(self.rendered(report, code, form), args.output)
        if args.output not in (None, "-"):
            last = status(report, code)
            say(f"{last.word} {last.text}")
        return code

    def judged(self, snapshot: Snapshot) -> tuple[Report, int]:
        """The report on a snapshot, and its exit status."""
        from envcheck.commands.output import today
        from envcheck.engine import exit_code, judge

        args = self._args
        report = judge(
            snapshot,
            self.matrix,
            self._rules,
            chosen=self._chosen,
            require_gpu=args.require_gpu,
            # A text has no day of its own, and is judged by the tables of today.
            today=today() if snapshot.source == "report" else None,
        )
        if snapshot.source.startswith("image:"):
            from envcheck.commands.image import in_dockerfile

            report = in_dockerfile(report)
        if self._lock is not None:
            report = self._compared(report, self._lock)
        return report, exit_code(report, args.fail_on, require_gpu=args.require_gpu)

    def _compared(self, report: Report, lock: Lock) -> Report:
        from envcheck.planner.drift import compare

        drift, unknown = compare(lock, report.snapshot, self.matrix)
        return dataclasses.replace(report, drift=drift, unknown=(*report.unknown, *unknown))

    def redact(self, text: str) -> str:
        """A text without names, addresses and serial numbers."""
        if self._redactor is None:
            from envcheck.probe.redact import Redactor

            self._redactor = Redactor({}, lambda _path: None)
        return self._redactor(text)

    def rendered(self, report: Report, code: int, form: str, name: str = "") -> str:
        """A report in a format; `name` tells it from others in the same output."""
        from envcheck.commands.checks import checks
        from envcheck.commands.output import wants_colour, width
        from envcheck.report import render
        from envcheck.report.view import View

        args = self._args
        source = report.snapshot.source
        view = View(
            version=envcheck.__version__,
            exit_code=code,
            fail_on=args.fail_on,
            checks=checks(self._rules, self._chosen) if form in LISTING else (),
            width=width(),
            verbose=args.verbose,
            name=name,
            artifact="Dockerfile"
            if source.startswith("image:")
            else f"{source.partition(':')[2] or 'this-machine'}/machine.toml",
        )
        colour = wants_colour(refused=args.no_color, path=args.output)
        return render(form, report, view, colour=colour)


def read_lock(path: str) -> Lock:
    """A lock file.

    Raises:
        LockError: it is damaged.
        UsageError: it cannot be read.
    """
    from envcheck.commands.reports import contents
    from envcheck.planner.lock import parse_lock

    return parse_lock(contents(path).decode("utf-8", "replace"), path)


def wanted_format(args: Namespace) -> str:
    """The format that `--format` or `--json` asks for.

    Raises:
        UsageError: they contradict each other.
    """
    if args.json and args.format not in (None, "json"):
        msg = f"--json and --format {args.format} contradict each other"
        raise UsageError(msg)
    return "json" if args.json else args.format or "text"


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
