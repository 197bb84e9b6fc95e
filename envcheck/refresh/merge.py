"""What a table says against what the wheels say, and the table brought up to date."""

from __future__ import annotations

import dataclasses
import difflib
from typing import TYPE_CHECKING, Any

from envcheck.matrix.validate import row_key, sections
from envcheck.refresh import toml_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from envcheck.matrix import schema
    from envcheck.refresh.derived import Derived, DerivedRow, Scope

_ORIGIN = ("source", "method", "confidence", "note")


@dataclasses.dataclass(frozen=True, slots=True)
class Change:
    """A row to be added or replaced.

    Attributes:
        section: where it stands.
        row: as it is to be.
    """

    section: str
    row: dict[str, Any]


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """The difference between a table and the wheels.

    Attributes:
        changes: rows to be added or replaced.
        sources: sources of those rows, with the day they were read.
        contradicted: measured rows that the wheels contradict, in words; they stay as they are.
        vanished: rows that the index no longer has, in words; they stay too.
    """

    changes: tuple[Change, ...]
    sources: tuple[dict[str, Any], ...]
    contradicted: tuple[str, ...]
    vanished: tuple[str, ...]


def compare(
    derived: Derived,
    scope: Scope,
    listed: Callable[[str, dict[str, Any]], bool],
    today: str,
) -> Outcome:
    """Compare field by field what was read with what the table says.

    Args:
        derived: what the wheels say.
        scope: what was asked for, and the table as it is.
        listed: whether the index should list what a row describes.
        today: day that new sources were read.
    """
    kinds = sections(str(scope.table["name"]))
    rows = {
        section: {row_key(kind, row): row for row in scope.rows(section)}
        for section, kind in kinds.items()
        if section != "framework"
    }
    changes: list[Change] = []
    used: dict[str, str] = {}
    contradicted: list[str] = []
    met: set[tuple[str, Any]] = set()
    for each in derived.rows:
        kind = kinds[each.section]
        key = row_key(kind, dict(each.values))
        met.add((each.section, key))
        old = rows[each.section].get(key)
        fields = _differing(old, each)
        if old is not None and not fields:
            continue
        if old is not None and old["method"] == "measured":
            contradicted += [
                f"{name_of(kind, old)}: {field}: the table says {_shown(old.get(field))},"
                f" the wheels say {_shown(each.values[field])}"
                for field in fields
            ]
            continue
        changes.append(Change(each.section, _row(kind, old, each)))
        used[each.source] = each.title
    return Outcome(
        changes=tuple(changes),
        sources=tuple(_sources(scope.table, used, today)),
        contradicted=tuple(contradicted),
        vanished=tuple(_vanished(derived, scope, rows, met, listed)),
    )


def applied(table: Mapping[str, Any], outcome: Outcome, today: str) -> dict[str, Any]:
    """A table with changes made; the same content when there are none.

    Args:
        table: plain content; only its head for one that is new.
        outcome: what to change.
        today: date of the result.
    """
    result = dict(table)
    if not outcome.changes:
        return result
    result["date"] = max(today, str(table.get("date", today)))
    sources = {source["id"]: source for source in table.get("source", ())}
    sources.update({source["id"]: source for source in outcome.sources})
    result["source"] = list(sources.values())
    kinds = sections(str(table["name"]))
    for section in {change.section: None for change in outcome.changes}:
        kind = kinds[section]
        rows = {row_key(kind, row): row for row in table.get(section, ())}
        for change in outcome.changes:
            if change.section == section:
                rows[row_key(kind, change.row)] = change.row
        result[section] = [rows[key] for key in sorted(rows)]
    return result


def difference(before: str, after: str, name: str) -> str:
    """Unified diff of two texts of a table, empty when they are equal."""
    lines = difflib.unified_diff(
        before.splitlines(keepends=True),
        after.splitlines(keepends=True),
        fromfile=f"{name}.toml",
        tofile=f"{name}.toml (refreshed)",
        n=1,
    )
    return "".join(lines)


def name_of(kind: type[schema.Row], row: Mapping[str, Any]) -> str:
    """A row in words: its section and its key."""
    key = " ".join(str(row[field]) for field in kind.key if row.get(field) is not None)
    return f"{kind.section} {key}"


def _differing(old: Mapping[str, Any] | None, new: DerivedRow) -> list[str]:
    if old is None:
        return list(new.values)
    return [field for field, value in new.values.items() if not _same(old.get(field), value)]


def _same(old: Any, new: Any) -> bool:
    """Whether two values say the same; the order within a list says nothing."""
    if isinstance(old, list) and isinstance(new, list):
        return sorted(old) == sorted(new)
    # An absent flag is a false one.
    return bool(old == new or (old in (None, False) and new in (None, False)))


def _row(kind: type[schema.Row], old: Mapping[str, Any] | None, new: DerivedRow) -> dict[str, Any]:
    """The row as it is to be: what was not looked for stays, the origin is the new one."""
    method = "measured" if new.measured else "published"
    values = dict(old or {})
    for field, value in new.values.items():
        if not _same(values.get(field), value):
            values[field] = value
    # A note on where a fact came from does not outlive that origin.
    if old is not None and (old["source"], old["method"]) != (new.source, method):
        values.pop("note", None)
    if old is None and new.note is not None:
        values["note"] = new.note
    # What was not looked for is no surer than it was.
    others = {*(old or {})} - {*new.values, *_ORIGIN}
    confidence = old["confidence"] if old is not None and others else "high"
    values.update(source=new.source, method=method, confidence=confidence)
    order = toml_rows.field_order(kind)
    return {name: values[name] for name in order if values.get(name) is not None}


def _sources(
    table: Mapping[str, Any], used: Mapping[str, str], today: str
) -> Iterable[dict[str, Any]]:
    known = {source["id"]: source for source in table.get("source", ())}
    for id, title in sorted(used.items()):
        source = known.get(id, {"id": id, "title": title})
        yield {**source, "retrieved": max(today, source.get("retrieved", today))}


def _vanished(
    derived: Derived,
    scope: Scope,
    rows: Mapping[str, Mapping[Any, dict[str, Any]]],
    met: set[tuple[str, Any]],
    listed: Callable[[str, dict[str, Any]], bool],
) -> Iterable[str]:
    kinds = sections(str(scope.table["name"]))
    for section, of_section in rows.items():
        for key, row in of_section.items():
            release = str(row[kinds[section].key[0]])
            if (section, key) in met or release in derived.unread or "" in derived.unread:
                continue
            if scope.wants(release) and listed(section, row):
                yield name_of(kinds[section], row)


def _shown(value: Any) -> str:
    if value is None:
        return "nothing"
    return " ".join(value) if isinstance(value, list) else str(value)
