"""An image as a machine: its files are read, and nothing in it is run."""

from __future__ import annotations

import dataclasses
import json
import time
from typing import TYPE_CHECKING

from envcheck.image import interpreter as pythons
from envcheck.image import loader_cache
from envcheck.paths import payload
from envcheck.probe.answers import MARKER
from envcheck.probe.driver_files import LDCONFIG
from envcheck.probe.environment import INSPECT, READ_AS_FILES
from envcheck.probe.live import Live
from envcheck.probe.operating_system import GETCONF, UNAME
from envcheck.probe.source import Command, Result, Stat

if TYPE_CHECKING:
    from collections.abc import Mapping

    from envcheck.image.engine import Image
    from envcheck.image.tree import Tree

DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""What engines set where the image sets nothing."""
_MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
_USUAL = ("/opt/conda/bin/python", "/usr/local/bin/python3", "/usr/bin/python3", "/usr/bin/python")
_NOT_RUN = Result(outcome="missing", error="an image is read, and nothing in it is run")


class ImageFiles:
    """The files of an image, unpacked."""

    def __init__(self, tree: Tree, image: Image) -> None:
        """Take what was unpacked, and what the engine says of the image."""
        self.name = f"image:{image.reference}"
        self._tree = tree
        self._image = image
        self._variables = {"PATH": DEFAULT_PATH, **dict(image.variables)}

    @property
    def root(self) -> str:
        """Folder below which the files lie."""
        return str(self._tree.folder)

    @property
    def variables(self) -> Mapping[str, str]:
        """Environment that its programs would have."""
        return self._variables

    def taken_at(self) -> str:
        """Now, in UTC."""
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())

    def read(self, path: str) -> str | None:
        """Text of a file; OSError for one that is there and was not kept."""
        real = self._tree.resolve(path)
        entry = self._tree.entries.get(real) if real is not None else None
        if real is None or entry is None or entry.kind != "file":
            return None
        if not entry.kept:
            msg = f"{path}: not unpacked"
            raise OSError(msg)
        return self._tree.place(real).read_bytes().decode("utf-8", "replace")

    def list(self, path: str) -> tuple[str, ...] | None:
        """Names in a folder."""
        real = self._tree.resolve(path)
        names = self._tree.names.get(real) if real is not None else None
        return None if names is None else tuple(sorted(names))

    def stat(self, path: str) -> Stat | None:
        """What a path is."""
        entry = self._tree.entry(path)
        if entry is None:
            return None
        real = self._tree.resolve(path)
        behind = self._tree.entries.get(real) if real is not None else None
        return Stat(
            kind=entry.kind,
            mode=entry.mode,
            size=entry.size,
            target=entry.target,
            readable=True,
            executable=behind is not None
            and (behind.kind == "directory" or bool(behind.mode & 0o111)),
        )

    def interpreter(self) -> str:
        """A Python of the image, for where its PATH names none."""
        return next((each for each in _USUAL if self._tree.resolve(each)), _USUAL[-2])

    def run(self, command: Command) -> Result:
        """Answer from the files what can be answered from them."""
        if command.name in {INSPECT, READ_AS_FILES}:
            return self._inspect(command)
        if command.name == LDCONFIG.name:
            real = self._tree.resolve("/etc/ld.so.cache")
            if real is None or not self._tree.entries[real].kept:
                return Result(outcome="ok", code=0)
            text = loader_cache.listing(self._tree.place(real).read_bytes())
            return Result(outcome="ok", code=0, stdout=text)
        if command.name == UNAME.name:
            machine = _MACHINES.get(self._image.architecture or "", self._image.architecture or "")
            return Result(outcome="ok", code=0, stdout=f"{machine}\n")
        if command.name == GETCONF.name:
            library = pythons.c_library(self._tree) or ""
            return Result(outcome="ok", code=0, stdout=f"{library}\n")
        return _NOT_RUN

    def run_all(self, commands: tuple[Command, ...]) -> tuple[Result, ...]:
        """Answer each."""
        return tuple(map(self.run, commands))

    def _quiet_read(self, path: str) -> str | None:
        try:
            return self.read(path)
        except OSError:
            return None

    def _inspect(self, command: Command) -> Result:
        """Let the payload read the unpacked files, and give its answer the paths of the image."""
        given = _options(command.argv)
        python: pythons.Interpreter | None = None
        if "--prefix" in given:
            prefix, sites = given["--prefix"][0], tuple(given.get("--site", ()))
        else:
            path = command.argv[0]
            if self._tree.resolve(path) is None:
                return Result(outcome="missing", error=f"{path}: not in the image")
            python = pythons.look(
                self._tree, path, self._quiet_read, self._variables, self._image.user
            )
            prefix, sites = python.prefix, python.sites
        arguments = ["--root", self.root, "--prefix", self._outside(prefix)]
        for site in sites:
            arguments += ["--site", self._outside(site)]
        for folder in given.get("--library-folder", ()):
            arguments += ["--library-folder", self._outside(folder)]
        if python is not None and python.real is not None:
            arguments += ["--like", self._outside(python.real)]
        live = Live()
        result = live.run(
            dataclasses.replace(
                command,
                argv=(live.interpreter(), str(payload("inspect_env")), *arguments),
                timeout=max(command.timeout, 60.0),
            )
        )
        return self._translated(result, python)

    def _outside(self, path: str) -> str:
        return f"{self.root}/{path.lstrip('/')}" if path != "/" else self.root

    def _translated(self, result: Result, python: pythons.Interpreter | None) -> Result:
        """The payload's answer with the image's own paths, and what is known of its Python."""
        # In JSON a path needs no quoting that its prefix would not need too.
        text = result.stdout.replace(json.dumps(self.root, ensure_ascii=False)[1:-1] + "/", "/")
        head, marker, tail = text.rpartition(MARKER)
        if not marker or python is None:
            return dataclasses.replace(result, stdout=text)
        try:
            data = json.loads(tail)
        except ValueError:
            return dataclasses.replace(result, stdout=text)
        data["python"] = pythons.facts(
            self._tree, python, self._quiet_read, self._variables, self._image.architecture
        )
        return dataclasses.replace(result, stdout=f"{head}{marker}{json.dumps(data)}\n")


def _options(argv: tuple[str, ...]) -> dict[str, list[str]]:
    """Options of the payload, which stand behind interpreter and script."""
    found: dict[str, list[str]] = {}
    for option, value in zip(argv[2::2], argv[3::2], strict=False):
        found.setdefault(option, []).append(value)
    return found
