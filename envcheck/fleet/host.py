"""A machine that was asked elsewhere: its raw answers, put to the same probe once more.

A question that it was not asked has no answer, and becomes a gap of the snapshot, never an absence.
"""

from __future__ import annotations

import dataclasses
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envcheck.errors import EnvcheckError
from envcheck.model.base import model
from envcheck.model.codec import decode
from envcheck.model.smoke import Smoke
from envcheck.probe.operating_system import RELEASE_FILES
from envcheck.probe.snapshot import take_snapshot
from envcheck.probe.source import Command, Result, Stat

if TYPE_CHECKING:
    from collections.abc import Mapping

    from envcheck.model.environment import Framework
    from envcheck.model.snapshot import Snapshot

_NOT_ASKED = "not asked on this host"


@model
class _Answers:
    """What `commands/fleet_host.py` prints."""

    taken_at: str
    python: str | None = None
    """The environment that was asked for; None for the host's own choice."""
    deep: bool = False
    interpreter: str
    variables: dict[str, str]
    files: dict[str, str]
    paths: dict[str, dict[str, Any]]
    commands: dict[str, Any]
    error: str | None = None
    """Why the host could not be asked as wanted: a mistake of the one who asks."""
    crash: str | None = None
    """Why the questions ended early."""
    smoke: dict[str, Any] | None = None
    said: dict[str, dict[str, Any]] | None = None


class Refused(EnvcheckError):
    """A host's own words for why it cannot be asked this."""


class Host:
    """Answers of a host, as a source for the probe."""

    name = "live"

    def __init__(self, answers: _Answers, root: str) -> None:
        """Take the answers, and a folder for the files that must be read from one."""
        self._answers = answers
        self.root = root
        for path in RELEASE_FILES:
            if path in answers.files:
                place = Path(root + path)
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text(answers.files[path], encoding="utf-8", errors="replace")

    @property
    def variables(self) -> Mapping[str, str]:
        """Variables of the session on the host that matter."""
        return self._answers.variables

    def taken_at(self) -> str:
        """When it was asked."""
        return self._answers.taken_at

    def interpreter(self) -> str:
        """The Python that ran the probe there."""
        return self._answers.interpreter

    def read(self, path: str) -> str | None:
        """Text of a file; see `Source.read`."""
        return self._answers.files[path] if self._answer(path, "read") else None

    def list(self, path: str) -> tuple[str, ...] | None:
        """Names in a folder; see `Source.list`."""
        names = self._answer(path, "list")
        return None if names is None else tuple(map(str, names))

    def stat(self, path: str) -> Stat | None:
        """What a path is; see `Source.stat`."""
        facts = self._answer(path, "stat")
        return None if facts is None else decode(Stat, facts, path)

    def run(self, command: Command) -> Result:
        """How a program ended, by its logical name."""
        facts = self._answers.commands.get(command.name)
        if facts is None:
            return Result(outcome="missing", error=_NOT_ASKED)
        return decode(Result, facts, command.name)

    def run_all(self, commands: tuple[Command, ...]) -> tuple[Result, ...]:
        """How programs ended."""
        return tuple(self.run(each) for each in commands)

    def _answer(self, path: str, verb: str) -> Any:
        answers = self._answers.paths.get(path, {})
        if verb not in answers:
            raise OSError(0, _NOT_ASKED)
        answer = answers[verb]
        if isinstance(answer, dict) and "refused" in answer:
            raise OSError(0, str(answer["refused"]))
        return answer


def snapshot_of(data: dict[str, Any]) -> Snapshot:
    """The snapshot that a host's answers make.

    Args:
        data: what `commands/fleet_host.py` printed there.

    Raises:
        Refused: the host has no such environment, or nothing to run; the message is its own.
        ValueError, TypeError, KeyError, AttributeError: the answers are damaged.
    """
    answers = _Answers(**data)
    if answers.error is not None:
        raise Refused(answers.error)
    with tempfile.TemporaryDirectory(prefix="envcheck-host-") as root:
        snapshot = take_snapshot(Host(answers, root), python=answers.python, deep=answers.deep)
    if answers.crash is not None:
        from envcheck.model.snapshot import Gap

        gap = Gap(path="host", reason=f"the questions ended early: {answers.crash}")
        snapshot = dataclasses.replace(snapshot, gaps=(*snapshot.gaps, gap))
    if answers.smoke is not None:
        snapshot = _with_smoke(snapshot, answers)
    return snapshot


def _with_smoke(snapshot: Snapshot, answers: _Answers) -> Snapshot:
    frameworks = snapshot.env.frameworks
    if frameworks is not None:
        said = answers.said or {}
        frameworks = tuple(_told(each, said.get(each.name, {})) for each in frameworks)
    return dataclasses.replace(
        snapshot,
        env=dataclasses.replace(snapshot.env, frameworks=frameworks),
        smoke=decode(Smoke, answers.smoke),
    )


def _told(framework: Framework, said: dict[str, Any]) -> Framework:
    plain = {name: value for name, value in said.items() if value is not None}
    if "arches" in plain:
        plain["arches"] = tuple(map(str, plain["arches"]))
    return dataclasses.replace(framework, **plain)
