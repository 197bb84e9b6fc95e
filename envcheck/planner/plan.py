"""From a request to a plan: the stack, its commands, what was refused, what would unlock more."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from envcheck.errors import UsageError
from envcheck.matrix import query
from envcheck.model.plan import Lock, Plan, Rejection, Stack
from envcheck.planner.bundle import environment
from envcheck.planner.commands import install_commands
from envcheck.planner.machine import hypothetical
from envcheck.planner.preference import lts_branch, min_driver
from envcheck.planner.search import search
from envcheck.planner.unlocks import smallest_changes, unlocks
from envcheck.planner.wants import normalised, read_wants
from envcheck.rules import arch, drivers
from envcheck.versions import Release

if TYPE_CHECKING:
    from typing import Literal

    from envcheck.matrix.loader import Matrix
    from envcheck.model.plan import Request, Target
    from envcheck.model.snapshot import Snapshot
    from envcheck.planner.search import Found

SHOWN = 3
"""Refused candidates that are shown from either end: the best ones, and the nearest."""


def make_plan(matrix: Matrix, request: Request, machine: Snapshot | None = None) -> Plan:
    """Plan a stack.

    Args:
        matrix: the tables.
        request: what is wanted, for which target, by which preference.
        machine: the machine that the target was taken from, if it was.

    Raises:
        UsageError: a wanted package is not understood or not known.
    """
    request = dataclasses.replace(request, want=tuple(normalised(each) for each in request.want))
    wants = read_wants(request.want, matrix)
    found = search(matrix, request, wants, machine)
    stack = _stack(matrix, request, found, machine)
    bundle = found.bundle
    ways = (
        unlocks(matrix, request, wants, machine, found)
        if stack is not None
        else smallest_changes(matrix, request, wants, machine)
    )
    return Plan(
        request=request,
        stack=stack,
        install=install_commands(stack, bundle.built) if stack and bundle else (),
        notes=_notes(matrix, found, request.target, machine),
        rejections=_nearest(found.refused, request.target),
        unlocks=ways,
        tables=tuple(sorted(matrix.dates().items())),
    )


def _notes(
    matrix: Matrix, found: Found, target: Target, machine: Snapshot | None
) -> tuple[str, ...]:
    if found.bundle is None:
        return ()
    notes = found.bundle.notes
    if machine is not None and machine.host.wsl:
        notes += ("driver releases named here are those of Linux; Windows counts its own",)
    if any(each.name == "tensorflow" and each.cuda for each in found.bundle.options):
        notes += ("no table says which GPUs tensorflow has code for: run 'envcheck smoke' there",)
    for each in found.bundle.planned():
        row = query.nccl_targets(matrix, each.cuda) if each.cuda and each.nccl else None
        missing = [
            cc for cc in target.arches if row and arch.coverage(row.arches, cc).runs is False
        ]
        if missing:
            notes += (
                f"NCCL for CUDA {each.cuda} is built without code for compute capability "
                f"{', '.join(missing)}: one GPU works, several may not",
            )
    return notes


def lock_of(plan: Plan, version: str) -> Lock:
    """What a plan writes down.

    Args:
        plan: with a stack.
        version: of envcheck.

    Raises:
        UsageError: the plan has no stack.
    """
    if plan.stack is None:
        msg = "there is no stack to write down"
        raise UsageError(msg)
    return Lock(
        envcheck=version,
        target=plan.request.target,
        want=plan.request.want,
        stack=plan.stack,
        tables=plan.tables,
    )


def _stack(
    matrix: Matrix, request: Request, found: Found, machine: Snapshot | None
) -> Stack | None:
    if found.bundle is None:
        return None
    target = request.target
    needed = min_driver(matrix, found.bundle.options, target.arches)
    return Stack(
        frameworks=found.bundle.planned(),
        pins=found.bundle.all_pins(),
        python=found.python,
        platform=target.platform,
        os=target.os,
        min_driver=needed,
        driver_branch=_branch(matrix, request, found, machine, needed) if needed else None,
        driver_module=_module(matrix, target) if needed else None,
    )


def _branch(
    matrix: Matrix, request: Request, found: Found, machine: Snapshot | None, needed: str
) -> str | None:
    """The branch to install afresh, of those that still got fixes at the date of the table."""
    if found.bundle is None:
        return None
    base = hypothetical(matrix, request.target, machine)
    snapshot = dataclasses.replace(
        environment(base, found.bundle, found.python), taken_at=matrix.date("driver")
    )
    lowest = Release.parse(needed).major
    lts = lts_branch(matrix)
    careful = request.prefer != "newest" and lts is not None and int(lts.branch) >= lowest
    choice = drivers.choose(
        snapshot,
        matrix,
        at_least=lowest,
        at_most=int(lts.branch) if careful and lts is not None else None,
    )
    return choice.branch if choice.branch and int(choice.branch) >= lowest else None


def _module(matrix: Matrix, target: Target) -> Literal["open", "proprietary"] | None:
    """Flavour that some GPU of the target needs."""
    rows = (query.capability(matrix, cc) for cc in target.arches)
    kinds = {row.module for row in rows if row is not None}
    if "proprietary" in kinds:
        return "proprietary"
    return "open" if "open" in kinds else None


def _nearest(refused: tuple[Rejection, ...], target: Target) -> tuple[Rejection, ...]:
    """The best of the refused candidates and the nearest ones; those without findings give way."""
    telling = [each for each in refused if each.findings] or list(refused)
    kept = telling if len(telling) <= 2 * SHOWN else telling[:SHOWN] + telling[-SHOWN:]
    if target.python is None:
        return tuple(kept)
    python = f", Python {target.python}"
    return tuple(dataclasses.replace(each, stack=each.stack + python) for each in kept)
