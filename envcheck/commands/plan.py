"""`envcheck plan`: the stack that a machine can run, and how to get it."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING

import envcheck
from envcheck.commands.folders import overlay
from envcheck.commands.output import emit, say, width
from envcheck.errors import NoPlanError, UsageError
from envcheck.matrix.loader import Matrix
from envcheck.model.plan import Request
from envcheck.planner.lock import PYTHON, lock_text
from envcheck.planner.plan import lock_of, make_plan
from envcheck.planner.target import parse_os, parse_target, target_of
from envcheck.spelling import suggestion

if TYPE_CHECKING:
    from argparse import Namespace

    from envcheck.model.plan import Target
    from envcheck.model.snapshot import Snapshot


def run(args: Namespace) -> int:
    """Run the command; 0 with a plan, 5 without one."""
    from envcheck.report.plan_text import document, render

    folder = overlay(args.tables)
    matrix = Matrix.shipped(folder)
    if folder is not None:
        Matrix.shipped(folder).load_all()
    machine, target = _target(args, matrix)
    request = Request(want=tuple(args.want), target=target, prefer=args.prefer)
    plan = make_plan(matrix, request, machine)
    code = 0 if plan.stack is not None else NoPlanError.exit_code
    text = document(plan, code) if args.json else render(plan, width())
    if args.lock is None or plan.stack is None:
        emit(text, None)
    else:
        lock = lock_text(lock_of(plan, envcheck.__version__))
        emit(lock, args.lock)
        if args.lock != "-":
            emit(text, None)
    if plan.stack is None:
        say("envcheck: no plan meets the request")
    return code


def _target(args: Namespace, matrix: Matrix) -> tuple[Snapshot | None, Target]:
    """The machine, where there is one, and the target with what the command line says of it."""
    given = [name for name in ("target", "machine", "report") if getattr(args, name) is not None]
    if len(given) > 1:
        msg = f"--{given[0]} and --{given[1]} name two machines"
        raise UsageError(msg)
    machine = None
    if args.target is not None:
        target = parse_target(args.target, matrix)
    else:
        machine = _snapshot(args, matrix)
        target = target_of(machine, matrix)
    if args.python is not None:
        if not re.fullmatch(PYTHON, args.python):
            msg = f"--python: '{args.python}' is no version such as 3.12"
            raise UsageError(msg)
        target = dataclasses.replace(target, python=args.python)
    if args.os is not None:
        system = parse_os(args.os, matrix)
        if system is None:
            known = [f"{row.id}{row.version}" for row in matrix.distros]
            # Short names with the same few digits are like each other by chance.
            hint = suggestion(args.os, known, 0.75) or f"choose from {', '.join(known)}"
            msg = f"--os: '{args.os}' is not known: {hint}"
            raise UsageError(msg)
        if system != target.os:
            target = dataclasses.replace(target, os=system)
            machine = _elsewhere(machine)
    return machine, target


def _elsewhere(machine: Snapshot | None) -> Snapshot | None:
    """The same machine with another system, as in a container on it."""
    if machine is None:
        return None
    from envcheck.model.host import Os

    host = dataclasses.replace(machine.host, os=Os())
    return dataclasses.replace(machine, host=host)


def _snapshot(args: Namespace, matrix: Matrix) -> Snapshot:
    if args.report is not None:
        from envcheck import intake
        from envcheck.commands.reports import contents

        return intake.read(contents(args.report), matrix)
    from envcheck.commands.machine import open_machine
    from envcheck.probe.snapshot import take_snapshot

    return take_snapshot(open_machine(args), python=None, deep=False, timeout=args.timeout)
