"""Wheels of what envcheck needs to judge a machine, made from what is installed here.

They are for machines that reach no index: all of it is Python without compiled parts, so that one
wheel does for every machine. Printing tables and completing words are left out.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from envcheck.errors import UsageError

if TYPE_CHECKING:
    from importlib.metadata import Distribution

NEEDED = ("distro", "nvidia-ml-py", "packaging")
_TIME = (1980, 1, 1, 0, 0, 0)
_TAG = "py3-none-any"
_LICENCES = ("LICENSE", "LICENCE", "COPYING", "NOTICE")


def needed_wheels() -> dict[str, bytes]:
    """File name -> content of each wheel, the same for the same installation.

    Raises:
        UsageError: one of the packages is not installed here, or has compiled parts.
    """
    from importlib import metadata

    found = {}
    for name in NEEDED:
        try:
            distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError as error:
            msg = f"{name}, which envcheck needs, is not installed here"
            raise UsageError(msg) from error
        found.update(_wheel(name, distribution.version, _members(name, distribution)))
    found.update(_toml())
    return found


def _members(name: str, distribution: Distribution) -> dict[str, bytes]:
    members = {}
    for file in distribution.files or ():
        path = file.as_posix()
        if file.suffix in {".so", ".pyd"}:
            msg = f"{name} has compiled parts here: {path}"
            raise UsageError(msg)
        inside = not path.startswith("..") and "__pycache__" not in path
        code = ".dist-info/" not in path and file.suffix in {".py", ".typed"}
        licence = file.name.upper().startswith(_LICENCES)
        place = distribution.locate_file(file)
        if inside and (code or licence):
            with open(str(place), "rb") as content:  # noqa: PTH123 - a path of importlib's own
                members[path] = content.read()
    if not members:
        msg = f"the files of {name}, which envcheck needs, cannot be found here"
        raise UsageError(msg)
    return members


def _toml() -> dict[str, bytes]:
    """The reader of TOML for Python 3.10, which has none of its own: a later one's, by its name."""
    if sys.version_info < (3, 11):
        from importlib import metadata

        distribution = metadata.distribution("tomli")
        return _wheel("tomli", distribution.version, _members("tomli", distribution))
    from importlib.util import find_spec
    from pathlib import Path

    found = find_spec("tomllib")
    if found is None or found.origin is None:
        msg = "the reader of TOML, which envcheck needs, cannot be found here"
        raise UsageError(msg)
    folder = Path(found.origin).parent
    members = {f"tomli/{path.name}": path.read_bytes() for path in sorted(folder.glob("*.py"))}
    return _wheel("tomli", f"{sys.version_info[0]}.{sys.version_info[1]}", members)


def _wheel(name: str, version: str, members: dict[str, bytes]) -> dict[str, bytes]:
    import io
    import zipfile

    name = name.replace("-", "_")
    info = f"{name}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    wheel = f"Wheel-Version: 1.0\nGenerator: envcheck\nRoot-Is-Purelib: true\nTag: {_TAG}\n"
    everything = {
        **members,
        f"{info}/METADATA": metadata.encode(),
        f"{info}/WHEEL": wheel.encode(),
        f"{info}/RECORD": b"",
    }
    everything[f"{info}/RECORD"] = "".join(f"{each},,\n" for each in everything).encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in sorted(everything.items()):
            member = zipfile.ZipInfo(path, _TIME)
            member.compress_type = zipfile.ZIP_DEFLATED
            member.external_attr = 0o644 << 16
            archive.writestr(member, content)
    return {f"{name}-{version}-{_TAG}.whl": buffer.getvalue()}
