"""Writes `containers/examples` from the locks in it.

    python tools/emit_examples.py            print a diff of what would change
    python tools/emit_examples.py --write    change the files
    python tools/emit_examples.py --check    exit 1 when a file is not what envcheck emits

Every folder there has a lock, and a folder for each profile that the lock can be followed in.
"""

from __future__ import annotations

import argparse
import difflib
import sys
from importlib import import_module
from pathlib import Path

from envcheck.emit import TARGETS
from envcheck.emit.dockerfile import LOCK
from envcheck.emit.options import PROFILES, TOOLS, Options
from envcheck.errors import UsageError
from envcheck.matrix.loader import Matrix
from envcheck.planner.lock import parse_lock

EXAMPLES = Path(__file__).resolve().parents[1] / "containers" / "examples"

MORE: dict[str, dict[str, tuple[str, Options]]] = {
    "torch-ubuntu24.04": {
        "tools": ("dockerfile", Options(tools=TOOLS)),
        "compose": ("compose", Options()),
        "devcontainer": ("devcontainer", Options(profile="devel")),
        "conda": ("conda", Options()),
    },
    "torch-debian12": {"compose": ("compose", Options(ipc="host"))},
}
"""Example -> folder -> target and options, besides the three profiles."""


def examples() -> dict[str, str]:
    """Path below the folder of examples -> content, of all that is made from the locks."""
    matrix = Matrix.shipped()
    found = {}
    for place in sorted(EXAMPLES.glob(f"*/{LOCK}")):
        name = place.parent.name
        lock = parse_lock(place.read_text(encoding="utf-8"), str(place))
        wanted: dict[str, tuple[str, Options]] = {
            profile: ("dockerfile", Options(profile=profile)) for profile in PROFILES
        }
        for folder, (target, options) in {**wanted, **MORE.get(name, {})}.items():
            try:
                files = import_module(TARGETS[target]).files(lock, matrix, options)
            except UsageError:
                if folder not in PROFILES:
                    raise
                continue  # there is no image of this kind for it
            for path, content in files.items():
                if Path(path).name != LOCK:
                    found[f"{name}/{folder}/{path}"] = content
    return found


def main() -> int:
    """Run the script."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="change the files")
    parser.add_argument("--check", action="store_true", help="exit 1 when they would change")
    args = parser.parse_args()
    made = examples()
    there = {
        path.relative_to(EXAMPLES).as_posix(): path.read_text(encoding="utf-8")
        for path in EXAMPLES.rglob("*")
        if path.is_file() and path.name != LOCK
    }
    differing = sorted(name for name in {*made, *there} if made.get(name) != there.get(name))
    for name in differing:
        before, after = there.get(name, ""), made.get(name, "")
        sys.stdout.writelines(
            difflib.unified_diff(
                before.splitlines(keepends=True), after.splitlines(keepends=True), name, name
            )
        )
        if not args.write:
            continue
        place = EXAMPLES / name
        if name in made:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(after, encoding="utf-8")
        else:
            place.unlink()
    return 1 if args.check and differing else 0


if __name__ == "__main__":
    sys.exit(main())
