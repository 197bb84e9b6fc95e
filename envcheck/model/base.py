"""The one decorator of all models: immutable records with named fields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

T = TypeVar("T")

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_kwargs: object):  # noqa: ANN201
        """Stand-in at run time, so that no package is imported for the type checker's sake."""
        return lambda decorator: decorator


@dataclass_transform(frozen_default=True, kw_only_default=True)
def model(cls: type[T]) -> type[T]:
    """Make a class a frozen, slotted dataclass that is built by keyword only."""
    return dataclass(frozen=True, slots=True, kw_only=True)(cls)
