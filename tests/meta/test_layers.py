"""Imports go one way: cli, commands, then probe, report and engine, then rules, tables, model."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import envcheck

PACKAGE = Path(envcheck.__file__).parent

BASE = {"errors", "markers", "paths", "versions", "spelling", ""}
"""Modules without a layer of their own; "" is the package itself, for its version."""

MAY_IMPORT = {
    "model": {"model"},
    "matrix": {"matrix", "model"},
    "rules": {"rules", "matrix", "model"},
    "undecided": {"matrix", "model"},
    "staleness": {"matrix", "model"},
    "engine": {"staleness", "undecided", "rules", "matrix", "model"},
    "report": {"report", "model"},
    "planner": {"planner", "engine", "rules", "matrix", "model"},
    "symptoms": {"symptoms", "matrix", "model"},
    "intake": {"intake", "symptoms", "matrix", "model"},
    "emit": {"emit", "planner", "matrix", "model"},
    "probe": {"probe", "model"},
    "smoke": {"smoke", "probe", "model"},
    "watch": {"watch", "probe", "model"},
    "image": {"image", "payloads", "probe", "model"},
    "fleet": {"fleet", "probe", "report", "planner", "matrix", "model"},
    "payloads": set(),
    "refresh": {"refresh", "matrix", "model"},
    "commands": {
        "commands",
        "fleet",
        "emit",
        "intake",
        "symptoms",
        "watch",
        "smoke",
        "image",
        "refresh",
        "probe",
        "report",
        "planner",
        "engine",
        "rules",
        "matrix",
        "model",
    },
    "helptext": {"arguments"},
    "arguments": {"arguments"},
    "cli": {"arguments", "helptext", "commands"},
    "__main__": {"cli"},
}
PURE = ("model", "matrix", "rules", "engine", "report", "planner", "emit", "intake", "symptoms")
"""Layers that neither start programs nor look at this process's surroundings."""
OUTSIDE = {"subprocess", "socket", "ctypes", "multiprocessing", "asyncio"}

FILES = sorted(path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py"))


def layer(path: Path) -> str:
    """Top-level name of the module at a path within the package."""
    return path.parts[0].removesuffix(".py")


def imports(path: Path) -> set[str]:
    """Every module that a file imports, also inside functions and for type checking."""
    found = set()
    for node in ast.walk(ast.parse((PACKAGE / path).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            module = node.module or ""
            found.add(module)
            if module == "envcheck":
                found |= {f"envcheck.{alias.name}" for alias in node.names}
    return found


@pytest.mark.parametrize("path", FILES, ids=str)
def test_imports_go_one_way(path: Path) -> None:
    own = {
        name.partition(".")[2].partition(".")[0]
        for name in imports(path)
        if name == "envcheck" or name.startswith("envcheck.")
    }
    if layer(path) in BASE or layer(path) == "__init__":
        assert own <= BASE
    else:
        assert own - {"__version__"} <= MAY_IMPORT[layer(path)] | BASE


@pytest.mark.parametrize("path", [each for each in FILES if layer(each) in PURE], ids=str)
def test_pure_layers_do_not_look_outside(path: Path) -> None:
    assert {name.partition(".")[0] for name in imports(path)} & OUTSIDE == set()
    source = (PACKAGE / path).read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            assert (node.value.id, node.attr) not in {("os", "environ"), ("os", "getenv")}, path


@pytest.mark.parametrize("path", [each for each in FILES if layer(each) == "payloads"], ids=str)
def test_payloads_import_the_standard_library_only(path: Path) -> None:
    import sys

    tops = {name.partition(".")[0] for name in imports(path)} - {"__future__"}
    # What a payload is there to ask is imported inside it, and may be missing.
    assert tops <= set(sys.stdlib_module_names) | {
        "elf_headers",
        "smoke_stages",
        "smoke_links",
        "smoke_reference",
        "smoke_torch_checks",
        "numpy",
        "pynvml",
        "torch",
        "jax",
        "tensorflow",
    }


def test_files_stay_readable() -> None:
    long = {
        str(path): lines
        for path in FILES
        if (lines := len((PACKAGE / path).read_text(encoding="utf-8").splitlines())) > 400
    }
    assert long == {}
