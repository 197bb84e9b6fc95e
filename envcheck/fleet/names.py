"""Names of an inventory as names of files, and back."""

from __future__ import annotations

import hashlib
from pathlib import PurePath
from urllib.parse import quote, unquote

SUFFIX = ".json"
_SAFE = "-_.~[]:@+,= "
_LONGEST = 200
"""Bytes of a file's name without suffix; file systems take 255."""


def file_name(host: str) -> str:
    """The file of a host's report: its name, with what a file name cannot hold as %XX.

    A name that would become too long is cut and told from others by a digest at its end.
    """
    text = quote(host, safe=_SAFE)
    if text[:1] in {".", "~", "-", " "}:
        # Neither hidden, nor expanded by a shell, nor taken for a flag.
        text = f"%{ord(text[0]):02X}{text[1:]}"
    if len(text) > _LONGEST:
        digest = hashlib.sha256(host.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        # Not in the middle of a %XX.
        kept = text[: _LONGEST - 17]
        kept = kept[: kept.rfind("%")] if "%" in kept[-2:] else kept
        text = f"{kept}-{digest}"
    return text + SUFFIX


def host_name(path: str) -> str:
    """The host that a file is the report of."""
    return unquote(PurePath(path).name.removesuffix(SUFFIX))
