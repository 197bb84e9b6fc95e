"""Wheels for builds without any network: fetched by this machine's pip, served to containers."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import subprocess
import sys
import tempfile
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

from tests.containers.base_tree import only_one

if TYPE_CHECKING:
    from collections.abc import Iterator

_PLATFORMS = tuple(f"manylinux_2_{minor}_x86_64" for minor in range(28, 4, -1))


class WheelsError(Exception):
    """The package index that this machine uses has not what is wanted; the message is pip's."""


def fetched(python: str, *requirements: str) -> Path:
    """A folder with these packages and all that they need.

    Args:
        python: release of the Python that they are for, `3.11`.
        requirements: as pip writes them.

    Raises:
        WheelsError: pip finds no wheel for one of them.
    """
    key = hashlib.sha256("\0".join((python, *requirements)).encode()).hexdigest()[:12]
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    place = home / "envcheck-tests" / f"wheels-{key}"
    with only_one(place):
        if not place.is_dir():
            _fetch(place, python, requirements)
    return place


def _fetch(place: Path, python: str, requirements: tuple[str, ...]) -> None:
    flags = [word for each in _PLATFORMS for word in ("--platform", each)]
    with tempfile.TemporaryDirectory(prefix=".wheels-", dir=place.parent) as folder:
        draft = Path(folder) / "wheels"
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "pip",
                "download",
                "--quiet",
                "--only-binary=:all:",
                f"--python-version={python}",
                *flags,
                "--dest",
                str(draft),
                *requirements,
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise WheelsError(done.stderr[-600:])
        draft.rename(place)


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@contextlib.contextmanager
def served(folder: Path, address: str) -> Iterator[str]:
    """Serve a folder at an address of this machine; gives the URL of its listing."""
    server = ThreadingHTTPServer((address, 0), functools.partial(_Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://{address}:{server.server_address[1]}/"
    finally:
        server.shutdown()
        server.server_close()


def pip_settings(url: str) -> str:
    """Settings by which pip takes packages from there and from nowhere else."""
    host = url.partition("://")[2].partition(":")[0]
    return (
        f"[global]\nno-index = true\nfind-links = {url}\ntrusted-host = {host}\n"
        "disable-pip-version-check = true\nroot-user-action = ignore\n"
        # Half of the time goes into byte code that hardly anything of is run.
        "no-compile = true\n"
    )
