"""How a rule is declared: `@rule("id", ...)` on a generator of findings and unknowns.

A rule is a pure function of a snapshot and the tables. Its docstring is its page in `envcheck
explain`: the first line says what is checked, the sections `Why:` and `Fix:` the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from envcheck.model.base import model
from envcheck.model.finding import Citation, Evidence, Finding, Fix, Severity, Unknown, UnknownKind

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.matrix.schema import Row
    from envcheck.model.snapshot import Snapshot

Answer = Iterator[Finding | Unknown]
Body = Callable[["Snapshot", "Matrix"], Answer]
Applies = Callable[["Snapshot"], bool]


@model
class Rule:
    """A check of the catalogue.

    Attributes:
        ids: finding ids that it may give; the first is its own name.
        component: where its findings are filed.
        body: the generator.
        when: whether the question makes sense on this machine at all. When it does not, the rule is
            silent; when it does and a needed fact is missing, the answer is unknown.
        needs: dotted snapshot paths that must not be None.
        explains: ids of findings that follow from this one and are folded under it.
        told: answers from messages of a text, asked when the facts showed no finding, whether or
            not they were enough to ask at all.
    """

    ids: tuple[str, ...]
    component: str
    body: Body
    when: tuple[Applies, ...] = ()
    needs: tuple[str, ...] = ()
    explains: tuple[str, ...] = ()
    told: Body | None = None

    @property
    def id(self) -> str:
        """Name of the rule."""
        return self.ids[0]

    @property
    def page(self) -> str:
        """Its docstring."""
        return self.body.__doc__ or ""


def rule(
    *ids: str,
    component: str,
    when: Applies | tuple[Applies, ...] = (),
    needs: tuple[str, ...] = (),
    explains: tuple[str, ...] = (),
) -> Callable[[Body], Rule]:
    """Declare a rule; see `Rule` for the arguments."""

    def declare(body: Body) -> Rule:
        conditions = when if isinstance(when, tuple) else (when,)
        return Rule(
            ids=ids, component=component, body=body, when=conditions, needs=needs, explains=explains
        )

    return declare


def finding(
    id: str,
    severity: Severity,
    component: str,
    subject: str,
    title: str,
    *,
    found: str,
    needed: str,
    why: str,
    fix: Iterable[Fix] = (),
    evidence: Iterable[Evidence] = (),
    sources: Iterable[Citation] = (),
) -> Finding:
    """Build a finding; every argument is a field of `Finding`."""
    return Finding(
        id=id,
        severity=severity,
        component=component,
        subject=subject,
        title=title,
        found=found,
        needed=needed,
        why=why,
        fix=tuple(fix),
        evidence=tuple(evidence),
        sources=tuple(dict.fromkeys(sources)),
    )


def unknown(check: str, reason: str, kind: UnknownKind = "missing") -> Unknown:
    """Build the answer of a check that could not tell."""
    return Unknown(check=check, reason=reason, kind=kind)


def cite(matrix: Matrix, *rows: Row | None) -> tuple[Citation, ...]:
    """Citations of the sources that table rows name."""
    found = []
    for row in rows:
        source = matrix.source(row.source) if row is not None else None
        if source is not None:
            found.append(
                Citation(title=source.title, url=source.url or "", retrieved=source.retrieved)
            )
    return tuple(dict.fromkeys(found))
