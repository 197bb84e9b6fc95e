"""Lets envcheck's probe run on a host, in Pythons down to 3.8.

Only what is sent to hosts calls this, in a process that does nothing but ask the machine. What the
probe makes of the answers there is thrown away: it is interpreted where it is judged. So a stand-in
has to keep the questions right, and nothing else.
"""

from __future__ import annotations

import builtins
import dataclasses
import functools
import os
import pathlib
import sys
import types
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


def adapt() -> None:
    """Add names that are newer than 3.8."""
    missing: Any = sys.version_info
    if missing < (3, 10):
        _before_310(builtins, dataclasses, types)
    if missing < (3, 9):
        _before_39(functools, pathlib)


def _before_310(builtins: Any, dataclasses: Any, types: Any) -> None:
    plain_zip, plain_dataclass = builtins.zip, dataclasses.dataclass

    def checked_zip(*iterables: Any, strict: bool = False) -> Iterator[tuple[Any, ...]]:
        lists = [list(each) for each in iterables] if strict else iterables
        if strict and len({len(each) for each in lists}) > 1:
            msg = "zip() arguments differ in length"
            raise ValueError(msg)
        pairs: Iterator[tuple[Any, ...]] = plain_zip(*lists)
        return pairs

    def dataclass(cls: Any = None, *, slots: bool = False, **settings: Any) -> Any:
        return plain_dataclass(cls, **settings)

    builtins.zip = checked_zip
    dataclasses.dataclass = dataclass
    # No type is one: there, X | Y is an error.
    types.UnionType = type("UnionType", (), {})


def _before_39(functools: Any, pathlib: Any) -> None:
    functools.cache = functools.lru_cache(maxsize=None)
    pathlib.Path.readlink = lambda path: type(path)(os.readlink(path))
