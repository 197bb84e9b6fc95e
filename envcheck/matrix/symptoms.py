"""Row type of the table of messages, and what makes a pattern safe to run on any text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from envcheck.matrix.row import Row
from envcheck.model.base import model

if TYPE_CHECKING:
    from collections.abc import Iterator

STRENGTHS = ("cause", "hint", "context", "program", "noise")
SEVERITIES = ("error", "warning", "info")
NOTHING = "none"
"""What `finding` says where a message is no fault of the environment."""

WIDEST = 400
"""Characters that one bounded repetition may span."""


@model
class SymptomRow(Row):
    """A message that a driver, a library or a framework is known to write.

    Attributes:
        name: kebab-case, unique; `Symptom.name`.
        pattern: a regular expression that is searched in one line, or in up to three that belong
            together. It minds case unless it begins with `(?i)`; its named groups are captured.
        needles: phrases in lower case, as words with a blank between them; one of them stands in
            every line that can match, whatever punctuation separates its words there.
        finding: id of the catalogue, or `none`.
        severity: `error`, `warning` or `info` of the finding.
        strength: `cause` when the message settles the matter by itself; `hint` when facts or other
            messages have to; `context` for a circumstance that helps to weigh hints; `program` for
            a fault of the program; `noise` for what healthy machines print.
        example: a line that it matches.
    """

    table = "symptoms"
    section = "symptom"
    key = ("name",)

    name: str
    pattern: str
    needles: tuple[str, ...]
    finding: str
    severity: str
    strength: str
    example: str


def words(text: str) -> list[str]:
    """The words of a text, runs of ASCII letters and digits, in lower case and in order."""
    return re.findall(r"[a-z0-9]+", text.lower())


def contains(text: str, needle: str) -> bool:
    """Whether the words of a needle stand in a text, one after the other and unbroken."""
    return f" {' '.join(words(needle))} " in f" {' '.join(words(text))} "


def row_problems(row: dict[str, Any]) -> Iterator[str]:
    """What is wrong with the content of one row, as `field: what`.

    Args:
        row: plain content whose fields have the right types.
    """
    for field, allowed in (("strength", STRENGTHS), ("severity", SEVERITIES)):
        if row[field] not in allowed:
            yield f"{field}: {row[field]!r} is not one of {', '.join(allowed)}"
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", row["name"]):
        yield f"name: {row['name']!r} is not in kebab case"
    if (row["finding"] == NOTHING) != (row["strength"] in {"context", "program", "noise"}):
        yield f"finding: {row['finding']!r} does not go with strength {row['strength']!r}"
    for needle in row["needles"]:
        if not needle or needle != " ".join(words(needle)):
            yield f"needles: {needle!r} is not words in lower case with a blank between them"
    if not row["needles"]:
        yield "needles: there is none"
    elif not any(contains(row["example"], needle) for needle in row["needles"]):
        yield "needles: none stands in the example"
    problem = pattern_problem(row["pattern"])
    if problem is not None:
        yield f"pattern: {problem}"
    elif re.search(row["pattern"], row["example"]) is None:
        yield "example: the pattern does not match it"


def pattern_problem(pattern: str) -> str | None:
    """Why a pattern must not be run on foreign text, None when it may.

    A repetition without bound may hold one set of characters only, and not the dot; one with a
    bound spans at most `WIDEST` characters. Both keep the time per line bounded.
    """
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        return f"not a regular expression: {error}"
    try:
        from re import _parser as parser  # type: ignore[attr-defined]
    except ImportError:  # Python 3.10
        import sre_parse as parser
    return _walk(parser.parse(pattern), inside=False)


def _walk(tokens: Any, *, inside: bool) -> str | None:
    for operation, argument in tokens:
        name = str(operation)
        if name in {"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"}:
            _low, high, body = argument
            unbounded = int(high) > WIDEST
            if unbounded and (inside or _repeats(body)):
                return "a repetition without bound inside another, or around one"
            if unbounded and any(str(each[0]) == "ANY" for each in body):
                return f"the dot is repeated more than {WIDEST} times"
            problem = _walk(body, inside=inside or high > 1)
        elif name == "BRANCH":
            problem = next((p for each in argument[1] if (p := _walk(each, inside=inside))), None)
        elif name in {"SUBPATTERN", "ATOMIC_GROUP", "ASSERT", "ASSERT_NOT"}:
            body = argument if name == "ATOMIC_GROUP" else argument[-1]
            problem = _walk(body, inside=inside)
        else:
            problem = None
        if problem is not None:
            return problem
    return None


def _repeats(tokens: Any) -> bool:
    for operation, argument in tokens:
        name = str(operation)
        if name in {"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"}:
            return True
        if name == "SUBPATTERN" and _repeats(argument[-1]):
            return True
        if name == "BRANCH" and any(map(_repeats, argument[1])):
            return True
    return False
