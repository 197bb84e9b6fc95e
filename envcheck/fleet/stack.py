"""What a host's stack is: the parts by which hosts are called alike or different.

The kernel's patch level, paths, temperatures and the like are left out: hosts that differ in
nothing else run the same programs.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from envcheck.fleet.model import Part

if TYPE_CHECKING:
    from collections.abc import Iterable

UNKNOWN = "unknown"
NONE = "none"


def stack_of(snapshot: dict[str, Any]) -> tuple[Part, ...]:
    """The stack of a snapshot, as plain data.

    Raises:
        KeyError, TypeError, AttributeError: it is not the data of a snapshot.
    """
    host, env = snapshot["host"], snapshot["env"]
    parts = [
        ("system", _system(host["os"])),
        ("GPUs", _gpus(host)),
        ("driver", _driver(host["driver"])),
        ("CUDA of the driver", host["driver"]["cuda"] or _absent(host["driver"])),
        ("CUDA toolkit", _versions(env["toolkits"])),
        ("container toolkit", host["toolkit_version"] or NONE),
        ("Python", _series(env["python"]["version"])),
        *_frameworks(env["frameworks"]),
        ("cuDNN", _library(env["libraries"], "cudnn")),
        ("NCCL", _library(env["libraries"], "nccl")),
    ]
    return tuple(Part(part=str(part), version=str(version)) for part, version in parts)


def hardware_of(snapshot: dict[str, Any]) -> str:
    """The GPUs of a snapshot by their device ids, else by their names.

    Raises:
        KeyError, TypeError, AttributeError: it is not the data of a snapshot.
    """
    ids = Counter(f"10de:{each['device']}" for each in _on_bus(snapshot["host"]))
    if not ids:
        return _gpus(snapshot["host"])
    return ", ".join(f"{count} x {id}" for id, count in sorted(ids.items()))


def part(stack: Iterable[Part], name: str, default: str = NONE) -> str:
    """One part's version."""
    return next((each.version for each in stack if each.part == name), default)


def _system(os: dict[str, Any]) -> str:
    words = [os["id"], os["version"], os["machine"]]
    return " ".join(each for each in words if each) or UNKNOWN


def _gpus(host: dict[str, Any]) -> str:
    gpus = host["gpus"]
    if gpus:
        names = Counter((each["name"] or "unnamed GPU") for each in gpus)
        return ", ".join(f"{n} x {name}" if n > 1 else name for name, n in sorted(names.items()))
    on_bus = _on_bus(host)
    if on_bus:
        return f"{len(on_bus)} on the bus, none through the driver"
    return NONE if gpus is not None else UNKNOWN


def _on_bus(host: dict[str, Any]) -> list[dict[str, Any]]:
    return [each for each in host["pci"] or () if (each["class_code"] or "").startswith("03")]


def _driver(driver: dict[str, Any]) -> str:
    version = driver["version"]
    if version is None:
        return _absent(driver)
    words = [version]
    if driver["module_loaded"] is False:
        words.append("not loaded")
    elif driver["open_module"] is not None:
        words.append("open" if driver["open_module"] else "proprietary")
    module, libraries = driver["module_version"], driver["userspace_version"]
    if module and libraries and module != libraries:
        words.append(f"libraries {libraries}")
    return ", ".join(words)


def _absent(driver: dict[str, Any]) -> str:
    return NONE if driver["installed"] is False else UNKNOWN


def _versions(rows: list[dict[str, Any]] | None) -> str:
    if rows is None:
        return UNKNOWN
    return ", ".join(sorted({each["version"] or UNKNOWN for each in rows})) or NONE


def _series(version: str | None) -> str:
    return ".".join(version.split(".")[:2]) if version else UNKNOWN


def _frameworks(frameworks: list[dict[str, Any]] | None) -> list[tuple[str, str]]:
    if frameworks is None:
        return [("torch", UNKNOWN)]
    found = [(each["name"], _build(each)) for each in frameworks]
    return sorted(found) or [("torch", NONE)]


def _build(framework: dict[str, Any]) -> str:
    version = framework["version"]
    if framework["cuda"]:
        return f"{version} (CUDA {framework['cuda']})"
    if framework["hip"]:
        return f"{version} (ROCm {framework['hip']})"
    return f"{version} (CPU only)" if framework["cpu_only"] else version


def _library(libraries: list[dict[str, Any]] | None, name: str) -> str:
    """The copies that frameworks would load; where that is not known, all of them."""
    if libraries is None:
        return UNKNOWN
    copies = [each for each in libraries if each["name"] == name]
    return _versions([each for each in copies if each["wins_for"]] or copies)
