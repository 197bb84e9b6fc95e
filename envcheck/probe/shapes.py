"""What the answers of payloads must look like, so that collectors need not look twice.

A payload runs among the user's own libraries and start-up files: anything may stand where its
answer is expected. An answer that does not fit is no answer, and the reason says where.

A shape is a type or a tuple of types; `[shape]` is a list of such; a dict names the keys of an
object, with a `?` behind those that may be absent or None, and `*` for all other keys.
"""

from __future__ import annotations

from typing import Any

Shape = Any

_NUMBER = (int, float)
_TEXTS = [str]
_FAILURE = {"code?": int, "message?": str}
_FAILURES = {"*": _FAILURE}

NVML: Shape = {
    "binding": str,
    "binding_reason?": str,
    "init?": _FAILURE,
    "errors?": _FAILURES,
    "driver?": str,
    "cuda?": int,
    "path?": str,
    "gpus?": [
        {
            "index": int,
            "errors?": _FAILURES,
            "name?": str,
            "arch?": str,
            "bus_id?": str,
            "memory_total_bytes?": int,
            "memory_used_bytes?": int,
            "mig?": bool,
            "mig_instances?": int,
            "compute_mode?": str,
            "persistence?": bool,
            "ecc?": bool,
            "ecc_uncorrected?": int,
            "retired_pages_pending?": bool,
            "remap_pending?": bool,
            "remap_failed?": bool,
            "throttle_reasons?": _TEXTS,
            "temperature_c?": int,
            "power_watts?": _NUMBER,
            "power_limit_watts?": _NUMBER,
            "utilization_percent?": int,
            "pcie_generation?": int,
            "pcie_generation_max?": int,
            "pcie_width?": int,
            "pcie_width_max?": int,
            "fabric_state?": str,
            "fabric_status?": int,
            "processes?": [{"pid": int, "memory_bytes?": int}],
        }
    ],
}

LIBCUDA: Shape = {
    "load_error?": str,
    "path?": str,
    "cuda?": int,
    "init?": int,
    "message?": str,
    "gpus?": [
        {
            "index": int,
            "name?": str,
            "arch?": str,
            "bus_id?": str,
            "memory_total_bytes?": int,
            "error?": str,
        }
    ],
}

_OBJECT_FILE = {
    "path": str,
    "real?": str,
    "soname?": str,
    "needed?": _TEXTS,
    "rpath?": str,
    "runpath?": str,
    "owners?": _TEXTS,
    "header?": {"*": str},
}

ENVIRONMENT: Shape = {
    "packages": [
        {
            "name": str,
            "version": str,
            "location?": str,
            "requires?": _TEXTS,
            "installer?": str,
            "build?": str,
            "wheel?": str,
            "direct_url?": str,
        }
    ],
    "conda_packages": [{"name": str, "version": str, "build?": str, "channel?": str}],
    # What frameworks say of themselves is read value by value: anybody may have built them.
    "versions": {"*": {"location": str}},
    "arches?": _TEXTS,
    "loading?": {
        "torch?": {
            "always?": [_TEXTS],
            "after_failure?": [_TEXTS],
            "releases?": _TEXTS,
            "marker?": str,
        },
        "jax?": [_TEXTS],
    },
    "libraries": [_OBJECT_FILE],
    "outer_libraries": [_OBJECT_FILE],
    "shared_files": {"*": _TEXTS},
    "files": {"pyvenv?": str, "conda": bool, "pipx": bool},
    "python?": {
        "version": str,
        "executable?": str,
        "elf?": _OBJECT_FILE,
        "tegra?": bool,
        "prefix": str,
        "base_prefix?": str,
        "implementation?": str,
        "tag?": str,
        "platform?": str,
        "libc?": str,
        "externally_managed?": bool,
    },
}

IMPORTED: Shape = {
    "error?": str,
    "gpu_available?": bool,
    "arches?": _TEXTS,
    "versions?": {"*": object},
    "loaded": [{"name": str, "path?": str}],
}


def misfit(shape: Shape, data: Any, path: str = "$") -> str | None:
    """Where and how data does not have a shape, None when it has.

    Args:
        shape: see above.
        data: what was parsed.
        path: where it stands, for the answer.
    """
    if isinstance(shape, dict):
        return _object(shape, data, path)
    if isinstance(shape, list):
        if not isinstance(data, list):
            return f"{path} is no list"
        each = (misfit(shape[0], item, f"{path}[{at}]") for at, item in enumerate(data))
        return next((words for words in each if words), None)
    wanted = shape if isinstance(shape, tuple) else (shape,)
    # True is an int to Python only.
    fits = isinstance(data, wanted) and (
        not isinstance(data, bool) or bool in wanted or object in wanted
    )
    return None if fits else f"{path} is no {wanted[0].__name__}"


def _object(shape: dict[str, Shape], data: Any, path: str) -> str | None:
    if not isinstance(data, dict):
        return f"{path} is no object"
    for name, inner in shape.items():
        if name == "*":
            words = (misfit(inner, item, f"{path}.{key}") for key, item in data.items())
            found = next((each for each in words if each), None)
        else:
            key, optional = name.rstrip("?"), name.endswith("?")
            if data.get(key) is None and optional:
                continue
            found = misfit(inner, data[key], f"{path}.{key}") if key in data else f"{path}.{key}?"
        if found:
            return found
    return None
