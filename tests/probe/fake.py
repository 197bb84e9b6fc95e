"""A machine in memory: files, links, refusals and how programs end."""

from __future__ import annotations

from collections.abc import Mapping

from envcheck.probe.notes import Notes
from envcheck.probe.quiet import Quiet
from envcheck.probe.source import Command, Result, Stat


class Fake:
    """Answers out of dictionaries; a folder exists when a file lies below it."""

    name = "fake"
    root = "/nonexistent"

    def __init__(
        self,
        files: Mapping[str, str] | None = None,
        *,
        links: Mapping[str, str] | None = None,
        stats: Mapping[str, Stat] | None = None,
        folders: tuple[str, ...] = (),
        refused: tuple[str, ...] = (),
        results: Mapping[str, Result] | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        """Take what the machine holds.

        Args:
            files: texts by path.
            links: targets by path.
            stats: facts of paths that are neither files, links nor plain folders.
            folders: empty folders.
            refused: paths that this user may not look at.
            results: how programs end, by logical name; others are missing.
            variables: environment.
        """
        self._files = dict(files or {})
        self._links = dict(links or {})
        self._stats = dict(stats or {})
        self._folders = set(folders)
        self._refused = refused
        self._results = dict(results or {})
        self._variables = dict(variables or {})
        for path in (*self._files, *self._links, *self._stats, *folders):
            parts = path.split("/")
            self._folders |= {"/".join(parts[:length]) or "/" for length in range(1, len(parts))}

    @property
    def variables(self) -> Mapping[str, str]:
        """Environment."""
        return self._variables

    def _check(self, path: str) -> None:
        if path in self._refused:
            raise PermissionError(13, "Permission denied", path)

    def read(self, path: str) -> str | None:
        """Text of a file."""
        self._check(path)
        return self._files.get(path)

    def list(self, path: str) -> tuple[str, ...] | None:
        """Names in a folder."""
        self._check(path)
        if path not in self._folders:
            return None
        inside = {*self._files, *self._links, *self._stats, *self._folders}
        start = path.rstrip("/") + "/"
        return tuple(
            sorted(
                {each[len(start) :].split("/")[0] for each in inside if each.startswith(start)}
                - {""}
            )
        )

    def stat(self, path: str) -> Stat | None:
        """Kind of a path."""
        self._check(path)
        if path in self._stats:
            return self._stats[path]
        if path in self._links:
            return Stat(kind="link", target=self._links[path], executable=True)
        if path in self._files:
            return Stat(kind="file", executable=True)
        return Stat(kind="directory") if path in self._folders else None

    def run(self, command: Command) -> Result:
        """How a program ends."""
        return self._results.get(
            command.name, Result(outcome="missing", error=f"{command.argv[0]}: not found")
        )

    def run_all(self, commands: tuple[Command, ...]) -> tuple[Result, ...]:
        """How programs end."""
        return tuple(self.run(each) for each in commands)

    def taken_at(self) -> str:
        """A fixed moment."""
        return "2026-01-01T00:00:00Z"

    def interpreter(self) -> str:
        """A path."""
        return "/usr/bin/python3"


def quiet(source: Fake) -> tuple[Quiet, Notes]:
    """What collectors get."""
    notes = Notes()
    return Quiet(source), notes


def done(stdout: str = "", code: int = 0, stderr: str = "") -> Result:
    """A program that ended by itself."""
    return Result(outcome="ok", code=code, stdout=stdout, stderr=stderr)
