"""`envcheck fleet run`: ask the hosts of an inventory, judge their answers, keep every report."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envcheck.commands.doctor import Judgement
from envcheck.commands.output import emit, say, width
from envcheck.errors import UsageError
from envcheck.fleet.ansible import Heard, Wanted, ask, hosts_of
from envcheck.fleet.host import Refused, snapshot_of
from envcheck.fleet.journal import Journal
from envcheck.fleet.names import file_name

if TYPE_CHECKING:
    from argparse import Namespace

    from envcheck.model.snapshot import Snapshot

_INTERRUPTED = 130
_PROBE_SECONDS = 120.0
"""For a host's probe as a whole, at least."""
_SMOKE_SECONDS = 3600.0


def run(args: Namespace) -> int:
    """Run the action."""
    folder = Path(args.output)
    judge = _Judge(args, folder)
    for each in args.inventory:
        if "," not in each and not Path(each).exists():
            msg = f"--inventory {each}: no such file or folder; a list of hosts ends in a comma"
            raise UsageError(msg)
    wanted = _wanted(args)
    hosts = hosts_of(wanted)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        journal = Journal(args.output)
        options = _options(args)
        anew = args.again or journal.options != options
        left = [each for each in hosts if anew or not journal.done(each)]
        if not left:
            say(
                f"all {len(hosts)} hosts have a report in {args.output};"
                " --again asks them once more"
            )
        else:
            if len(left) < len(hosts):
                say(f"{len(hosts) - len(left)} of {len(hosts)} hosts have a report already")
            journal.begin(left, options, anew=anew)
    except OSError as error:
        msg = f"cannot write {error.filename or args.output}: {error.strerror or error}"
        raise UsageError(msg) from error
    done = True
    if left:
        progress = _Progress(journal, judge, len(left))
        done = ask(wanted, left, progress.hear)
    code = _summary(args)
    if not done:
        say("envcheck: interrupted; run it again to ask the hosts that are left")
        return _INTERRUPTED
    return code


def _wanted(args: Namespace) -> Wanted:
    seconds = _SMOKE_SECONDS if args.smoke else max(_PROBE_SECONDS, 8 * args.timeout)
    options: list[tuple[str, Any]] = [
        ("deep", args.deep),
        ("smoke", args.smoke),
        ("timeout", args.timeout),
    ]
    if args.python is not None:
        options.append(("python", args.python))
    return Wanted(
        inventories=tuple(args.inventory),
        limit=args.limit,
        forks=args.forks,
        options=tuple(options),
        seconds=seconds,
    )


def _options(args: Namespace) -> dict[str, Any]:
    """What reports depend on: those made with others do not count."""
    import hashlib

    lock = None
    if args.against is not None:
        lock = hashlib.sha256(Path(args.against).read_bytes()).hexdigest()
    return {
        "smoke": args.smoke,
        "deep": args.deep,
        "python": args.python,
        "require_gpu": args.require_gpu,
        "lock": lock,
        "tables": args.tables,
    }


class _Judge:
    """Judges snapshots and writes the reports."""

    def __init__(self, args: Namespace, folder: Path) -> None:
        self._folder = folder
        given = {"select": [], "ignore": [], "no_color": True, "output": None}
        self._judgement = Judgement(argparse.Namespace(**{**vars(args), **given}))

    def report(self, host: str, answers: dict[str, Any]) -> str:
        """Write a host's report; what it comes to, in a few words.

        Raises:
            Refused: the host cannot be asked this.
            ValueError, TypeError, KeyError, AttributeError: its answers are damaged.
        """
        from envcheck.report.describe import counted

        judgement = self._judgement
        snapshot = snapshot_of(answers)
        report, code = judgement.judged(self._with_symptoms(snapshot))
        emit(judgement.rendered(report, code, "json"), str(self._folder / file_name(host)))
        ids = dict.fromkeys(each.id for each in report.findings if each.severity != "info")
        words = [*ids, *(["drift"] if report.drift else [])]
        return f"{report.verdict}: {', '.join(words or counted(report) or ['no problem found'])}"

    def _with_symptoms(self, snapshot: Snapshot) -> Snapshot:
        from envcheck.symptoms.live import from_snapshot

        found = from_snapshot(snapshot, self._judgement.matrix)
        return dataclasses.replace(snapshot, symptoms=found)


class _Progress:
    """Takes what is heard of hosts: keeps it, and says a line about each."""

    def __init__(self, journal: Journal, judge: _Judge, total: int) -> None:
        self._journal = journal
        self._judge = judge
        self._total = total
        self._count = 0

    def hear(self, heard: Heard) -> None:
        """Take one host."""
        self._count += 1
        outcome, words = heard.outcome, heard.reason
        if heard.answers is not None:
            try:
                words = self._judge.report(heard.host, heard.answers)
            except Refused as error:
                outcome, words = "failed", str(error)
            except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
                outcome, words = "failed", f"its answer is damaged: {error}"
        self._journal.note(heard.host, outcome, "" if outcome == "ok" else words)
        shown = words if outcome == "ok" else f"{outcome}: {words}"
        say(f"[{self._count}/{self._total}] {heard.host}: {' '.join(shown.split())[:200]}")


def _summary(args: Namespace) -> int:
    """Print the picture of all reports in the folder."""
    from envcheck.commands.fleet import picture
    from envcheck.fleet.render import render

    # The reports say themselves how they compare with the lock.
    fleet = picture(argparse.Namespace(**{**vars(args), "against": None}), [args.output])
    emit(render("text", fleet, width=width(), verbose=args.verbose), None)
    return fleet.exit_code
