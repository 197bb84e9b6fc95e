"""Evaluates the environment markers of requirements, `platform_system == "Linux"`.

Small on purpose: the package `packaging` takes longer to import than all rules take to run, and is
not there on hosts that only answer questions. What is not understood is undecided, so that it never
becomes an alarm.
"""

from __future__ import annotations

import functools
import operator
import re
from typing import TYPE_CHECKING

from envcheck.versions import Release

if TYPE_CHECKING:
    from collections.abc import Mapping

_TOKEN = re.compile(
    r"\s*(?:(?P<op>===|==|~=|!=|<=|>=|<|>|\(|\)|\bnot\s+in\b|\bin\b|\band\b|\bor\b)"
    r"|(?P<quoted>'[^']*'|\"[^\"]*\")|(?P<name>[a-z_.]+))"
)
_ORDER = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_DOTTED = frozenset({"python_version", "python_full_version", "platform_release"})


def within(have: Release, sign: str, text: str) -> bool | None:
    """Whether a version meets one bound, such as `>=` and `2.6`; None when that cannot be told."""
    wanted = Release.maybe(text)
    if wanted is None:
        return None
    if sign in {"==", "===", "!="}:
        same = (
            have.parts[: len(wanted.parts)] == wanted.parts
            if text.endswith(".*")
            else have == wanted
        )
        return same if sign != "!=" else not same
    if sign == "~=":
        prefix = wanted.parts[:-1]
        return have >= wanted and have.parts[: len(prefix)] == prefix
    compare = _ORDER.get(sign)
    return bool(compare(have, wanted)) if compare else None


class _Undecided(Exception):
    """A marker that this reader does not understand."""


@functools.lru_cache(maxsize=4096)
def holds(marker: str, known: tuple[tuple[str, str], ...], extra: str) -> bool | None:
    """Evaluate a marker.

    Args:
        marker: the text after the semicolon of a requirement.
        known: names and values of marker variables, those that are not known left out.
        extra: the extra that is asked for, empty for none.

    Returns:
        None when it cannot be decided. Answers are kept: packages share most of their markers.
    """
    facts = {**dict(known), "extra": extra}
    tokens: list[str] = []
    at = 0
    text = marker.strip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            return None
        tokens.append(" ".join(match.group().split()) if match["op"] else match.group().strip())
        at = match.end()
    try:
        value = _either(tokens, facts)
    except (_Undecided, IndexError):
        return None
    return value if not tokens else None


def _either(tokens: list[str], facts: Mapping[str, str]) -> bool | None:
    values = [_both(tokens, facts)]
    while tokens and tokens[0] == "or":
        tokens.pop(0)
        values.append(_both(tokens, facts))
    return True if True in values else None if None in values else False


def _both(tokens: list[str], facts: Mapping[str, str]) -> bool | None:
    values = [_one(tokens, facts)]
    while tokens and tokens[0] == "and":
        tokens.pop(0)
        values.append(_one(tokens, facts))
    return False if False in values else None if None in values else True


def _one(tokens: list[str], facts: Mapping[str, str]) -> bool | None:
    if tokens[0] == "(":
        tokens.pop(0)
        value = _either(tokens, facts)
        if tokens.pop(0) != ")":
            raise _Undecided
        return value
    left, sign, right = tokens.pop(0), tokens.pop(0), tokens.pop(0)
    one, other = _value(left, facts), _value(right, facts)
    if one is None or other is None:
        return None
    if left in _DOTTED or right in _DOTTED:
        have, wanted = Release.maybe(one), Release.maybe(other)
        if have is not None and wanted is not None:
            return within(have, sign, other)
    answers = {
        "==": one == other,
        "!=": one != other,
        "in": one in other,
        "not in": one not in other,
    }
    if sign not in answers:
        raise _Undecided
    return answers[sign]


def _value(token: str, facts: Mapping[str, str]) -> str | None:
    return token[1:-1] if token[:1] in {"'", '"'} else facts.get(token)
