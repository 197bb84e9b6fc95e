"""The one decorator of all records, models and table rows alike: immutable, with named fields.

The methods that `dataclass(frozen=True)` generates cost about a millisecond per class at import,
and there are some seventy classes, so they share one constructor, one comparison and one
representation instead. They are still dataclasses: `dataclasses.fields` and `dataclasses.replace`
work on them.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, TypeVar

T = TypeVar("T")

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_kwargs: object):  # noqa: ANN201
        """Stand-in at run time, so that no package is imported for the type checker's sake."""
        return lambda decorator: decorator


@dataclass_transform(frozen_default=True, kw_only_default=True)
def model(cls: type[T]) -> type[T]:
    """Make a class an immutable, slotted record that is built by keyword only.

    The constructor takes one value per field and raises TypeError when a field without a default is
    absent or a name is no field.
    """
    for method in (_init, _eq, _hash, _repr, _setattr, _delattr):
        setattr(cls, f"_{method.__name__}__", method)
    made = dataclasses.dataclass(slots=True, init=False, repr=False, eq=False)(cls)
    # Name and default of each field; `dataclasses.MISSING` marks a required one.
    made._plan = tuple(  # type: ignore[attr-defined]
        (field.name, field.default)
        for field in dataclasses.fields(made)  # type: ignore[arg-type]
    )
    return made


def _init(self: Any, /, **values: Any) -> None:
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


def _values(record: Any) -> tuple[Any, ...]:
    return tuple(getattr(record, name) for name, _ in record._plan)


def _eq(self: Any, other: object) -> object:
    if type(other) is not type(self):
        return NotImplemented
    return _values(self) == _values(other)


def _hash(self: Any) -> int:
    return hash((type(self), _values(self)))


def _repr(self: Any) -> str:
    shown = (
        f"{name}={getattr(self, name)!r}"
        for name, default in self._plan
        if getattr(self, name) != default
    )
    return f"{type(self).__name__}({', '.join(shown)})"


def _setattr(self: Any, name: str, _value: object) -> None:
    msg = f"{type(self).__name__} is immutable: cannot set {name}"
    raise dataclasses.FrozenInstanceError(msg)


def _delattr(self: Any, name: str) -> None:
    msg = f"{type(self).__name__} is immutable: cannot delete {name}"
    raise dataclasses.FrozenInstanceError(msg)
