"""Asks rules about a hand-built machine, against the shipped tables."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from envcheck.engine import judge
from envcheck.matrix.loader import Matrix
from envcheck.rules.container import CONTAINER_RULES
from envcheck.rules.driver import DRIVER_RULES
from envcheck.rules.gpu import GPU_RULES
from tests.support import evolve, machine

if TYPE_CHECKING:
    from envcheck.model.finding import Finding, Report
    from envcheck.model.snapshot import Snapshot

MACHINE_RULES = (*DRIVER_RULES, *GPU_RULES, *CONTAINER_RULES)


@functools.cache
def tables() -> Matrix:
    """The tables of this checkout, read once."""
    return Matrix.shipped()


def report(snapshot: Snapshot) -> Report:
    """What all rules about driver, GPU and container say of a machine; none may crash."""
    answer = judge(snapshot, tables(), MACHINE_RULES)
    assert [each for each in answer.unknown if each.kind == "crashed"] == []
    return answer


def changed(changes: dict[str, Any], **facts: Any) -> Snapshot:
    """The healthy machine with facts at dotted paths replaced."""
    return evolve(machine(**facts), changes)


def only(snapshot: Snapshot) -> Finding:
    """The one finding of a machine, which must have exactly one and no open question."""
    answer = report(snapshot)
    assert [each.id for each in answer.findings] == [answer.findings[0].id]
    assert answer.unknown == ()
    return answer.findings[0]


def said(snapshot: Snapshot) -> list[tuple[str, str]]:
    """(id, severity) of every finding of a machine."""
    return [(each.id, each.severity) for each in report(snapshot).findings]


def open_checks(snapshot: Snapshot) -> list[str]:
    """Checks that could not answer."""
    return [each.check for each in report(snapshot).unknown]
