"""How a finding that rests on a message is worded."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from envcheck.model.base import model
from envcheck.rules.told.heard import Heard

if TYPE_CHECKING:
    from envcheck.model.finding import Fix, Severity
    from envcheck.model.symptom import Symptom

Roads = Callable[[Heard, "tuple[Symptom, ...]"], "tuple[Fix, ...]"]


@model
class Wording:
    """What is said of a finding beside the message itself.

    Attributes:
        component: where it is filed.
        subject: what it is about, where messages name nothing better.
        title: one line.
        needed: what is needed instead.
        why: the cause.
        roads: ways out, from the facts and the messages.
        names: captures that name the subject better, the first one that is there.
        severity: instead of the row's, where the finding is never worse.
    """

    component: str
    subject: str
    title: str
    needed: str
    why: str
    roads: Roads
    names: tuple[str, ...] = ()
    severity: Severity | None = None


def fixed(*roads: Fix) -> Roads:
    """Ways out that depend on nothing."""

    def same(_heard: Heard, _symptoms: tuple[Symptom, ...]) -> tuple[Fix, ...]:
        return roads

    return same


def captured(symptoms: tuple[Symptom, ...], *names: str) -> str | None:
    """The first captured piece of these names, the names in order of preference."""
    return next(
        (value for name in names for each in symptoms if (value := each.capture(name))), None
    )
