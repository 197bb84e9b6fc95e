"""The base of all table rows: where a fact comes from, and a cheap immutable record type.

The generated methods of a frozen dataclass cost about a millisecond per class at import. There are
some thirty row types, so they share one constructor, one comparison and one representation instead;
they are still dataclasses, so that `dataclasses.fields` and `dataclasses.replace` work on them.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

T = TypeVar("T")

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_kwargs: object):  # noqa: ANN201
        """Stand-in at run time, so that no package is imported for the type checker's sake."""
        return lambda decorator: decorator


METHODS = ("published", "measured", "derived")
CONFIDENCES = ("high", "medium", "low")


@dataclass_transform(frozen_default=True, kw_only_default=True)
def row(cls: type[T]) -> type[T]:
    """Make a class an immutable, slotted record that is built by keyword only."""
    made = dataclasses.dataclass(slots=True, init=False, repr=False, eq=False)(cls)
    made._plan = tuple(  # type: ignore[attr-defined]
        (field.name, field.default)
        for field in dataclasses.fields(made)  # type: ignore[arg-type]
    )
    return made


class Record:
    """What every record shares: construction, comparison, immutability.

    Attributes:
        _plan: name and default of each field; `dataclasses.MISSING` marks a required one.
    """

    __slots__ = ()

    _plan: ClassVar[tuple[tuple[str, Any], ...]] = ()

    def __init__(self, **values: Any) -> None:
        """Take one value per field; fields left out get their default.

        Raises:
            TypeError: a required field is absent, or a name is no field.
        """
        store = object.__setattr__
        for name, default in self._plan:
            if name in values:
                store(self, name, values.pop(name))
            elif default is not dataclasses.MISSING:
                store(self, name, default)
            else:
                msg = f"{type(self).__name__} needs {name}"
                raise TypeError(msg)
        if values:
            msg = f"{type(self).__name__} has no field {', '.join(values)}"
            raise TypeError(msg)

    def _values(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name, _ in self._plan)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self._values() == other._values()

    def __hash__(self) -> int:
        return hash((type(self), self._values()))

    def __repr__(self) -> str:
        shown = (
            f"{name}={getattr(self, name)!r}"
            for name, default in self._plan
            if getattr(self, name) != default
        )
        return f"{type(self).__name__}({', '.join(shown)})"

    def __setattr__(self, name: str, value: object) -> None:
        msg = f"{type(self).__name__} is immutable: cannot set {name}"
        raise dataclasses.FrozenInstanceError(msg)

    def __delattr__(self, name: str) -> None:
        msg = f"{type(self).__name__} is immutable: cannot delete {name}"
        raise dataclasses.FrozenInstanceError(msg)


@row
class TableSource(Record):
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


@row
class Row(Record):
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
