"""`envcheck smoke`: run something small on the GPU, and judge what happened with all else."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from typing import TYPE_CHECKING, Any

from envcheck.errors import UsageError

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator

    from envcheck.matrix.loader import Matrix
    from envcheck.model.environment import Framework
    from envcheck.model.smoke import Smoke, Stage
    from envcheck.model.snapshot import Snapshot
    from envcheck.model.symptom import Symptom
    from envcheck.probe.source import Source
    from envcheck.probe.target import Target
    from envcheck.smoke.child import Child
    from envcheck.smoke.run import Outcome, Request, Said


PROBE_TIMEOUT = 10.0
"""Seconds for each child that reads facts, as for the doctor."""


def run(args: Namespace) -> int:
    """Run the command: the doctor's work with a smoke test in it."""
    import contextlib

    from envcheck.commands.doctor import Judgement, wanted_format
    from envcheck.commands.machine import this_machine
    from envcheck.probe.snapshot import take_snapshot

    form = wanted_format(args)
    # The smoke test is for a GPU; without one it has failed, not succeeded at nothing.
    args.require_gpu = args.device == "cuda"
    # As for the doctor: a mistake in what was asked shows first, else rules and tables are loaded
    # while the machine answers.
    asked = args.select or args.ignore or args.tables
    prepared = [Judgement(args)] if asked else []
    live = this_machine()
    early: list[Child] = []
    with contextlib.ExitStack() as stack:

        def meanwhile() -> None:
            # What CUDA could change on the machine has been read by now, and nothing of the
            # framework starts CUDA before the snapshot is there.
            child = _start_early(live, args)
            if child is not None:
                stack.callback(child.close)
                early.append(child)
            if not prepared:
                prepared.append(Judgement(args))

        snapshot = take_snapshot(
            live, python=args.python, timeout=PROBE_TIMEOUT, meanwhile=meanwhile
        )
        (judgement,) = prepared
        whole = with_smoke(snapshot, live, args, judgement.matrix, next(iter(early), None))
    return judgement.report(whole, form)


def with_smoke(
    snapshot: Snapshot,
    source: Source,
    args: Namespace,
    matrix: Matrix | None = None,
    early: Child | None = None,
) -> Snapshot:
    """Run the smoke test and add what came of it to the facts.

    Args:
        snapshot: the machine as it was before.
        source: the machine; only this one can be run on.
        args: of `envcheck smoke`; what other commands do not have gets its default.
        matrix: the tables, by which messages are recognised; None leaves them out.
        early: the first framework's child, if it was started while the machine was looked at.

    Raises:
        UsageError: `--machine` names another machine, or there is nothing to run.
    """
    from envcheck.smoke.run import run_smoke

    if snapshot.source != "live":
        msg = "--smoke runs on this machine: it cannot be combined with --machine"
        raise UsageError(msg)
    request, skipped = _request(snapshot, source, _complete(args))
    with _Progress() as progress:
        outcome = run_smoke(request, source.variables, progress.show, early)
    # Its launcher's arguments are for several machines.
    machines = bool(request.launcher)
    return _merged(snapshot, outcome, skipped, source, matrix, machines=machines)


def _start_early(source: Source, args: Namespace) -> Child | None:
    """Start what will in all likelihood be run first: the facts that decide are not all there yet.

    A wrong guess costs a process that is ended before it does anything.
    """
    from envcheck.probe.notes import Notes
    from envcheck.probe.target import choose_target, holds_framework
    from envcheck.smoke.run import start_early

    target = choose_target(source, args.python, Notes())
    chosen: tuple[str, ...] | None = args.framework
    if chosen is None and target.interpreter is not None:
        chosen = tuple(
            name
            for name, folder in (("torch", "torch"), ("jax", "jaxlib"))
            if holds_framework(source, target.interpreter, (folder,))
        )
    return start_early(_asked(args, target, source, chosen or ()), source.variables)


def _complete(args: Namespace) -> Namespace:
    """Arguments of `envcheck smoke`, with defaults for those that `doctor --smoke` has not."""
    defaults: dict[str, Any] = {
        "framework": None,
        "gpus": None,
        "device": "cuda",
        "compile": False,
        "distributed": "auto",
        "nproc_per_node": None,
        "launcher": (),
        "stage_timeout": None,
    }
    return argparse.Namespace(**{**defaults, **vars(args)})


def _request(
    snapshot: Snapshot, source: Source, args: Namespace
) -> tuple[Request, tuple[Stage, ...]]:
    """What to run, and stages for what is left out with a reason."""
    from envcheck.model.smoke import Stage
    from envcheck.probe.notes import Notes
    from envcheck.probe.target import choose_target
    from envcheck.smoke.run import FRAMEWORKS

    target = choose_target(source, args.python, Notes())
    present = {each.name: each for each in snapshot.env.frameworks or ()}
    chosen = args.framework
    skipped: list[Stage] = []
    if chosen is None:
        chosen = tuple(name for name in FRAMEWORKS if name in present)
        if args.device == "cuda":
            left_out = _for_the_cpu(chosen, present)
            skipped = [
                Stage(
                    framework=name,
                    device=args.device,
                    name="import",
                    outcome="skipped",
                    detail=f"an installation for the CPU only; --framework {name} tries it",
                )
                for name in left_out
            ]
            chosen = tuple(name for name in chosen if name not in left_out) or ("cuda",)
        if not chosen:
            msg = "there is no framework here that could run on the CPU"
            raise UsageError(msg)
    return _asked(args, target, source, chosen), tuple(skipped)


def _asked(args: Namespace, target: Target, source: Source, frameworks: tuple[str, ...]) -> Request:
    """What the arguments ask for, with these frameworks of the environment."""
    from envcheck.smoke.run import STAGE_TIMEOUT, Request

    return Request(
        device=args.device,
        frameworks=frameworks,
        gpus=args.gpus,
        interpreter=target.interpreter,
        own=source.interpreter(),
        reason=target.error or "",
        timeout=args.stage_timeout or STAGE_TIMEOUT,
        compile=args.compile,
        distributed=args.distributed == "auto",
        processes=args.nproc_per_node,
        launcher=args.launcher,
    )


def _for_the_cpu(chosen: tuple[str, ...], present: dict[str, Framework]) -> tuple[str, ...]:
    """Frameworks that others pull in for their CPU part; not where there is nothing else to try.

    PyTorch without CUDA is a mistake that people make, and a finding of its own.
    """
    others = tuple(
        name for name in chosen if name != "torch" and name in present and present[name].cpu_only
    )
    return others if len(others) < len(chosen) else ()


def _merged(
    snapshot: Snapshot,
    outcome: Outcome,
    skipped: tuple[Stage, ...],
    source: Source,
    matrix: Matrix | None,
    *,
    machines: bool,
) -> Snapshot:
    """The snapshot with the stages, what frameworks said, and the messages that are known."""
    from envcheck.probe.quiet import Quiet
    from envcheck.probe.redact import Redactor

    redact = Redactor(source.variables, Quiet(source).read)
    stages = tuple(
        dataclasses.replace(
            each, detail=redact(each.detail), output=tuple(map(redact, each.output))
        )
        for each in outcome.smoke.stages
    )
    smoke = dataclasses.replace(outcome.smoke, stages=(*stages, *skipped))
    said = {each.framework: each for each in outcome.said}
    frameworks = snapshot.env.frameworks
    if frameworks is not None:
        frameworks = tuple(_told(each, said.get(each.name), redact) for each in frameworks)
    return dataclasses.replace(
        snapshot,
        env=dataclasses.replace(snapshot.env, frameworks=frameworks),
        smoke=smoke,
        symptoms=(*snapshot.symptoms, *_symptoms(smoke, matrix, machines=machines)),
    )


def _told(framework: Framework, said: Said | None, redact: Any) -> Framework:
    if said is None:
        return framework
    return dataclasses.replace(
        framework,
        gpu_available=framework.gpu_available if said.gpu_available is None else said.gpu_available,
        arches=framework.arches if said.arches is None else said.arches,
        error=framework.error if said.error is None else redact(said.error),
    )


LOOPBACK = frozenset({"gloo-loopback", "bootstrap-virtual-interface"})
"""Messages about an interface that leads to no other machine; within one it serves well."""


def _symptoms(smoke: Smoke, matrix: Matrix | None, *, machines: bool) -> Iterator[Symptom]:
    """Known messages in the output of stages that failed; `machines`: over several of them."""
    if matrix is None:
        return
    for stage in smoke.stages:
        if stage.outcome in {"ok", "skipped"}:
            continue
        from envcheck.symptoms.scan import scan

        lines = (stage.detail, *stage.output)
        for each in scan(lines, matrix, via=f"smoke: {stage.framework} {stage.name}"):
            if machines or each.name not in LOOPBACK:
                yield each


class _Progress:
    """One line on the screen that says what runs now; nothing where stderr is no terminal."""

    def __init__(self) -> None:
        try:
            self._shown = sys.stderr is not None and sys.stderr.isatty()
        except ValueError:
            self._shown = False

    def __enter__(self) -> _Progress:
        return self

    def show(self, text: str) -> None:
        """Replace the line."""
        self._write(f"\r\x1b[K{text[:70]} ...")

    def __exit__(self, *_error: object) -> None:
        self._write("\r\x1b[K")

    def _write(self, text: str) -> None:
        if self._shown:
            try:
                sys.stderr.write(text)
                sys.stderr.flush()
            except (OSError, ValueError):
                self._shown = False
