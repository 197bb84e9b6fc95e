"""Comparisons that the questions share."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from envcheck.matrix import schema
from envcheck.versions import Release

if TYPE_CHECKING:
    from collections.abc import Iterable

R = TypeVar("R", bound=schema.Row)


def first(rows: Iterable[R]) -> R | None:
    """The first of some rows, None when there is none."""
    return next(iter(rows), None)


def last(rows: Iterable[R]) -> R | None:
    """The last of some rows, None when there is none."""
    found = None
    for found in rows:  # noqa: B007
        pass
    return found


def series(text: str) -> Release | None:
    """Major and minor of a version."""
    release = Release.maybe(text)
    return None if release is None else Release.parse(release.series)


def same_series(known: str, asked: str) -> bool:
    """Whether two versions share major and minor."""
    release = Release.maybe(asked)
    return release is not None and Release.parse(known).series == release.series


def starts(known: str, asked: str) -> bool:
    """Whether a known version begins like the one asked for."""
    release = Release.maybe(asked)
    return release is not None and Release.parse(known).starts_like(release)


def newer(version: str, newest: str) -> bool:
    """Whether a version is above the newest known one."""
    asked, known = Release.maybe(version), Release.maybe(newest)
    return asked is not None and known is not None and asked > known


def public(version: str) -> str:
    """A version without its local part."""
    return version.partition("+")[0].strip()
