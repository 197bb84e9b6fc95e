"""Rules' answers from messages: the table says what a message means, the facts whether it holds."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.model.snapshot import Snapshot
    from envcheck.rules.base import Answer, Rule


def listening(rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
    """The same rules, each of which also takes the messages that stand for its finding."""
    return tuple(
        dataclasses.replace(rule, told=functools.partial(judge, rule.id))
        if rule.told is None
        else rule
        for rule in rules
    )


def judge(id: str, snapshot: Snapshot, matrix: Matrix) -> Answer:
    """What messages say of one finding; see `answer.judge`.

    What words it is loaded only when there are messages, which most machines have none of.
    """
    if not snapshot.symptoms:
        return
    from envcheck.rules.told import answer

    yield from answer.judge(id, snapshot, matrix)
