"""`envcheck tables`: the compatibility tables listed, shown, checked and brought up to date."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from envcheck.commands.folders import overlay
from envcheck.commands.output import emit, width
from envcheck.errors import TableError, UsageError
from envcheck.matrix.loader import Matrix
from envcheck.matrix.validate import sections
from envcheck.paths import data_dir
from envcheck.spelling import suggestion

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterable, Mapping, Sequence

    from envcheck.matrix import schema

_MAIN = ("build", "release")
"""Sections that are what their table is about; of another table it is the first one."""
_ORIGIN = ("source", "method", "confidence", "note")


def run(args: Namespace) -> int:
    """Run the command."""
    match args.action:
        case "list":
            return _list(args)
        case "show":
            return _show(args)
        case "check":
            return _check(args)
        case _:
            from envcheck.commands import tables_refresh

            return tables_refresh.run(args)


def table_name(word: str, matrix: Matrix) -> str:
    """The table that a word means: its name, or the last part of it.

    Raises:
        UsageError: there is none; the message says what was probably meant.
    """
    known = {name.rpartition("/")[2]: name for name in matrix.names()}
    if word in known.values():
        return word
    if word not in known:
        hint = suggestion(word, known) or "see 'envcheck tables list'"
        msg = f"no table '{word}': {hint}"
        raise UsageError(msg)
    return known[word]


def short(name: str) -> str:
    """The name by which people ask for a table: `torch` of `frameworks/torch`."""
    return name.rpartition("/")[2]


# -- list ------------------------------------------------------------------------------------------


def _list(args: Namespace) -> int:
    matrix = Matrix.shipped(overlay(args.tables))
    matrix.load_all()
    found = [_summary(matrix, name) for name in matrix.names()]
    if args.json:
        emit(_json({"tables": found}), None)
        return 0
    heads = ("table", "rows", "newest", "date")
    rows = [
        (str(each["name"]), str(each["rows"]), each["newest"] or "", each["date"] or "")
        for each in found
    ]
    emit("\n".join(_columns(heads, rows, right=(1,))) + "\n", None)
    return 0


def _summary(matrix: Matrix, name: str) -> dict[str, Any]:
    parts = _parts(matrix.table(name))
    counts = {section: len(rows) for section, rows in parts.items() if section != "framework"}
    return {
        "name": short(name),
        "rows": sum(counts.values()),
        "newest": _newest(name, parts),
        "date": matrix.date(name),
        "sections": counts,
    }


def _newest(name: str, parts: Mapping[str, list[dict[str, Any]]]) -> str | None:
    """The highest version that the table is keyed by; None when it is keyed by something else."""
    from envcheck.matrix.validate import row_key

    kinds = sections(name)
    main = _main(parts)
    if main not in kinds or kinds[main].key[0] not in kinds[main].versions:
        return None
    field = kinds[main].key[0]
    found = [
        (row_key(kinds[section], row)[0], str(row[field]))
        for section, rows in parts.items()
        if section in kinds and kinds[section].key[0] == field
        for row in rows
    ]
    return max(found)[1] if found else None


# -- show ------------------------------------------------------------------------------------------


def _show(args: Namespace) -> int:
    matrix = Matrix.shipped(overlay(args.tables))
    name = table_name(args.name, matrix)
    emit(_document(matrix, name) if args.json else _text(matrix, name), None)
    return 0


def _document(matrix: Matrix, name: str) -> str:
    table = matrix.table(name)
    sources = {source["id"]: source for source in table.get("source", ())}
    kinds = sections(name)
    parts = {
        section: [_full(kinds.get(section), row, sources) for row in rows]
        for section, rows in _parts(table).items()
    }
    main = _main(parts)
    return _json(
        {
            "name": short(name),
            "date": matrix.date(name),
            "section": main,
            "rows": parts.pop(main, []),
            "sections": parts,
        }
    )


def _full(
    kind: type[schema.Row] | None, row: Mapping[str, Any], sources: Mapping[str, dict[str, Any]]
) -> dict[str, Any]:
    """A row with all fields of its type, None where nothing is known, and its sources in full."""
    values = dict(row)
    if kind is not None:
        import dataclasses

        defaults = {
            field.name: None if field.default is dataclasses.MISSING else field.default
            for field in dataclasses.fields(kind)
        }
        own = {name: default for name, default in defaults.items() if name not in _ORIGIN}
        values = {**own, **dict.fromkeys(_ORIGIN), **row}
    source = sources.get(str(values.pop("source", None)))
    fields = ("id", "title", "url", "retrieved")
    found = [] if source is None else [{name: source.get(name) for name in fields}]
    return {**values, "sources": found}


def _text(matrix: Matrix, name: str) -> str:
    from envcheck.report.plain import wrap

    table = matrix.table(name)
    kinds = sections(name)
    lines = [f"{short(name)}, {matrix.date(name)}"]
    for section, rows in _parts(table).items():
        lines += ["", f"{section} ({len(rows)})"]
        lines += _columns(*_cells(kinds.get(section), rows))
    lines += ["", "sources"]
    for source in table.get("source", ()):
        words = [source["title"], source.get("url"), f"({source['retrieved']})"]
        text = f"{source['id']}: {' '.join(word for word in words if word)}"
        lines += wrap(text, width(), first=2, hanging=4)
    return "\n".join(lines) + "\n"


def _cells(
    kind: type[schema.Row] | None, rows: list[dict[str, Any]]
) -> tuple[list[str], list[list[str]]]:
    """Heads and cells of the fields that any row has."""
    if kind is None:
        names = list(dict.fromkeys(name for row in rows for name in row))
    else:
        import dataclasses

        fields = [field.name for field in dataclasses.fields(kind)]
        names = [name for name in fields if name not in _ORIGIN] + list(_ORIGIN)
    heads = [name for name in names if any(row.get(name) is not None for row in rows)]
    return heads, [[_cell(row.get(name)) for name in heads] for row in rows]


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ",".join(str(each) for each in value) or "none"
    return str(value)


# -- check -----------------------------------------------------------------------------------------


def _check(args: Namespace) -> int:
    from envcheck.matrix import check

    folder = overlay(args.dir, "--dir")
    if folder is not None and args.tables is not None:
        msg = "--dir and --tables contradict each other"
        raise UsageError(msg)
    whole: Matrix | None = None
    if folder is None:
        mine = overlay(args.tables)
        matrix = Matrix.shipped() if mine is None else Matrix.from_dir(mine)
        whole = None if mine is None else Matrix.shipped(mine)
    else:
        matrix = Matrix.from_dir(folder)
        # Part of the tables only refers to rows of the others, which are the shipped ones.
        if set(matrix.names()) < set(Matrix.shipped().names()):
            whole = Matrix.shipped(folder)
    if not matrix.names():
        msg = f"{folder or args.tables or data_dir('matrices')}: holds no table"
        raise TableError(msg)
    found = check.everything(matrix, whole=whole)
    if found:
        raise TableError("\n".join(found))
    rows = sum(len(part) for name in matrix.names() for part in _parts(matrix.table(name)).values())
    emit(f"{len(matrix.names())} tables, {rows} rows: nothing is wrong with them\n", None)
    return 0


# -- shared ----------------------------------------------------------------------------------------


def _parts(table: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Rows of each section in the order of the row types, the head of a framework last."""
    known = sections(str(table.get("name")))
    names = [*known, *(name for name in table if name not in known and name != "source")]
    found = {}
    for name in names:
        content = table.get(name)
        if isinstance(content, list):
            found[name] = [row for row in content if isinstance(row, dict)]
        elif isinstance(content, dict):
            found[name] = [content]
    return found


def _main(parts: Iterable[str]) -> str:
    names = list(parts)
    return next((name for name in _MAIN if name in names), names[0] if names else "")


def _columns(
    heads: Sequence[str], rows: Sequence[Sequence[str]], right: tuple[int, ...] = ()
) -> list[str]:
    """Lines of cells below each other; a line is as long as it needs to be."""
    from envcheck.report.foreign import clean

    table = [[clean(cell) for cell in row] for row in (heads, *rows)]
    widths = [max(len(row[place]) for row in table) for place in range(len(heads))]
    return [
        "  ".join(
            f"{cell:>{space}}" if place in right else f"{cell:<{space}}"
            for place, (cell, space) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in table
    ]


def _json(data: dict[str, Any]) -> str:
    from envcheck.model.finding import SCHEMA_VERSION
    from envcheck.report.json_report import dump

    return dump({"schema_version": SCHEMA_VERSION, **data})
