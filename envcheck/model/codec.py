"""Models to plain data and back, with errors that name the place."""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


def _cached(function: Callable[[Any], T]) -> Callable[[Any], T]:
    """`functools.cache`, for functions of a class."""
    return functools.cache(function)


class CodecError(ValueError):
    """Plain data does not fit a model; the message starts with its path, `$.host.gpus[0].arch`."""


@_cached
def _fields(cls: Any) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(cls))


def encode(value: Any) -> Any:
    """Turn a model into dicts, lists and scalars; every field is present, `None` included."""
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    if isinstance(value, tuple):
        return [encode(item) for item in value]
    return {name: encode(getattr(value, name)) for name in _fields(type(value))}


@_cached
def _hints(cls: Any) -> dict[str, Any]:
    return typing.get_type_hints(cls)


@_cached
def _required(cls: Any) -> frozenset[str]:
    return frozenset(
        field.name
        for field in dataclasses.fields(cls)
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    )


def decode(cls: type[T], data: Any, path: str = "$") -> T:
    """Build a model from plain data.

    Args:
        cls: the model.
        data: what `encode` gave, or what was parsed from JSON; fields with defaults may be absent.
        path: where `data` stands, for messages.

    Raises:
        CodecError: a field is unknown, absent or of the wrong type.
    """
    if not isinstance(data, dict):
        msg = f"{path}: expected an object, found {type(data).__name__}"
        raise CodecError(msg)
    hints = _hints(cls)
    for name in data:
        if name not in hints:
            msg = f"{path}.{name}: unknown field"
            raise CodecError(msg)
    for name in _required(cls):
        if name not in data:
            msg = f"{path}.{name}: missing"
            raise CodecError(msg)
    return cls(**{name: _value(hints[name], item, f"{path}.{name}") for name, item in data.items()})


def _value(hint: Any, data: Any, path: str) -> Any:
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        if data is None and type(None) in typing.get_args(hint):
            return None
        (inner,) = (arg for arg in typing.get_args(hint) if arg is not type(None))
        return _value(inner, data, path)
    if origin is typing.Literal:
        if data not in typing.get_args(hint):
            msg = f"{path}: {data!r} is not one of {', '.join(map(repr, typing.get_args(hint)))}"
            raise CodecError(msg)
        return data
    if origin is tuple:
        return _tuple(typing.get_args(hint), data, path)
    if dataclasses.is_dataclass(hint):
        return decode(typing.cast("type[Any]", hint), data, path)
    if hint is float and isinstance(data, int) and not isinstance(data, bool):
        return float(data)
    if not isinstance(data, hint) or (isinstance(data, bool) and hint is not bool):
        msg = f"{path}: expected {hint.__name__}, found {type(data).__name__}"
        raise CodecError(msg)
    return data


def _tuple(args: tuple[Any, ...], data: Any, path: str) -> tuple[Any, ...]:
    if not isinstance(data, (list, tuple)):
        msg = f"{path}: expected a list, found {type(data).__name__}"
        raise CodecError(msg)
    if args[-1] is Ellipsis:
        return tuple(_value(args[0], item, f"{path}[{i}]") for i, item in enumerate(data))
    if len(data) != len(args):
        msg = f"{path}: expected {len(args)} items, found {len(data)}"
        raise CodecError(msg)
    return tuple(
        _value(arg, item, f"{path}[{i}]")
        for i, (arg, item) in enumerate(zip(args, data, strict=True))
    )
