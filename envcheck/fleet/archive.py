"""What is sent to hosts: envcheck's probe and the packages it needs, as one archive.

All of it is Python without compiled parts, so one archive serves every host.
"""

from __future__ import annotations

import importlib.util
import io
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import envcheck

if TYPE_CHECKING:
    from collections.abc import Iterator

_PACKAGE = Path(envcheck.__file__).parent

_MODULES = (
    "__init__.py",
    "errors.py",
    "markers.py",
    "paths.py",
    "spelling.py",
    "versions.py",
    "commands/__init__.py",
    "commands/fleet_host.py",
    "commands/smoke.py",
    "fleet/__init__.py",
    "fleet/old_python.py",
)
_FOLDERS = ("model", "payloads", "probe", "smoke")
_LIBRARIES = ("distro", "pynvml")
_MAIN = """\
import sys
from envcheck.fleet.old_python import adapt
adapt()
from envcheck.commands.fleet_host import main
sys.exit(main(sys.argv[1]))
"""
_DATE = (1980, 1, 1, 0, 0, 0)
"""Of every file, so that the same envcheck makes the same archive."""


def build() -> bytes:
    """The archive: a zip file that Python runs once it is unpacked.

    Raises:
        ModuleNotFoundError: a package that envcheck depends on is not installed.
    """
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        _add(archive, "__main__.py", _MAIN.encode())
        for name, path in sorted(_files()):
            _add(archive, name, path.read_bytes())
    return stream.getvalue()


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    info = zipfile.ZipInfo(name, _DATE)
    info.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(info, content)


def _files() -> Iterator[tuple[str, Path]]:
    for name in _MODULES:
        yield f"envcheck/{name}", _PACKAGE / name
    for folder in _FOLDERS:
        for path in (_PACKAGE / folder).rglob("*.py"):
            yield f"envcheck/{path.relative_to(_PACKAGE)}", path
    for library in _LIBRARIES:
        yield from _library(library)


def _library(name: str) -> Iterator[tuple[str, Path]]:
    found = importlib.util.find_spec(name)
    if found is None or found.origin is None:
        msg = f"the package {name} is not installed"
        raise ModuleNotFoundError(msg)
    origin = Path(found.origin)
    if origin.name != "__init__.py":
        yield origin.name, origin
        return
    for path in origin.parent.rglob("*.py"):
        yield f"{name}/{path.relative_to(origin.parent)}", path
