"""Writes the snapshot's part of the report's JSON Schema from the models.

    python tools/snapshot_schema.py            print a diff of what would change
    python tools/snapshot_schema.py --write    change the file
    python tools/snapshot_schema.py --check    exit 1 when the file is not what the models say

The report's own part of the file is written by hand and left as it is.
"""

from __future__ import annotations

import argparse
import dataclasses
import difflib
import json
import sys
import types
import typing
from pathlib import Path
from typing import Any

import envcheck
from envcheck.model.snapshot import Snapshot

SCHEMA = Path(envcheck.__file__).parent / "schema" / "report-1.schema.json"
_SCALARS = {str: "string", int: "integer", float: "number", bool: "boolean"}


def definitions(root: type) -> dict[str, Any]:
    """JSON Schema of a model and of every model that it holds, by class name."""
    found: dict[str, Any] = {}
    _add(root, found)
    return dict(sorted(found.items()))


def _add(cls: type, found: dict[str, Any]) -> None:
    if cls.__name__ in found:
        return
    found[cls.__name__] = {}
    hints = typing.get_type_hints(cls)
    names = [field.name for field in dataclasses.fields(cls)]
    found[cls.__name__] = {
        "type": "object",
        "description": (cls.__doc__ or "").strip().partition("\n")[0],
        # The codec writes every field, those that are not known as null.
        "required": names,
        "properties": {name: _schema(hints[name], found) for name in names},
    }


def _schema(hint: Any, found: dict[str, Any]) -> dict[str, Any]:
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        (inner,) = (arg for arg in args if arg is not type(None))
        return _nullable(_schema(inner, found))
    if origin is typing.Literal:
        return {"type": "string", "enum": list(args)}
    if origin is tuple:
        if args[-1] is not Ellipsis:
            msg = f"tuples of fixed length have no schema here: {hint}"
            raise TypeError(msg)
        return {"type": "array", "items": _schema(args[0], found)}
    if dataclasses.is_dataclass(hint):
        _add(typing.cast("type", hint), found)
        return {"$ref": f"#/$defs/{typing.cast('type', hint).__name__}"}
    return {"type": _SCALARS[hint]}


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in schema:
        return {"anyOf": [schema, {"type": "null"}]}
    nullable = {**schema, "type": [schema["type"], "null"]}
    if "enum" in schema:
        nullable["enum"] = [*schema["enum"], None]
    return nullable


def updated(text: str) -> str:
    """The schema file's text with the definitions that `x-generated` lists made anew."""
    schema = json.loads(text)
    made = definitions(Snapshot)
    kept = {
        name: each for name, each in schema["$defs"].items() if name not in schema["x-generated"]
    }
    schema["x-generated"] = list(made)
    schema["$defs"] = {**kept, **made}
    return json.dumps(schema, indent=2) + "\n"


def main() -> int:
    """Run the script."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="change the file")
    parser.add_argument("--check", action="store_true", help="exit 1 when it would change")
    args = parser.parse_args()
    old = SCHEMA.read_text(encoding="utf-8")
    new = updated(old)
    if args.write:
        SCHEMA.write_text(new, encoding="utf-8")
        return 0
    sys.stdout.writelines(
        difflib.unified_diff(
            old.splitlines(keepends=True), new.splitlines(keepends=True), "old", "new"
        )
    )
    return int(args.check and old != new)


if __name__ == "__main__":
    sys.exit(main())
