"""`envcheck snapshot`: the facts, not judged; and recordings of machines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.commands.machine import open_machine
from envcheck.commands.output import emit, say
from envcheck.probe.snapshot import take_snapshot
from envcheck.report.json_report import facts

if TYPE_CHECKING:
    from argparse import Namespace


def run(args: Namespace) -> int:
    """Run the command: facts go to standard output or `-o`, a recording to `--record`."""
    source = open_machine(args)
    if args.record is None:
        snapshot = take_snapshot(source, python=args.python, deep=args.deep, timeout=args.timeout)
    else:
        from envcheck.probe.record import Recorder

        recorder = Recorder(source)
        snapshot = take_snapshot(recorder, python=args.python, deep=args.deep, timeout=args.timeout)
        recorder.save(args.record, snapshot)
        say(f"recorded this machine in {args.record}; look through it before you pass it on")
    emit(facts(snapshot), args.output)
    return 0
