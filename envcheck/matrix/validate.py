"""TOML tables to plain data, with every problem of a file found before anything is raised.

Only the form is judged here: fields, types, versions, sources. `check` judges the content.
"""

from __future__ import annotations

import dataclasses
import sys
import typing
from typing import TYPE_CHECKING, Any

from envcheck.errors import TableError
from envcheck.matrix import schema
from envcheck.versions import Release

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path


SCHEMA = 1
LARGEST = 16 << 20
"""Bytes of the largest file that is taken for a table; the largest shipped one has a hundredth."""

_HEAD = ("schema", "name", "date", "source")
_WORDS = {
    str: "text in quotes",
    bool: "true or false",
    int: "a whole number",
    tuple: "a list of texts",
}
_FIELDS: dict[str, dict[str, tuple[type, bool]]] = {}


def parsed(path: Path, name: str) -> dict[str, Any]:
    """Read one TOML table.

    Args:
        path: the file.
        name: the name that the table must carry, `frameworks/torch`.

    Raises:
        TableError: with one line per problem, each naming file, section, row and field.
    """
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    file = f"{name}.toml"
    _refuse_unreadable(path, file)
    try:
        data: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except RecursionError as error:
        msg = f"{file}: not valid TOML: nested too deeply"
        raise TableError(msg) from error
    except (OSError, ValueError) as error:
        msg = f"{file}: not valid TOML: {error}"
        raise TableError(msg) from error
    problems = [f"{file}: {problem}" for problem in form_problems(data, name)]
    if problems:
        raise TableError("\n".join(problems))
    return data


def _refuse_unreadable(path: Path, file: str) -> None:
    """Turn away what would block, or fill the memory, before any of it is read."""
    if not path.is_file():
        msg = f"{file}: is no ordinary file"
        raise TableError(msg)
    size = path.stat().st_size
    if size > LARGEST:
        msg = f"{file}: has {size} bytes, and no table is larger than {LARGEST}"
        raise TableError(msg)


def merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """Lay one table over another: rows of equal key are replaced, others added and sorted in."""
    if not above:
        return below
    if not below:
        return above
    result = {**below, **above}
    sources = {source["id"]: source for source in below.get("source", ())}
    sources.update({source["id"]: source for source in above.get("source", ())})
    result["source"] = list(sources.values())
    result["date"] = max(below["date"], above["date"])
    for section, kind in sections(str(result["name"])).items():
        lower, upper = below.get(section), above.get(section)
        if isinstance(lower, list) and isinstance(upper, list):
            rows = {row_key(kind, row): row for row in lower}
            rows.update({row_key(kind, row): row for row in upper})
            result[section] = [rows[key] for key in sorted(rows)]
    return result


def sections(table: str) -> dict[str, type[schema.Row]]:
    """Row type of each section of a table."""
    found: dict[str, type[schema.Row]] = {
        kind.section: kind for kind in schema.ROWS if kind.table == table
    }
    if table.startswith("frameworks/"):
        found["framework"] = schema.Framework
    return found


def row_key(kind: type[schema.Row], row: dict[str, Any]) -> tuple[tuple[int, Any], ...]:
    """What a row is identified and sorted by: versions by their numbers, all else by its text."""
    return tuple(_order(row.get(field), field in kind.versions) for field in kind.key)


def _order(value: Any, is_version: bool) -> tuple[int, Any]:
    if value is None:
        return (0, "")
    if isinstance(value, int):
        return (1, value)
    if is_version:
        release = Release.maybe(value)
        if release is not None:
            return (2, (release.parts, value))
    return (3, str(value))


def form_problems(data: dict[str, Any], name: str) -> Iterator[str]:
    """Everything that is wrong with the form of a table: section, row and field of each problem.

    Args:
        data: plain content.
        name: the name that the table must carry.
    """
    yield from _head_problems(data, name)
    ids: set[str] = set()
    for number, source in enumerate(_list(data.get("source")), 1):
        if not isinstance(source, dict):
            yield f"[[source]] row {number}: expected a table"
            continue
        place = f"[[source]] row {number}"
        yield from _field_problems(schema.TableSource, source, place)
        id = source.get("id")
        if isinstance(id, str) and id in ids:
            yield f"{place}: id: {id!r} is used twice"
        if isinstance(id, str):
            ids.add(id)
    known = sections(name)
    for section, content in data.items():
        if section in _HEAD:
            continue
        if section not in known:
            if known:
                yield f"[[{section}]]: unknown section; this table has {', '.join(known)}"
            continue
        yield from _section_problems(known[section], section, content, ids)


def _head_problems(data: dict[str, Any], name: str) -> Iterator[str]:
    if data.get("schema") != SCHEMA or isinstance(data["schema"], bool):
        yield f"schema: expected {SCHEMA}, found {data.get('schema')!r}"
    if data.get("name") != name:
        yield f"name: expected {name!r}, found {data.get('name')!r}"
    if not _is_date(data.get("date")):
        yield f"date: expected text such as '2026-01-31', found {data.get('date')!r}"


def _section_problems(
    kind: type[schema.Row], section: str, content: Any, sources: set[Any]
) -> Iterator[str]:
    if section == "framework" and isinstance(content, dict):
        rows: list[Any] = [content]
    elif isinstance(content, list):
        rows = content
    else:
        yield f"[[{section}]]: expected an array of tables"
        return
    for number, row in enumerate(rows, 1):
        place = f"[[{section}]] row {number}"
        if not isinstance(row, dict):
            yield f"{place}: expected a table"
            continue
        yield from _field_problems(kind, row, place)
        yield from _origin_problems(row, place, sources)
        yield from _version_problems(kind, row, place)


def _field_problems(kind: type[Any], row: dict[str, Any], place: str) -> Iterator[str]:
    fields = _fields(kind)
    for field, value in row.items():
        if field not in fields:
            yield f"{place}: {field}: unknown field"
            continue
        expected = fields[field][0]
        if not _fits(value, expected):
            yield f"{place}: {field}: expected {_WORDS[expected]}, found {_shown(value)}"
    for field, (_, required) in fields.items():
        if required and field not in row:
            yield f"{place}: {field}: missing"


def _origin_problems(row: dict[str, Any], place: str, sources: set[Any]) -> Iterator[str]:
    for field, allowed in (("method", schema.METHODS), ("confidence", schema.CONFIDENCES)):
        value = row.get(field)
        if isinstance(value, str) and value not in allowed:
            yield f"{place}: {field}: {value!r} is not one of {', '.join(allowed)}"
    source = row.get("source")
    if isinstance(source, str) and source not in sources:
        yield f"{place}: source: no [[source]] has the id {source!r}"


def _version_problems(kind: type[schema.Row], row: dict[str, Any], place: str) -> Iterator[str]:
    for field in kind.versions:
        for value in _list(row.get(field)):
            if isinstance(value, str) and Release.maybe(value) is None:
                yield f"{place}: {field}: {value!r} is not a version"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _fits(value: Any, expected: type) -> bool:
    if expected is tuple:
        return isinstance(value, list) and all(isinstance(item, str) for item in value)
    return isinstance(value, expected) and (expected is bool or not isinstance(value, bool))


def _fields(kind: type[Any]) -> dict[str, tuple[type, bool]]:
    """Type of each field, and whether a row must have it."""
    if kind.__name__ not in _FIELDS:
        hints = typing.get_type_hints(kind)
        _FIELDS[kind.__name__] = {
            name: (_plain(hints[name]), default is dataclasses.MISSING)
            for name, default in kind._plan
        }
    return _FIELDS[kind.__name__]


def _plain(hint: Any) -> type:
    inner = [arg for arg in typing.get_args(hint) if arg not in (type(None), Ellipsis)]
    if typing.get_origin(hint) is tuple:
        return tuple
    if inner:
        return _plain(inner[0])
    return typing.cast("type", hint)


def _list(value: Any) -> Iterable[Any]:
    if value is None:
        return ()
    return value if isinstance(value, list) else (value,)


def _is_date(value: Any) -> bool:
    from datetime import date

    try:
        date.fromisoformat(value)
    except (TypeError, ValueError):
        return False
    return True
