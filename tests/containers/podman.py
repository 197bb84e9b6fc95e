"""A private podman: storage of its own, and settings that work without systemd."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.containers.base_tree import cached_tree
from tests.containers.engine import BASE, EngineError, why_not

if TYPE_CHECKING:
    from collections.abc import Iterator

CDI_FOLDER = Path("/run/cdi")
"""The folder that podman reads specifications from, besides /etc/cdi."""

_SETTINGS = """\
[containers]
default_ulimits = [{limits}]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
tmp_dir = "{state}/tmp"
"""
_STORAGE = """\
[storage]
driver = "{driver}"
graphroot = "{state}/root"
runroot = "{state}/run"
"""


def podman_why_not() -> str | None:
    """Why there is no podman here; None when there is."""
    for program in ("podman", "runc", "unshare"):
        if shutil.which(program) is None:
            return f"{program} is not installed"
    return why_not()


class Podman:
    """A podman with a base image."""

    def __init__(self, state: Path) -> None:
        """Take a folder for everything that it keeps."""
        self.state = state
        self._conf, self._storage = state / "containers.conf", state / "storage.conf"
        limits = ", ".join(
            f'"{name}={soft}:{hard}"'
            for name, number in (
                ("nofile", resource.RLIMIT_NOFILE),
                ("nproc", resource.RLIMIT_NPROC),
            )
            for soft, hard in (_limits(number),)
        )
        self._conf.write_text(_SETTINGS.format(limits=limits, state=state))
        self._storage.write_text(_STORAGE.format(driver="overlay", state=state))

    @property
    def variables(self) -> dict[str, str | None]:
        """Variables by which podman finds this storage; there is no docker for them."""
        return {
            "CONTAINERS_CONF": str(self._conf),
            "CONTAINERS_STORAGE_CONF": str(self._storage),
            "DOCKER_HOST": f"unix://{self.state}/no-docker.sock",
        }

    def cli(self, *args: str | Path, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run podman.

        Raises:
            EngineError: it failed and `check` is set.
        """
        done = subprocess.run(
            ["podman", *map(str, args)],
            env={**os.environ, **{k: v for k, v in self.variables.items() if v is not None}},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if check and done.returncode:
            raise EngineError(f"podman {' '.join(map(str, args))}:\n{done.stderr[-3000:]}")
        return done


def _limits(number: int) -> tuple[int, int]:
    """Limits that this process may hand on; podman's own defaults are higher."""
    _, hard = resource.getrlimit(number)
    most = 20000 if hard == resource.RLIM_INFINITY else min(hard, 20000)
    return min(1024, most), most


@contextlib.contextmanager
def running_podman() -> Iterator[Podman]:
    """A podman with the base image, removed with all that it made at the end."""
    state = Path(tempfile.mkdtemp(prefix="envcheck-podman-"))
    try:
        podman = Podman(state)
        podman.cli("import", "--change", "CMD=/bin/bash", cached_tree(), f"localhost/{BASE}:latest")
        yield podman
    finally:
        text = Path("/proc/mounts").read_text(encoding="utf-8", errors="replace")
        places = [line.split()[1] for line in text.splitlines() if f" {state}/" in line]
        for place in sorted(places, key=len, reverse=True):
            subprocess.run(["umount", "-l", place], check=False, capture_output=True)
        shutil.rmtree(state, ignore_errors=True)


@contextlib.contextmanager
def specified(folder: Path) -> Iterator[tuple[str, ...]]:
    """A folder of CDI specifications in the place where podman looks for them.

    Gives the start of a command line; only what is run with it sees them.
    """
    made = not CDI_FOLDER.exists()
    CDI_FOLDER.mkdir(parents=True, exist_ok=True)
    try:
        script = f'mount --bind "{folder}" "{CDI_FOLDER}" && exec "$@"'
        yield ("unshare", "--mount", "sh", "-c", script, "sh")
    finally:
        if made:
            with contextlib.suppress(OSError):
                CDI_FOLDER.rmdir()
