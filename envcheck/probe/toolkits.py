"""CUDA toolkits and host compilers on disk."""

from __future__ import annotations

import json
import posixpath
import re
from typing import TYPE_CHECKING

from envcheck.model.environment import Compiler, Toolkit
from envcheck.probe.engines import find
from envcheck.probe.source import Command
from envcheck.versions import cuda_from_int

if TYPE_CHECKING:
    from collections.abc import Mapping

    from envcheck.probe.quiet import Quiet
    from envcheck.probe.source import Result

_COMPILERS = ("gcc", "clang")


def compiler_commands(source: Quiet) -> tuple[Command, ...]:
    """Ask each host compiler that is there for its version, which takes it milliseconds."""
    return tuple(
        Command(
            name=f"compiler:{name}",
            # Before release 7 gcc knew the second option only; later ones take the first of both.
            argv=(path, *(("-dumpfullversion",) if name == "gcc" else ()), "-dumpversion"),
            timeout=3.0,
        )
        for name in _COMPILERS
        if (path := find(source, name)) is not None
    )


def read_compilers(source: Quiet, results: Mapping[str, Result]) -> tuple[Compiler, ...]:
    """Host compilers on PATH."""
    found = []
    for name in _COMPILERS:
        result = results.get(f"compiler:{name}")
        if result is not None:
            version = result.stdout.strip() if result.code == 0 else ""
            found.append(Compiler(name=name, version=version or None, path=find(source, name)))
    return tuple(found)


def read_toolkits(source: Quiet, prefix: str | None) -> tuple[Toolkit, ...]:
    """Toolkits under the usual roots, the variables' roots, and the environment.

    A root that is a link to another one counts once, under the name that it links to.
    """
    named = [source.variables.get(name, "").rstrip("/") for name in ("CUDA_HOME", "CUDA_PATH")]
    nvcc = find(source, "nvcc")
    roots = [
        *named,
        *(
            f"/usr/local/{name}"
            for name in source.list("/usr/local") or ()
            if re.fullmatch(r"cuda(?:-[\d.]+)?", name)
        ),
        "/opt/cuda",
    ]
    # Only what the user's own PATH finds is active; the usual folders are merely looked into.
    own_path = source.variables.get("PATH", "").split(":")
    active = {_real(source, each) for each in named if each}
    on_path = None
    if nvcc is not None and nvcc.rpartition("/")[0] in {each.rstrip("/") for each in own_path}:
        on_path = _root_of_nvcc(source, nvcc)
        active.add(on_path)
    found: dict[str, Toolkit] = {}
    for root in dict.fromkeys(_real(source, each) for each in roots if each.startswith("/")):
        if source.stat(root) is None:
            # A variable may name what was removed.
            continue
        version, via = _version(source, root)
        has_nvcc = source.stat(f"{root}/bin/nvcc") is not None
        if version is None and not has_nvcc:
            continue
        found[root] = Toolkit(
            version=version, root=root, nvcc=has_nvcc, via=via, on_path=root in active
        )
    # Modules, distributions and conda have theirs wherever they like. /usr/local itself holds links
    # and wrappers only, which tell nothing of what they run.
    if on_path is not None and on_path not in found and on_path != "/usr/local":
        version, via = _version(source, on_path)
        if version is not None or on_path == prefix:
            found[on_path] = Toolkit(
                version=version, root=on_path, nvcc=True, via=via, on_path=True
            )
    return tuple(found.values())


def _real(source: Quiet, path: str) -> str:
    """Follow links of the last part: /usr/local/cuda -> cuda-13 -> cuda-13.0."""
    for _ in range(8):
        facts = source.stat(path)
        if facts is None or facts.kind != "link" or not facts.target:
            return path
        target = facts.target.rstrip("/")
        path = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    return path


def _root_of_nvcc(source: Quiet, nvcc: str) -> str:
    place = _real(source, nvcc)
    return _real(source, place.rpartition("/bin/")[0]) if "/bin/" in place else place


def _version(source: Quiet, root: str) -> tuple[str | None, str | None]:
    """Release of a toolkit, and the file that told it."""
    text = source.read(f"{root}/version.json")
    if text is not None:
        try:
            return str(json.loads(text)["cuda"]["version"]), f"{root}/version.json"
        except (ValueError, KeyError, TypeError):
            pass
    match = re.search(r"CUDA Version (\d+\.[\d.]+)", source.read(f"{root}/version.txt") or "")
    if match:
        return match.group(1), f"{root}/version.txt"
    # The folder's name comes before the header, which is a megabyte.
    folder = re.search(r"cuda-(\d+\.\d+)$", root)
    if folder:
        return folder.group(1), root
    for folder_of_header in (
        "include",
        "targets/x86_64-linux/include",
        "targets/sbsa-linux/include",
    ):
        path = f"{root}/{folder_of_header}/cuda.h"
        number = re.search(r"^#define CUDA_VERSION (\d+)", source.read(path) or "", re.M)
        if number:
            return cuda_from_int(int(number.group(1))), path
    return None, None
