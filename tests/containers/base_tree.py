"""A base image without any image registry: a small Debian by debootstrap, kept between runs."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

INCLUDED = ("ca-certificates", "python3", "python3-pip", "python3-venv")
"""Beyond what apt itself needs: an interpreter, as the images have that programs are built on."""

_LAYOUT = "2"
"""Changes whenever what is done to a tree changes, so that kept ones are made anew."""

_CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
_OWN_CERTIFICATES = Path("/usr/local/share/ca-certificates")


def cached_tree() -> Path:
    """The tree as a tar file, made when it is not there yet.

    Returns:
        A file below the user's cache folder, named by everything that it depends on.

    Raises:
        RuntimeError: debootstrap failed; the end of its output is the message.
    """
    suite, mirror = _suite(), _mirror()
    key = hashlib.sha256(
        "\0".join((_LAYOUT, suite, mirror or "", *INCLUDED, _digest(_CERTIFICATES))).encode()
    ).hexdigest()[:12]
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    place = home / "envcheck-tests" / f"{suite}-{key}.tar"
    with only_one(place):
        if not place.is_file():
            # Beside its place, and renamed when whole: a run may be ended in the middle.
            with tempfile.TemporaryDirectory(prefix=f".{suite}-", dir=place.parent) as folder:
                draft = Path(folder) / "tree.tar"
                tree = Path(folder) / "tree"
                _bootstrap(tree, suite, mirror)
                _furnish(tree)
                subprocess.run(
                    ["tar", "--numeric-owner", "-C", str(tree), "-cf", str(draft), "."], check=True
                )
                draft.replace(place)
    return place


@contextlib.contextmanager
def only_one(place: Path) -> Iterator[None]:
    """Wait until no other process makes what is to be kept there."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with (place.parent / f".{place.name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _bootstrap(tree: Path, suite: str, mirror: str | None) -> None:
    done = subprocess.run(
        [
            "debootstrap",
            "--variant=minbase",
            f"--include={','.join(INCLUDED)}",
            suite,
            str(tree),
            *((mirror,) if mirror else ()),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"debootstrap {suite}: {done.stdout[-500:]}")


def _furnish(tree: Path) -> None:
    """Make the tree like the images that Dockerfiles start from, and able to use this network."""
    for folder in ("var/cache/apt/archives", "var/lib/apt/lists"):
        shutil.rmtree(tree / folder, ignore_errors=True)
        (tree / folder / "partial").mkdir(parents=True)
    settings = subprocess.run(["apt-config", "dump"], capture_output=True, text=True, check=False)
    wanted = [line for line in settings.stdout.splitlines() if re.match(r"Acquire::https?::", line)]
    (tree / "etc/apt/apt.conf.d/90test").write_text(
        "\n".join((*wanted, 'Dpkg::Options {"--force-unsafe-io";};', ""))
    )
    if _CERTIFICATES.is_file():
        shutil.copyfile(_CERTIFICATES, tree / _CERTIFICATES.relative_to("/"))
    # What the package ca-certificates makes its bundle from, should it be installed anew.
    for each in _OWN_CERTIFICATES.glob("*.crt"):
        shutil.copyfile(each, tree / each.relative_to("/"))
    # Python's own images have their interpreter here, and let pip install beside it.
    for path in (tree / "usr/lib").glob("python3*/EXTERNALLY-MANAGED"):
        path.unlink()
    for name, target in (("python", "python3"), ("python3", "python3"), ("pip", "pip3")):
        (tree / "usr/local/bin" / name).symlink_to(f"/usr/bin/{target}")


def _suite() -> str:
    """Code name of this distribution: its debootstrap has the keys for it."""
    text = Path("/etc/os-release").read_text(encoding="utf-8")
    match = re.search(r"^VERSION_CODENAME=(\w+)", text, re.MULTILINE)
    return match.group(1) if match else "stable"


def _mirror() -> str | None:
    """Where this machine gets its packages from; None for debootstrap's own idea."""
    files = [Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("*"))]
    for path in files:
        text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
        for line in text.splitlines():
            match = re.match(
                r"(?:URIs:|deb(?: \[.*?\])?)\s+(https?://\S+/(?:debian|ubuntu)/?)(?:\s|$)", line
            )
            if match:
                return match.group(1)
    return None


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
