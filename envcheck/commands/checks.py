"""Rules in the words that reports and pages use of them."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from envcheck.report.view import Check

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from envcheck.rules.base import Rule


def checks(rules: Iterable[Rule], chosen: Collection[str] | None = None) -> tuple[Check, ...]:
    """One check per finding id, in catalogue order; `chosen` as for the engine."""
    return tuple(
        Check(
            id=id,
            component=rule.component,
            title=page_text(rule.page).partition("\n")[0],
            page=page_text(rule.page),
            rule=rule.id,
        )
        for rule in rules
        for id in rule.ids
        if chosen is None or id in chosen
    )


@functools.lru_cache(maxsize=512)
def page_text(docstring: str) -> str:
    """A rule's docstring without the indentation of the source."""
    import textwrap

    first, _, rest = docstring.strip().partition("\n")
    return f"{first}\n{textwrap.dedent(rest)}".rstrip() if rest else first
