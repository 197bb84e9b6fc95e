"""Judges a snapshot: runs every rule, keeps what it says, folds consequences under their cause."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Literal

from envcheck import staleness, undecided
from envcheck.errors import TableError, UndeterminedError
from envcheck.model.finding import Finding, Fix, Report, Unknown, VerdictName

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from envcheck.matrix.loader import Matrix
    from envcheck.model.snapshot import Snapshot
    from envcheck.rules.base import Rule

_ORDER = {"error": 0, "warning": 1, "info": 2}

FailOn = Literal["warning", "error", "never"]
"""The mildest severity that makes a run fail."""

_NO_GPU = "no-gpu"
"""The finding that is worth an error only to someone who requires a GPU."""


def judge(
    snapshot: Snapshot,
    matrix: Matrix,
    rules: Iterable[Rule],
    *,
    chosen: Collection[str] | None = None,
    require_gpu: bool = False,
    today: str | None = None,
) -> Report:
    """Run rules over a snapshot.

    Args:
        snapshot: the facts.
        matrix: the tables.
        rules: in catalogue order, causes before what follows from them.
        chosen: finding ids that may be given, None for all. What is left out is left out before
            anything is folded, so a consequence of a cause that was not chosen stands alone.
        require_gpu: the caller needs a GPU: its absence is an error, and not knowing is no `ok`.
        today: day by which the tables' age is told; the snapshot's own when absent.

    Returns:
        The report: errors first, within a severity in the order of the rules. A finding that
        another one explains is named among that one's `consequences` instead of standing alone.
    """
    rules = tuple(each for each in rules if chosen is None or any(id in chosen for id in each.ids))
    findings: list[Finding] = []
    unknowns: list[Unknown] = []
    for rule in rules:
        for answer in _ask(rule, snapshot, matrix):
            if isinstance(answer, Unknown):
                unknowns.append(answer)
            elif chosen is None or answer.id in chosen:
                raised = require_gpu and answer.id == _NO_GPU
                findings.append(dataclasses.replace(answer, severity="error") if raised else answer)
    kept = _fold(findings, rules)
    folded = {each.id for each in findings} - {each.id for each in kept}
    explained = {
        effect for rule in rules if {*rule.ids} & {f.id for f in kept} for effect in rule.explains
    }
    open_questions = tuple(
        each
        for each in dict.fromkeys(unknowns)
        if each.kind == "crashed" or each.check not in folded | explained
    )
    of_text = snapshot.source == "report"
    if of_text:
        open_questions = undecided.open_questions(snapshot, matrix, kept, open_questions)
    return Report(
        verdict=_verdict(kept, open_questions, judged=_judged(snapshot, require_gpu)),
        findings=tuple(sorted(kept, key=lambda each: _ORDER[each.severity])),
        ask=undecided.asks(snapshot, open_questions)
        if of_text
        else _ask_next(snapshot, open_questions),
        unknown=open_questions,
        snapshot=snapshot,
        tables=tuple(sorted(matrix.dates().items())),
        notes=staleness.notes(snapshot, matrix, today),
    )


def _ask(rule: Rule, snapshot: Snapshot, matrix: Matrix) -> list[Finding | Unknown]:
    """What one rule answers; what it said before it crashed is kept, and the crash is said too."""
    answers: list[Finding | Unknown] = []
    try:
        if _concerned(rule, snapshot):
            lacking = next((path for path in rule.needs if _fact(snapshot, path) is None), None)
            if lacking is not None:
                reason = snapshot.gap(lacking) or f"{lacking} was not read"
                answers.append(Unknown(check=rule.id, reason=reason))
            else:
                for answer in rule.body(snapshot, matrix):
                    answers.append(answer)  # a list() would lose all at the first crash
        if rule.told is not None and snapshot.symptoms:
            return _listened(rule, answers, snapshot, matrix)
    except TableError:
        raise
    except Exception as error:  # a crashed check must be shown, whatever crashed it
        reason = f"{type(error).__name__}: {error}"
        answers.append(Unknown(check=rule.id, reason=reason, kind="crashed"))
    return answers


def _concerned(rule: Rule, snapshot: Snapshot) -> bool:
    return all(applies(snapshot) for applies in rule.when)


def _listened(
    rule: Rule, answers: list[Finding | Unknown], snapshot: Snapshot, matrix: Matrix
) -> list[Finding | Unknown]:
    """A rule's answers with what messages say: beside the facts it rests on, or in their place."""
    if rule.told is None:
        return answers
    if any(isinstance(each, Finding) for each in answers):
        from envcheck.rules.told.answer import raised, supporting

        said = supporting(rule.id, snapshot, matrix)
        return [
            dataclasses.replace(
                each,
                severity=raised(each.id, each.severity, snapshot, matrix),
                evidence=tuple(dict.fromkeys((*each.evidence, *said))),
            )
            if isinstance(each, Finding) and each.id == rule.id
            else each
            for each in answers
        ]
    told = list(rule.told(snapshot, matrix))
    crashed = [each for each in answers if isinstance(each, Unknown) and each.kind == "crashed"]
    return [*crashed, *told] if told else answers


def _fact(snapshot: Snapshot, path: str) -> object:
    value: object = snapshot
    for name in path.split("."):
        value = getattr(value, name)
        if value is None:
            return None
    return value


def _fold(findings: list[Finding], rules: tuple[Rule, ...]) -> list[Finding]:
    """Name each explained finding under the first cause that explains it and drop it from the list.

    Only an error folds an error, so that a warning never hides something worse.
    """
    explains = {id: rule.explains for rule in rules for id in rule.ids}
    owner: dict[int, int] = {}
    for effect_at, effect in enumerate(findings):
        for cause_at, cause in enumerate(findings):
            if (
                cause_at != effect_at
                and effect.id in explains[cause.id]
                and _ORDER[cause.severity] <= _ORDER[effect.severity]
                and owner.get(cause_at) != effect_at
            ):
                owner[effect_at] = cause_at
                break
    kept = []
    for at, each in enumerate(findings):
        if at in owner:
            continue
        effects = tuple(
            dict.fromkeys(f.id for i, f in enumerate(findings) if _root(i, owner) == at and i != at)
        )
        kept.append(dataclasses.replace(each, consequences=effects) if effects else each)
    return kept


def _root(at: int, owner: dict[int, int]) -> int:
    while at in owner:
        at = owner[at]
    return at


def _judged(snapshot: Snapshot, require_gpu: bool) -> bool:
    """Whether anything is known of the machine; a required GPU must have been seen."""
    driver, host, env = snapshot.host.driver, snapshot.host, snapshot.env
    if require_gpu and not host.gpus:
        return False
    facts = (
        driver.version,
        driver.installed,
        driver.module_loaded,
        host.gpus,
        host.pci,
        env.packages,
        env.frameworks,
        # A text may hold nothing but the message of a program.
        snapshot.symptoms or None if snapshot.source == "report" else None,
    )
    return any(each is not None for each in facts)


def exit_code(report: Report, fail_on: FailOn = "error", *, require_gpu: bool = False) -> int:
    """The exit status that a report stands for, the same in every format.

    Args:
        report: the judgement.
        fail_on: the mildest severity that fails; `never` lets every finding pass.
        require_gpu: the caller needs a GPU that the driver shows.

    Returns:
        0 when nothing fails, 1 when a finding does or the report differs from its lock,
        `UndeterminedError.exit_code` when nothing was found but nothing could be judged either:
        neither driver nor environment, or, with `require_gpu`, no GPU was seen and no finding says
        why.
    """
    failing = {"warning": ("error", "warning"), "error": ("error",), "never": ()}[fail_on]
    drifted = bool(report.drift) and fail_on != "never"
    if drifted or any(each.severity in failing for each in report.findings):
        return 1
    if report.verdict == "error" or _judged(report.snapshot, require_gpu):
        return 0
    return UndeterminedError.exit_code


def _verdict(
    findings: list[Finding], unknowns: tuple[Unknown, ...], *, judged: bool
) -> VerdictName:
    severities = {each.severity for each in findings}
    if "error" in severities:
        return "error"
    if "warning" in severities:
        return "warning"
    if not judged or any(each.kind != "newer-than-table" for each in unknowns):
        return "unknown"
    return "ok"


def _ask_next(snapshot: Snapshot, unknowns: tuple[Unknown, ...]) -> tuple[Fix, ...]:
    """What would settle the open questions."""
    of_image = snapshot.source.startswith("image:")
    if not of_image and any(each.kind == "missing" for each in unknowns):
        return (
            Fix(
                title="Run it as root, outside a container: it reads more there",
                commands=("sudo envcheck doctor",),
            ),
        )
    return ()
