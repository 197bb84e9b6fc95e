"""Answers of rules from messages: a finding where they decide, an unknown where they do not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.matrix.symptoms import NOTHING
from envcheck.model.finding import Evidence
from envcheck.rules.base import cite, finding, unknown
from envcheck.rules.told.container_words import WORDS as CONTAINER
from envcheck.rules.told.cuda_words import WORDS as CUDA
from envcheck.rules.told.cudnn_nccl_words import WORDS as CUDNN_NCCL
from envcheck.rules.told.driver_words import WORDS as DRIVER
from envcheck.rules.told.extension_words import WORDS as EXTENSION
from envcheck.rules.told.framework_words import WORDS as FRAMEWORK
from envcheck.rules.told.gpu_words import WORDS as GPU
from envcheck.rules.told.heard import Heard, heard
from envcheck.rules.told.infer import INFERRED
from envcheck.rules.told.weigh import meaning
from envcheck.rules.told.wording import Wording, captured

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.matrix.schema import SymptomRow
    from envcheck.model.finding import Finding, Severity
    from envcheck.model.snapshot import Snapshot
    from envcheck.model.symptom import Symptom
    from envcheck.rules.base import Answer

WORDS: dict[str, Wording] = {
    **DRIVER,
    **GPU,
    **CONTAINER,
    **CUDA,
    **CUDNN_NCCL,
    **FRAMEWORK,
    **EXTENSION,
}
"""Wording of every finding that a message alone can show."""

SHOWN = 4
"""Messages that a finding shows as evidence."""

_RANK: dict[str, int] = {"error": 0, "warning": 1, "info": 2}


def judge(id: str, snapshot: Snapshot, matrix: Matrix) -> Answer:
    """What messages say of one finding.

    Yields:
        The finding when messages, weighed with the facts, stand for it; else an unknown for each
        message that could stand for it and is left open.
    """
    if id not in WORDS:
        return
    told = heard(snapshot, matrix)
    sure = _meant(told).get(id, ())
    if sure:
        yield _finding(told, id, sure)
        return
    for symptom, row in told.messages:
        if row.finding == id and meaning(told, symptom, row) is None:
            yield unknown(id, f"the text says '{symptom.text}', which it does not decide")
            return


PARTIAL = frozenset({"gpu-newer-than-build", "gpu-older-than-build"})
"""Findings of which a message sees one GPU, and the facts all of them."""


def raised(id: str, severity: Severity, snapshot: Snapshot, matrix: Matrix) -> Severity:
    """How severe a finding of the facts is, when a message says that it already does harm."""
    sure = _meant(heard(snapshot, matrix)).get(id, ()) if id not in PARTIAL else ()
    said = (WORDS[id].severity or _severity(sure)) if sure else severity
    return min(severity, said, key=lambda each: _RANK[each])


def supporting(id: str, snapshot: Snapshot, matrix: Matrix) -> tuple[Evidence, ...]:
    """The messages that stand for a finding, as evidence beside the facts that it rests on."""
    if not snapshot.symptoms:
        return ()
    sure = _meant(heard(snapshot, matrix)).get(id, ())
    return _evidence(tuple(symptom for symptom, _ in sure))


def _meant(told: Heard) -> dict[str, tuple[tuple[Symptom, SymptomRow], ...]]:
    """Messages by the finding that they stand for."""
    if told.meant is None:
        found: dict[str, tuple[tuple[Symptom, SymptomRow], ...]] = {}
        for symptom, row in told.messages:
            if row.finding == NOTHING:
                continue
            id = meaning(told, symptom, row)
            if id is not None and id != NOTHING:
                found[id] = (*found.get(id, ()), (symptom, row))
        for id, infer in INFERRED.items():
            if id not in found and (pairs := infer(told)):
                found[id] = pairs
        told.meant = found
    return told.meant


def _finding(told: Heard, id: str, sure: tuple[tuple[Symptom, SymptomRow], ...]) -> Finding:
    words = WORDS[id]
    symptoms = tuple(symptom for symptom, _ in sure)
    severity = words.severity or _severity(sure)
    name = captured(symptoms, *words.names) if words.names else None
    return finding(
        id,
        severity,
        words.component,
        f"{words.subject} {name}" if name and len(name) <= 120 else words.subject,
        words.title,
        found=symptoms[0].text,
        needed=words.needed,
        why=words.why,
        fix=words.roads(told, symptoms),
        evidence=_evidence(symptoms),
        sources=cite(told.matrix, *(row for _, row in sure if row.source not in _UNNAMED)),
    )


_UNNAMED = frozenset({"recalled", "reports"})
"""Sources that lead nowhere: what is cited is the message itself."""


def _severity(sure: tuple[tuple[Symptom, SymptomRow], ...]) -> Severity:
    """The worst of the rows; a context that led to an inference is as bad as what it led to."""
    named: list[Severity] = [
        row.severity  # type: ignore[misc]
        for _, row in sure
        if row.severity in _RANK and row.finding != NOTHING
    ]
    return min(named, key=lambda each: _RANK[each], default="error")


def _evidence(symptoms: tuple[Symptom, ...]) -> tuple[Evidence, ...]:
    shown = {each.text: each.via for each in symptoms}
    return tuple(
        Evidence(label="message", value=text, via=via or "text")
        for text, via in list(shown.items())[:SHOWN]
    )
