"""Reads the dynamic section of shared objects. A part of `inspect_env`, in the same old syntax."""

import struct


def elf(path):
    """SONAME, NEEDED, DT_RPATH and DT_RUNPATH of a 64-bit shared object; None when it is none.

    Only headers and the dynamic section are read. There is a library for this, but the target
    environment need not have it.
    """
    try:
        with open(path, "rb") as stream:
            return dynamic_section(stream)
    except (OSError, struct.error, ValueError, OverflowError):
        return None


def dynamic_section(stream):
    """The part of `elf` that reads; raises on anything that is not a sane ELF file."""
    head = stream.read(64)
    if head[:4] != b"\x7fELF" or head[4:5] != b"\x02":
        return None
    order = "<" if head[5:6] == b"\x01" else ">"
    program_at = struct.unpack_from(order + "Q", head, 32)[0]
    entry_size, entries = struct.unpack_from(order + "HH", head, 54)
    if entry_size < 56 or entries > 512:
        return None
    stream.seek(program_at)
    table = stream.read(entry_size * entries)
    loads, dynamic = [], None
    for at in range(0, len(table) - 55, entry_size):
        kind = struct.unpack_from(order + "I", table, at)[0]
        offset, address, _, size = struct.unpack_from(order + "QQQQ", table, at + 8)
        if kind == 1:
            loads.append((address, offset, size))
        elif kind == 2:
            dynamic = (offset, size)
    if dynamic is None or dynamic[1] > 1000000:
        return None
    stream.seek(dynamic[0])
    data = stream.read(dynamic[1])
    tags = []
    for at in range(0, len(data) - 15, 16):
        tag, value = struct.unpack_from(order + "qQ", data, at)
        if tag == 0:
            break
        tags.append((tag, value))
    values = dict(tags)
    strings = None
    for address, offset, size in loads:
        if 5 in values and address <= values[5] < address + size:
            strings = offset + values[5] - address
    if strings is None or values.get(10, 0) > 100000000:
        return None

    # Entries can point anywhere in a string table of many megabytes: read them one by one.
    def name(value):
        stream.seek(strings + value)
        return stream.read(8192).partition(b"\0")[0].decode("utf-8", "replace")

    facts = {"needed": [name(value) for tag, value in tags if tag == 1]}  # type: dict[str, object]
    for tag, key in ((14, "soname"), (15, "rpath"), (29, "runpath")):
        facts[key] = name(values[tag]) if tag in values else None
    return facts
