"""Builds `envcheck.pyz`: envcheck and all it needs in one file, for machines without pip.

    python tools/pyz.py [-o envcheck.pyz] [--wheel WHEEL]

The file runs with any Python from 3.10 on: `python3 envcheck.pyz doctor`. It holds Python code only;
what its dependencies have compiled is left out, each has the same in Python. On its first run it
unpacks itself into the user's cache folder, since other interpreters run parts of it as files. The
same checkout and the same dependencies give the same bytes.

Needs pip, and an index for the dependencies.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_BOOTSTRAP = Path(__file__).with_name("pyz_main.py")
_SHEBANG = b"#!/usr/bin/env python3\n"
_TIME = (1980, 1, 1, 0, 0, 0)

PURE_INSTEAD = re.compile(r"(^|/)markupsafe/_speedups\.")
"""Compiled files that stand beside the same in Python, and are left out."""
_COMPILED = re.compile(r"\.(so|pyd|dylib|dll)(\.|$)")
_LEFT_OUT = re.compile(r"^bin/|/__pycache__/|\.pyc$")
# Of Python 3.10 only, so that a newer one that builds the file would not ask for it.
_FOR_OLDER = "tomli>=2.0"


def main() -> int:
    """Build the file; 1 when a dependency has compiled parts that nothing stands for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("-o", "--output", type=Path, default=Path("envcheck.pyz"))
    parser.add_argument("--wheel", type=Path, help="envcheck's own wheel; built if not given")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="envcheck-pyz-") as name:
        folder = Path(name)
        wheel = args.wheel or _wheel(folder / "wheel")
        site = folder / "site"
        _pip("install", "--target", str(site), str(wheel))
        # Of packages that come compiled, the wheel for any machine.
        pure = ("--platform", "any", "--implementation", "py", "--abi", "none")
        _pip(
            *("install", "--target", str(site), "--no-deps", "--only-binary", ":all:"),
            *("--python-version", "3.10", *pure, _FOR_OLDER),
        )
        files = _contents(site)
        compiled = [path for path in files if _COMPILED.search(path)]
        if compiled:
            print(f"compiled, for one machine only: {', '.join(compiled)}", file=sys.stderr)
            return 1
        args.output.write_bytes(_archive(files, folder / "archive"))
    args.output.chmod(0o755)
    print(f"wrote {args.output}, {args.output.stat().st_size / 1e6:.1f} MB")
    return 0


def _wheel(folder: Path) -> Path:
    _pip("wheel", "--no-deps", "--wheel-dir", str(folder), str(ROOT))
    (wheel,) = folder.glob("*.whl")
    return wheel


def _pip(*args: str) -> None:
    pip = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
    subprocess.run([*pip, *args], check=True)


def _contents(site: Path) -> dict[str, bytes]:
    """What was installed, by its path; lists of files without those that are left out."""
    found = {}
    for path in sorted(site.rglob("*")):
        name = path.relative_to(site).as_posix()
        if not path.is_file() or _LEFT_OUT.search(name) or PURE_INSTEAD.search(name):
            continue
        content = path.read_bytes()
        if path.name == "RECORD":
            lines = content.decode().splitlines(keepends=True)
            content = "".join(line for line in lines if not _unlisted(line)).encode()
        elif path.name in {"direct_url.json", "REQUESTED"}:
            continue  # says where it was built
        found[name] = content
    return found


def _unlisted(line: str) -> bool:
    name = line.partition(",")[0].removeprefix("../")
    ours = ("direct_url.json", "REQUESTED")
    left_out = _LEFT_OUT.search(name) or PURE_INSTEAD.search(name) or name.endswith(ours)
    return left_out is not None and left_out is not False


def _archive(files: dict[str, bytes], path: Path) -> bytes:
    """The archive, reproducible: sorted, without dates."""
    digest = hashlib.sha256()
    for name, content in sorted(files.items()):
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:

        def put(name: str, content: bytes) -> None:
            entry = zipfile.ZipInfo(name, _TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, content)

        put("__main__.py", _BOOTSTRAP.read_bytes())
        put("digest", digest.hexdigest()[:16].encode())
        for name, content in sorted(files.items()):
            put(f"site/{name}", content)
    return _SHEBANG + path.read_bytes()


if __name__ == "__main__":
    sys.exit(main())
