"""envcheck's own wheel, made from what is running: images need no index that carries envcheck.

An installed envcheck is packed as it lies there; a checkout is packed like its build does, with the
data folders inside the package.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import envcheck
from envcheck.errors import UsageError
from envcheck.paths import data_dir

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_DATA = ("ansible", "containers", "matrices")
_TIME = (1980, 1, 1, 0, 0, 0)
"""Time of every member: the same content makes the same bytes."""
_WHEEL = """\
Wheel-Version: 1.0
Generator: envcheck
Root-Is-Purelib: true
Tag: py3-none-any
"""
_ENTRY_POINTS = """\
[console_scripts]
envcheck = envcheck.cli:main
"""


def own_wheel() -> tuple[str, bytes]:
    """File name and content of a wheel of this envcheck, the same at any time.

    Raises:
        UsageError: what it depends on cannot be read.
    """
    import io
    import zipfile

    version = envcheck.__version__
    info = f"envcheck-{version}.dist-info"
    members = dict(sorted(_members()))
    members[f"{info}/METADATA"] = _metadata(version).encode()
    members[f"{info}/WHEEL"] = _WHEEL.encode()
    members[f"{info}/entry_points.txt"] = _ENTRY_POINTS.encode()
    record = f"{info}/RECORD"
    members[record] = _record(members, record).encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            member = zipfile.ZipInfo(name, _TIME)
            member.compress_type = zipfile.ZIP_DEFLATED
            member.external_attr = 0o644 << 16
            archive.writestr(member, content)
    return f"envcheck-{version}-py3-none-any.whl", buffer.getvalue()


def _package() -> Path:
    from pathlib import Path

    return Path(envcheck.__file__).resolve().parent


def _members() -> Iterator[tuple[str, bytes]]:
    """Files of the package, the data folders among them."""
    package = _package()
    yield from _below(package, "envcheck")
    if (package / "_data").is_dir():
        return
    for name in _DATA:
        yield from _below(data_dir(name), f"envcheck/_data/{name}")
    yield from _compiled(data_dir("matrices"))


def _below(folder: Path, name: str) -> Iterator[tuple[str, bytes]]:
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        if path.is_file() and "__pycache__" not in relative.parts and path.suffix != ".pyc":
            yield f"{name}/{relative.as_posix()}", path.read_bytes()


def _compiled(matrices: Path) -> Iterator[tuple[str, bytes]]:
    """The tables as JSON, which is what an installed envcheck reads."""
    import json

    for path in sorted(matrices.rglob("*.toml")):
        name = path.relative_to(matrices).with_suffix(".json").as_posix()
        text = json.dumps(_toml(path), ensure_ascii=False, separators=(",", ":"))
        yield f"envcheck/_data/tables/{name}", text.encode()


def _toml(path: Path) -> dict[str, object]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    found: dict[str, object] = tomllib.loads(path.read_text(encoding="utf-8"))
    return found


def _metadata(version: str) -> str:
    python, requires = _requirements(version)
    lines = [
        "Metadata-Version: 2.1",
        "Name: envcheck",
        f"Version: {version}",
        f"Requires-Python: {python}",
        *(f"Requires-Dist: {line}" for line in requires),
    ]
    return "\n".join(lines) + "\n"


def _requirements(version: str) -> tuple[str, list[str]]:
    """Python and packages that envcheck needs: of the checkout it runs from, else as installed."""
    project = _package().parent / "pyproject.toml"
    if project.is_file() and not (_package() / "_data").is_dir():
        found = _toml(project)["project"]
        if isinstance(found, dict):
            return str(found["requires-python"]), list(found["dependencies"])
    from importlib import metadata

    try:
        own = metadata.metadata("envcheck")
    except metadata.PackageNotFoundError:
        own = None
    if own is None or own["Version"] != version:
        msg = "which packages envcheck needs cannot be read from this installation of it"
        raise UsageError(msg)
    requires = [line for line in own.get_all("Requires-Dist") or () if "extra ==" not in line]
    return own["Requires-Python"], requires


def _record(members: dict[str, bytes], record: str) -> str:
    import base64
    import hashlib

    lines = []
    for name, content in members.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(content)}")
    return "\n".join([*lines, f"{record},,"]) + "\n"
