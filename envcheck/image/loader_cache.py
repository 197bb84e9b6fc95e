"""The dynamic loader's cache of another system, in the words of `ldconfig -p`."""

from __future__ import annotations

import struct

MAGIC = b"glibc-ld.so.cache1.1"
"""Start of the format of glibc 2.2 and later; older entries may stand before it."""

_HEAD = struct.Struct("<20sIIB3xI12x")
_ENTRY = struct.Struct("<iIIIQ")
_ARCHITECTURES = {
    0x0300: "x86-64",
    0x0A00: "AArch64",
}
"""The part of an entry's flags that names the processor."""
_MOST = 100_000


def listing(data: bytes) -> str:
    """What `ldconfig -p` prints of a cache; empty for what is none.

    Entries with hardware capabilities are not told apart: the cache has them in the order in which
    they are tried.
    """
    start = data.find(MAGIC)
    if start < 0 or len(data) < start + _HEAD.size:
        return ""
    _, count, _, _, _ = _HEAD.unpack_from(data, start)
    lines = []
    for number in range(min(count, _MOST)):
        at = start + _HEAD.size + number * _ENTRY.size
        if at + _ENTRY.size > len(data):
            break
        flags, key, value, _, _ = _ENTRY.unpack_from(data, at)
        architecture = _ARCHITECTURES.get(flags & 0xFF00)
        if architecture is not None:
            name, path = _text(data, start + key), _text(data, start + value)
            lines.append(f"\t{name} (libc6,{architecture}) => {path}")
    return "".join(f"{line}\n" for line in lines)


def _text(data: bytes, at: int) -> str:
    return data[at : data.find(b"\0", at)].decode("utf-8", "replace")
