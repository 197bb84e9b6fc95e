"""Tables as TOML in the project's own form: a row a line, sorted, every value in quotes.

Only what tables hold can be written: texts, whole numbers, true and false, lists of texts.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Any

from envcheck.matrix.validate import row_key, sections

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from envcheck.matrix import schema

_HEAD = ("schema", "name", "date")
_LAST = ("source", "method", "confidence", "note")
"""Where a row comes from stands at its end."""
_ESCAPES = {
    "\b": "\\b",
    "\t": "\\t",
    "\n": "\\n",
    "\f": "\\f",
    "\r": "\\r",
    '"': '\\"',
    "\\": "\\\\",
}


def dump(table: Mapping[str, Any], comment: str = "") -> str:
    """A whole table.

    Args:
        table: plain content, as parsed.
        comment: lines that stand above everything, as `head_comment` gives them.
    """
    blocks = [comment.rstrip("\n")] if comment else []
    blocks.append("\n".join(f"{name} = {value(table[name])}" for name in _HEAD if name in table))
    sources = sorted(table.get("source", ()), key=lambda each: str(each["id"]))
    fields = ("id", "title", "url", "retrieved")
    blocks.append(_array("source", (_inline(each, fields) for each in sources)))
    for section, kind in _order(table).items():
        content = table[section]
        names = field_order(kind)
        if isinstance(content, dict):
            blocks.append(f"{section} = {_inline(content, names)}")
        else:
            rows = sorted(content, key=functools.partial(row_key, kind))
            blocks.append(_array(section, (_inline(row, names) for row in rows)))
    return "\n\n".join(blocks) + "\n"


def head_comment(text: str) -> str:
    """The comment lines that a table begins with."""
    lines = []
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        lines.append(line)
    return "\n".join(lines)


def inner_comments(text: str) -> list[int]:
    """Numbers of the comment lines that are not at the head, which `dump` would lose."""
    head = len(head_comment(text).splitlines())
    return [
        number
        for number, line in enumerate(text.splitlines(), 1)
        if number > head and line.lstrip().startswith("#")
    ]


def field_order(kind: type[schema.Row]) -> tuple[str, ...]:
    """Fields of a row as they are written: its own, then where it comes from."""
    names = [field.name for field in dataclasses.fields(kind)]
    return (*(name for name in names if name not in _LAST), *_LAST)


def value(content: Any) -> str:
    """A value.

    Raises:
        TypeError: tables hold no such thing.
    """
    if isinstance(content, bool):
        return "true" if content else "false"
    if isinstance(content, int):
        return str(content)
    if isinstance(content, str):
        return f'"{"".join(_character(each) for each in content)}"'
    if isinstance(content, (list, tuple)):
        return f"[{', '.join(value(each) for each in content)}]"
    msg = f"a table holds no {type(content).__name__}"
    raise TypeError(msg)


def _order(table: Mapping[str, Any]) -> dict[str, type[schema.Row]]:
    """Sections that a table has, the head of a framework first."""
    known = sections(str(table["name"]))
    if "framework" in known:
        known = {"framework": known["framework"], **known}
    return {section: kind for section, kind in known.items() if section in table}


def _array(name: str, rows: Iterable[str]) -> str:
    return "\n".join((f"{name} = [", *(f"  {row}," for row in rows), "]"))


def _inline(row: Mapping[str, Any], names: Iterable[str]) -> str:
    shown = (f"{name} = {value(row[name])}" for name in names if row.get(name) is not None)
    return f"{{ {', '.join(shown)} }}"


def _character(each: str) -> str:
    if each in _ESCAPES:
        return _ESCAPES[each]
    return f"\\u{ord(each):04x}" if ord(each) < 32 or ord(each) == 127 else each
