"""The base of all table rows: where a fact comes from."""

from __future__ import annotations

from typing import ClassVar

from envcheck.model.base import model

METHODS = ("published", "measured", "derived")
CONFIDENCES = ("high", "medium", "low")


@model
class TableSource:
    """Where facts were read.

    Attributes:
        id: the name that rows use in their `source` field.
        title: what was read, in words.
        retrieved: the day of reading, `YYYY-MM-DD`.
        url: where it can be read again; absent when nothing stable exists.
    """

    id: str
    title: str
    retrieved: str
    url: str | None = None


@model
class Row:
    """A fact with its origin; every table row has these fields besides its own.

    Attributes:
        table: file that holds the rows, without suffix.
        section: name of the TOML array within it.
        key: fields that identify a row; rows are sorted by them.
        versions: fields that hold dotted versions, alone or in lists.
        source: id of a `TableSource` of the same table.
        method: `published` (read from a page or file), `measured` (observed by running or opening
            something) or `derived` (from other facts).
        confidence: `high`, `medium` or `low`.
        note: what a reader should know about this row.
    """

    table: ClassVar[str] = ""
    section: ClassVar[str] = ""
    key: ClassVar[tuple[str, ...]] = ()
    versions: ClassVar[tuple[str, ...]] = ()

    source: str
    method: str
    confidence: str
    note: str | None = None
