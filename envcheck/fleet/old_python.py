"""Lets envcheck's probe run in a Python older than envcheck's own, down to 3.8.

Only what is sent to hosts calls this, in a process that does nothing but probe. envcheck is written
for 3.10; what its probe uses of that and 3.8 lacks is a handful of names, added here.
"""

from __future__ import annotations

import builtins
import dataclasses
import functools
import os
import pathlib
import sys
import types
import typing

if typing.TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def adapt() -> None:
    """Add what this interpreter lacks; nothing from 3.10 on."""
    if sys.version_info >= (3, 10):
        return
    _adapt_for_39(builtins, dataclasses, types)
    if sys.version_info < (3, 9):
        _adapt_for_38(functools, pathlib)


def _adapt_for_39(builtins: typing.Any, dataclasses: typing.Any, types: typing.Any) -> None:
    plain_zip, plain_dataclass = builtins.zip, dataclasses.dataclass

    def checked_zip(
        *iterables: Iterable[typing.Any], strict: bool = False
    ) -> Iterator[tuple[typing.Any, ...]]:
        if not strict:
            return plain_zip(*iterables)  # type: ignore[no-any-return]
        lists = [list(each) for each in iterables]
        if len({len(each) for each in lists}) > 1:
            msg = "zip() arguments differ in length"
            raise ValueError(msg)
        return plain_zip(*lists)  # type: ignore[no-any-return]

    def dataclass(
        cls: typing.Any = None, *, slots: bool = False, **settings: typing.Any
    ) -> typing.Any:
        return plain_dataclass(cls, **settings)

    builtins.zip = checked_zip
    dataclasses.dataclass = dataclass
    types.UnionType = type(None)  # nothing is one, since X | Y of types is an error


def _adapt_for_38(functools: typing.Any, pathlib: typing.Any) -> None:
    functools.cache = functools.lru_cache(maxsize=None)
    pathlib.Path.readlink = lambda path: type(path)(os.readlink(path))
