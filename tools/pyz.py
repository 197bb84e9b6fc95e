"""Builds `envcheck.pyz`: envcheck and all it needs in one file, for machines without pip.

    .venv/bin/python tools/pyz.py [-o envcheck.pyz] [--wheel WHEEL]

The file runs with any Python from 3.10 on: `python3 envcheck.pyz doctor`. It holds envcheck's wheel
and its dependencies as they are installed beside hatchling, which builds the wheel; nothing is
fetched. What dependencies have compiled is left out, each has the same in Python. On its first run
the file unpacks itself into the user's cache folder, since other interpreters run parts of it as
files. The same checkout and the same dependencies give the same bytes.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import re
import subprocess
import sys
import tempfile
import zipfile
from importlib import metadata
from pathlib import Path, PurePosixPath

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
_BOOTSTRAP = Path(__file__).with_name("pyz_main.py")
_SHEBANG = b"#!/usr/bin/env python3\n"
_TIME = (1980, 1, 1, 0, 0, 0)

_SPED_UP = re.compile(r"^markupsafe/_speedups\.")
"""Compiled files that stand beside the same in Python, and are left out."""
_COMPILED = re.compile(r"\.(so|pyd|dylib|dll)(\.|$)")
_OF_ONE_INSTALLATION = {"RECORD", "INSTALLER", "REQUESTED", "direct_url.json"}


def main() -> int:
    """Build the file; 1 when a dependency has compiled parts that nothing stands for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("-o", "--output", type=Path, default=Path("envcheck.pyz"))
    parser.add_argument("--wheel", type=Path, help="envcheck's own wheel; built if not given")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="envcheck-pyz-") as name:
        files, needs = _of_wheel(args.wheel or _wheel(Path(name)))
        for package in _closure(needs):
            files.update(_of_installed(package))
        if not any(path.startswith("tomli/") for path in files):
            files.update(_toml())
        compiled = [path for path in files if _COMPILED.search(path)]
        if compiled:
            print(f"compiled, for one machine only: {', '.join(compiled)}", file=sys.stderr)
            return 1
        args.output.parent.mkdir(parents=True, exist_ok=True)
        args.output.write_bytes(_archive(files, Path(name) / "archive"))
    args.output.chmod(0o755)
    print(f"wrote {args.output}, {args.output.stat().st_size / 1e6:.1f} MB")
    return 0


def _wheel(folder: Path) -> Path:
    build = (sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder))
    subprocess.run(build, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    (wheel,) = folder.glob("*.whl")
    return wheel


def _of_wheel(path: Path) -> tuple[dict[str, bytes], list[str]]:
    """Files of a wheel, and the requirements in its metadata."""
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    (about,) = (text for name, text in files.items() if name.endswith(".dist-info/METADATA"))
    return files, re.findall(r"(?m)^Requires-Dist: (.+)$", about.decode())


def _closure(needs: list[str]) -> list[metadata.Distribution]:
    """The installed distributions that requirements name, and those that these need."""
    found: dict[str, metadata.Distribution] = {}
    wanted = [*needs]
    while wanted:
        requirement = Requirement(wanted.pop())
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        if requirement.name not in found:
            package = found[requirement.name] = metadata.distribution(requirement.name)
            wanted += package.requires or ()
    return [package for _, package in sorted(found.items())]


def _of_installed(package: metadata.Distribution) -> dict[str, bytes]:
    """Files of an installed distribution, without programs and what only this machine has."""
    found = {}
    for file in package.files or ():
        path = PurePosixPath(file)
        left_out = (
            ".." in path.parts
            or "__pycache__" in path.parts
            or path.name in _OF_ONE_INSTALLATION
            or _SPED_UP.search(str(path))
        )
        if not left_out:
            found[str(path)] = Path(str(package.locate_file(file))).read_bytes()
    (about,) = (path for path in found if path.endswith(".dist-info/METADATA"))
    # By which importlib.metadata knows what belongs to the package.
    found[f"{PurePosixPath(about).parent}/RECORD"] = "".join(
        f"{each},,\n" for each in found
    ).encode()
    return found


def _toml() -> dict[str, bytes]:
    """The reader of TOML for Python 3.10: a later Python's own, which is the same, by its name."""
    tomllib = importlib.import_module("tomllib")
    return {
        f"tomli/{path.name}": path.read_bytes()
        for path in sorted(Path(str(tomllib.__file__)).parent.glob("*.py"))
    }


def _archive(files: dict[str, bytes], path: Path) -> bytes:
    """The archive, reproducible: sorted, without dates."""
    digest = hashlib.sha256()
    for name, content in sorted(files.items()):
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    with zipfile.ZipFile(path, "w") as archive:

        def put(name: str, content: bytes) -> None:
            entry = zipfile.ZipInfo(name, _TIME)
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED, 9)

        put("__main__.py", _BOOTSTRAP.read_bytes())
        put("digest", digest.hexdigest()[:16].encode())
        for name, content in sorted(files.items()):
            put(f"site/{name}", content)
    return _SHEBANG + path.read_bytes()


if __name__ == "__main__":
    sys.exit(main())
