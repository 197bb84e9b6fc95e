"""Shared objects: their headers, where CUDA's lie, and how frameworks open them.

A part of `inspect_env`, in the same old syntax. Nothing here raises for what a file holds.
"""

import os
import re
import struct

STRING_LIMIT = 1 << 20
CUDA_LIBRARY = re.compile(
    r"lib(cudart|cublas|cublasLt|cudnn\w*|nccl|cufft|curand|cusolver|cusparse|cusparseLt|nvrtc"
    r"|nvJitLink|cupti|nvshmem_host)(-[0-9a-f]{8})?\.so(\.[\d.]+)?$"
)
# What loads them: torch's own libraries, by which the search for CUDA's begins, and XLA's plugin.
LOADER = re.compile(r"(lib(torch|c10|shm|caffe2)\w*|xla_cuda_plugin)\.so$")
TEXT_LIMIT = 4000000


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

    # Entries can point anywhere in a string table of many megabytes: read them one by one. Search
    # paths of twenty thousand bytes are real (TensorFlow's).
    def name(value):
        stream.seek(strings + value)
        found = b""
        while b"\0" not in found and len(found) < STRING_LIMIT:
            more = stream.read(4096)
            if not more:
                break
            found += more
        return found.partition(b"\0")[0].decode("utf-8", "replace")

    facts = {"needed": [name(value) for tag, value in tags if tag == 1]}  # type: dict[str, object]
    for tag, key in ((14, "soname"), (15, "rpath"), (29, "runpath")):
        facts[key] = name(values[tag]) if tag in values else None
    return facts


def text_of(path):
    """Text of a plain file, None when it cannot be read."""
    try:
        if not os.path.isfile(path):
            return None
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.read(TEXT_LIMIT)
    except (OSError, ValueError):
        return None


def listed(path):
    """Names in a folder, sorted; none when it cannot be listed."""
    try:
        return sorted(os.listdir(path))
    except OSError:
        return []


def executable_elf():
    """Headers of the interpreter itself: its DT_RPATH serves all that it loads."""
    path = os.path.realpath("/proc/self/exe")
    facts = elf(path) or {"unreadable": True}
    facts["path"] = path
    return facts


def kind_of_code(path):
    """Word size and processor of an ELF file, b"" of others; None when it cannot be opened."""
    try:
        if not os.path.isfile(path):
            return None
        with open(path, "rb") as stream:
            head = stream.read(20)
    except OSError:
        return None
    return head[4:5] + head[18:20] if head[:4] == b"\x7fELF" and len(head) == 20 else b""


# The interpreter's own code says what can be loaded into it. Each real file is read once, whatever
# the number of its names.
OWN_KIND = kind_of_code("/proc/self/exe")
# Folder below which another system's files lie, an image's: absolute search paths begin there.
ROOT = ""
KNOWN = {}  # type: dict[str, dict[str, object]]


def library(path):
    """One file: where it really is, and its headers; None for what the loader passes over.

    It passes over links to nothing, files that it may not open, and code for another word size or
    processor.
    """
    kind = kind_of_code(path)
    if kind is None or (kind and OWN_KIND and kind != OWN_KIND):
        return None
    real = os.path.realpath(path)
    if real not in KNOWN:
        KNOWN[real] = elf(real) or {"unreadable": True}
    facts = dict(KNOWN[real])
    facts["path"] = path
    if real != path:
        facts["real"] = real
    return facts


def libraries_in(folder, wanted):
    """The libraries in a folder whose names are wanted."""
    found = [library(os.path.join(folder, name)) for name in listed(folder) if wanted(name)]
    return [each for each in found if each is not None]


def native_libraries(sites, prefix):
    """CUDA libraries below the environment, and what loads them."""
    folders = []
    for site in sites:
        folders += [os.path.join(site, "torch", "lib")]
        for each in listed(os.path.join(site, "nvidia")):
            folders.append(os.path.join(site, "nvidia", each, "lib"))
        for each in listed(os.path.join(site, "jax_plugins")):
            folders.append(os.path.join(site, "jax_plugins", each))
    folders.append(os.path.join(prefix, "lib"))
    found = []
    for folder in dict.fromkeys(folders):
        found += libraries_in(folder, lambda name: CUDA_LIBRARY.match(name) or LOADER.match(name))
    return found


def outer_libraries(folders, inside=()):
    """CUDA libraries in other folders, and in those that the ones found so far search.

    Args:
        folders: of LD_LIBRARY_PATH and the loader's cache.
        inside: what `native_libraries` found.
    """
    done = {os.path.dirname(each["path"]) for each in inside}
    found, asking, queue = [], list(inside), list(folders)
    while asking or queue:
        for each in asking:
            queue += search_path(each)
        asking = []
        for folder in dict.fromkeys(queue):
            if folder not in done:
                done.add(folder)
                asking += libraries_in(
                    folder, lambda name: CUDA_LIBRARY.match(name) and ".so." in name
                )
        queue = []
        found += asking
    return found


def search_path(facts):
    """Absolute folders of a library's DT_RPATH and DT_RUNPATH."""
    here = os.path.dirname(facts["path"])
    text = (facts.get("rpath") or "") + ":" + (facts.get("runpath") or "")
    places = (
        each.replace("${ORIGIN}", "$ORIGIN").replace("$ORIGIN", here)
        for each in dict.fromkeys(text.split(":"))
    )
    folders = [
        os.path.normpath(each if each.startswith(here) else ROOT + each)
        for each in places
        if each.startswith("/")
    ]
    # An $ORIGIN may be left by more steps than there are.
    return [each for each in folders if each.startswith(ROOT + "/")]


# How frameworks open CUDA libraries by their paths before anything else asks for them by name.

PAIR = re.compile(r"""["'](\w+)["']\s*[,:]\s*\[?["'](lib\w+\.so[\w.*\[\]-]*)["']""")


def torch_loading(site):
    """What torch opens by path: always, and only after its first attempt failed; None if unknown.

    Read out of its source, because the list and its conditions differ from release to release.
    """
    text = text_of(os.path.join(site, "torch", "__init__.py"))
    start = (text or "").find("def _load_global_deps")
    if start < 0:
        return None
    end = re.compile(r"^\S", re.M).search(text, text.find("\n", start))
    body = text[start : end.start() if end else start + 8000]
    tried, _, failed = body.partition("except OSError")
    helper = re.search(r"^def _preload_cuda_deps\(.*?(?=^\S|\Z)", text[:start], re.M | re.S)
    table = PAIR.findall(failed) or PAIR.findall(helper.group() if helper else "")
    named = re.findall(r"_preload_cuda_\w+\(\s*(.*?)\)", tried, re.S)
    always = [pair for call in named for pair in PAIR.findall(call)]
    if not always and any(not call.strip() for call in named):
        always = table
    releases = re.search(r"version\.cuda (?:not )?in \[([^\]]*)\]", tried)
    marker = re.search(r"[\"']([^\"']*libcudart\.so)[\"'] (?:not )?in _maps", tried)
    return {
        "always": [list(pair) for pair in always],
        "after_failure": [list(pair) for pair in table],
        "releases": re.findall(r"[\d.]+", releases.group(1)) if releases else None,
        "marker": marker.group(1) if marker else "",
    }


def jax_loading(sites):
    """Folder below `nvidia` and file name of each library that JAX's plugin opens, in its order."""
    for site in sites:
        for name in listed(os.path.join(site, "jax_plugins")):
            text = text_of(os.path.join(site, "jax_plugins", name, "__init__.py")) or ""
            calls = re.findall(r"^\s+_load\(\s*[\"'](\w+)[\"']\s*,\s*\[([^\]]*)\]", text, re.M)
            if calls:
                return [
                    [folder, file]
                    for folder, files in calls
                    for file in re.findall(r"[\"']([^\"']+)[\"']", files)
                ]
    return None


def arch_flags(library, limit=200000000):
    """Architectures that torch was built for, as its Python library lists them in one string."""
    import mmap

    flags = re.compile(rb"(?:(?:sm|compute)_\d+[af]?)(?: (?:sm|compute)_\d+[af]?)*(?=\0)")
    try:
        with open(library, "rb") as stream, mmap.mmap(
            stream.fileno(), 0, access=mmap.ACCESS_READ
        ) as data:
            if len(data) > limit:
                return None
            best = b""
            for start in (b"\0sm_", b"\0compute_"):
                at = data.find(start)
                while at >= 0:
                    match = flags.match(data, at + 1)
                    if match and len(match.group()) > len(best):
                        best = match.group()
                    at = data.find(start, at + 1)
    except (OSError, ValueError):
        return None
    return best.decode("ascii").split() or None
