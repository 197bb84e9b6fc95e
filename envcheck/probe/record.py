"""Recorded machines: a folder that answers as the machine did.

    machine.toml    title, origin (real or edited), when, version of the recorder
    root/           files that were read
    paths.json      folders listed, paths looked at, absences and refusals
    variables.json  allow-listed variables
    commands.json   how programs ended; their outputs lie in commands/
    snapshot.json   the facts that the probe made of all this

Replay is strict: a recording made by this version of the recorder answers everything that the probe
asks, or the probe has changed and the recording is to be made anew.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envcheck.errors import NotRecordedError, RecordingError
from envcheck.model.codec import CodecError, decode, encode
from envcheck.probe.operating_system import RELEASE_FILES
from envcheck.probe.plain_folder import refuse_links
from envcheck.probe.redact import (
    KERNEL_COMMAND_LINE,
    Redactor,
    recorded_variables,
    telling_words,
)
from envcheck.probe.source import Command, Result, Stat

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeVar

    from envcheck.model.snapshot import Snapshot
    from envcheck.probe.source import Source

    T = TypeVar("T")

RECORDER_VERSION = 1
"""Raised when the probe asks something new; older recordings then have gaps, not errors."""

RECORDED_HOME = "/home/user"

_LIMIT = 100_000_000
"""Bytes of one file of a recording; the largest answer that a child may give is below it."""
_REFUSED = "refused"


class Recorder:
    """Passes every question on to a source and remembers the answers."""

    def __init__(self, source: Source) -> None:
        """Wrap a source."""
        self._source = source
        self._files: dict[str, str] = {}
        self._paths: dict[str, dict[str, Any]] = {}
        self._commands: dict[str, Result] = {}
        self.name = source.name

    @property
    def root(self) -> str:
        """The wrapped source's."""
        return self._source.root

    @property
    def variables(self) -> Mapping[str, str]:
        """The wrapped source's."""
        return self._source.variables

    def taken_at(self) -> str:
        """The wrapped source's."""
        return self._source.taken_at()

    def interpreter(self) -> str:
        """The wrapped source's."""
        return self._source.interpreter()

    def read(self, path: str) -> str | None:
        """Ask and remember."""
        text = self._keep(
            path, "read", lambda: self._source.read(path), lambda text: text is not None
        )
        if text is not None:
            self._files[path] = text
        return text

    def list(self, path: str) -> tuple[str, ...] | None:
        """Ask and remember."""
        return self._keep(
            path,
            "list",
            lambda: self._source.list(path),
            lambda names: None if names is None else list(names),
        )

    def stat(self, path: str) -> Stat | None:
        """Ask and remember."""
        return self._keep(
            path,
            "stat",
            lambda: self._source.stat(path),
            lambda facts: None if facts is None else encode(facts),
        )

    def run(self, command: Command) -> Result:
        """Ask and remember."""
        return self.run_all((command,))[0]

    def run_all(self, commands: tuple[Command, ...]) -> tuple[Result, ...]:
        """Ask and remember."""
        results = self._source.run_all(commands)
        self._commands.update(
            {each.name: result for each, result in zip(commands, results, strict=True)}
        )
        return results

    def _keep(self, path: str, verb: str, ask: Callable[[], T], form: Callable[[T], Any]) -> T:
        entry = self._paths.setdefault(path, {})
        try:
            answer = ask()
        except OSError as error:
            entry[verb] = {_REFUSED: error.strerror or str(error)}
            raise
        entry[verb] = form(answer)
        return answer

    def answers(self) -> dict[str, Any]:
        """All questions and answers so far as plain data: files, paths, commands; not redacted."""
        return {
            "files": dict(self._files),
            "paths": dict(self._paths),
            "commands": {name: encode(result) for name, result in self._commands.items()},
        }

    def save(self, folder: str, snapshot: Snapshot, title: str = "", origin: str = "real") -> None:
        """Write the recording, redacted, as a whole or not at all.

        Args:
            folder: must not exist yet, or be empty.
            snapshot: what the probe made of the answers.
            title: one line that says what machine this is.
            origin: `real`, or `edited` for one made out of another.

        Raises:
            RecordingError: the folder cannot be written.
        """
        import shutil
        import tempfile

        place = Path(folder)
        try:
            if place.exists() and any(place.iterdir()):
                msg = f"{folder}: already holds something; name a new folder"
                raise RecordingError(msg)
            place.parent.mkdir(parents=True, exist_ok=True)
            draft = Path(tempfile.mkdtemp(prefix=f".{place.name}-", dir=place.parent))
            try:
                self._write(draft, snapshot, title, origin)
                draft.chmod(0o755)
                draft.replace(place)
            except BaseException:
                shutil.rmtree(draft, ignore_errors=True)
                raise
        except OSError as error:
            msg = f"{folder}: {error.strerror or error}"
            raise RecordingError(msg) from error

    def _write(self, draft: Path, snapshot: Snapshot, title: str, origin: str) -> None:
        redact = Redactor(self._source.variables, self._source.read, home=RECORDED_HOME)
        (draft / "machine.toml").write_text(
            f"recorder = {RECORDER_VERSION}\n"
            f"title = {json.dumps(redact(title))}\n"
            f'origin = "{origin}"\n'
            f'taken_at = "{snapshot.taken_at}"\n'
            f"interpreter = {json.dumps(redact(self.interpreter()))}\n",
            encoding="utf-8",
        )
        for path, text in self._files.items():
            target = draft / _inside(redact(path))
            target.parent.mkdir(parents=True, exist_ok=True)
            if path in RELEASE_FILES:
                kept = text  # names nobody, though hosts are often called after a distribution
            elif path == KERNEL_COMMAND_LINE:
                kept = redact(telling_words(text))
            else:
                kept = redact(text)
            target.write_text(kept, encoding="utf-8", newline="")
        paths = {redact(path): facts for path, facts in self._paths.items()}
        _dump(draft / "paths.json", redact.data(paths))
        _dump(draft / "variables.json", redact.data(recorded_variables(self._source.variables)))
        (draft / "commands").mkdir()
        index = {}
        for name, result in sorted(self._commands.items()):
            facts = encode(result)
            stem = re.sub(r"[^\w.-]+", "-", name)
            for stream in ("stdout", "stderr"):
                text = redact(facts.pop(stream))
                if text:
                    (draft / "commands" / f"{stem}.{stream}").write_text(
                        text, encoding="utf-8", newline=""
                    )
            facts["file"] = stem
            index[name] = redact.data(facts)
        _dump(draft / "commands.json", index)
        _dump(draft / "snapshot.json", redact.data(encode(snapshot)))


def _inside(path: str) -> str:
    """Where a recording keeps a file; `..` never leads out of it."""
    import posixpath

    return "root" + posixpath.normpath("/" + path.lstrip("/"))


def _dump(path: Path, data: Any) -> None:
    path.write_text(json.dumps(data, indent=1, sort_keys=True) + "\n", encoding="utf-8")


class Recorded:
    """A recorded machine."""

    def __init__(self, folder: str) -> None:
        """Open a recording.

        Raises:
            RecordingError: it is not a recording, or a damaged one.
        """
        self._folder = Path(folder)
        if not self._folder.is_dir():
            msg = f"{folder}: no such folder"
            raise RecordingError(msg)
        refuse_links(self._folder)
        facts = self._machine_facts()
        self._version = facts.get("recorder")
        if type(self._version) is not int:
            msg = f"{folder}: machine.toml names no version of the recorder"
            raise RecordingError(msg)
        if self._version > RECORDER_VERSION:
            msg = f"{folder}: made by a newer recorder ({self._version}) than {RECORDER_VERSION}"
            raise RecordingError(msg)
        self._taken_at = str(facts.get("taken_at", ""))
        self._interpreter = str(facts.get("interpreter", "python3"))
        self._paths = self._json("paths.json")
        self._variables = self._json("variables.json")
        if not all(isinstance(value, str) for value in self._variables.values()):
            msg = f"{self._folder}/variables.json: a value is not text"
            raise RecordingError(msg)
        self._commands = self._json("commands.json")
        self.name = f"recorded:{self._folder.resolve().name}"
        self.root = str(self._folder / "root")

    @property
    def variables(self) -> Mapping[str, str]:
        """Allow-listed variables of the machine."""
        return self._variables

    def taken_at(self) -> str:
        """When it was recorded."""
        return self._taken_at

    def interpreter(self) -> str:
        """The interpreter that ran the payloads when it was recorded."""
        return self._interpreter

    def read(self, path: str) -> str | None:
        """Text of a file as it was."""
        if not self._answer(path, "read"):
            return None
        return self._text(_inside(path))

    def list(self, path: str) -> tuple[str, ...] | None:
        """Names in a folder as they were."""
        names = self._answer(path, "list")
        if names is None:
            return None
        if not isinstance(names, list) or not all(isinstance(each, str) for each in names):
            msg = f"{self._folder}/paths.json: list {path}: expected a list of names"
            raise RecordingError(msg)
        return tuple(names)

    def stat(self, path: str) -> Stat | None:
        """What a path was."""
        facts = self._answer(path, "stat")
        try:
            return None if facts is None else decode(Stat, facts, path)
        except CodecError as error:
            msg = f"{self._folder}/paths.json: {error}"
            raise RecordingError(msg) from error

    def run(self, command: Command) -> Result:
        """How a program ended, by its logical name."""
        facts = self._commands.get(command.name)
        if facts is None:
            self._not_recorded(f"program {command.name}")
            return Result(outcome="missing", error="not in this older recording")
        if not isinstance(facts, dict):
            msg = f"{self._folder}/commands.json: {command.name}: expected an object"
            raise RecordingError(msg)
        facts = dict(facts)
        stem = str(facts.pop("file", ""))
        outputs = {}
        for stream in ("stdout", "stderr"):
            relative = f"commands/{stem}.{stream}"
            outputs[stream] = self._text(relative) if (self._folder / relative).is_file() else ""
        try:
            return decode(Result, {**facts, **outputs}, command.name)
        except CodecError as error:
            msg = f"{self._folder}/commands.json: {error}"
            raise RecordingError(msg) from error

    def run_all(self, commands: tuple[Command, ...]) -> tuple[Result, ...]:
        """How programs ended."""
        return tuple(self.run(each) for each in commands)

    def _answer(self, path: str, verb: str) -> Any:
        entry = self._paths.get(path)
        if not isinstance(entry, dict) or verb not in entry:
            self._not_recorded(f"{verb} {path}")
            reason = "not in this older recording"
            raise OSError(0, reason)
        answer = entry[verb]
        if isinstance(answer, dict) and _REFUSED in answer:
            raise OSError(0, str(answer[_REFUSED]))
        return answer

    def _not_recorded(self, what: str) -> None:
        if self._version == RECORDER_VERSION:
            msg = f"{self._folder}: holds no answer to `{what}`; record the machine anew"
            raise NotRecordedError(msg)

    def _text(self, relative: str) -> str:
        """A file of the recording: nothing outside its folder, no link, no device, no giant."""
        import stat

        path = self._folder
        for part in relative.split("/"):
            if part in {"", ".", ".."}:
                msg = f"{self._folder}: refuses the path {relative!r}"
                raise RecordingError(msg)
            path /= part
        try:
            facts = path.lstat()
            if not stat.S_ISREG(facts.st_mode) or facts.st_size > _LIMIT:
                msg = f"{path}: not a plain file of at most {_LIMIT} bytes"
                raise RecordingError(msg)
            with path.open(encoding="utf-8", errors="replace", newline="") as stream:
                return stream.read()
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else None
            msg = f"{path}: {reason or error}"
            raise RecordingError(msg) from error

    def _machine_facts(self) -> dict[str, Any]:
        """machine.toml, which is written in the subset of TOML that JSON values make."""
        path = self._folder / "machine.toml"
        if not path.is_file():
            msg = f"{self._folder}: not a recorded machine (no machine.toml)"
            raise RecordingError(msg)
        facts: dict[str, Any] = {}
        for number, line in enumerate(self._text("machine.toml").splitlines(), 1):
            if not line.strip() or line.startswith("#"):
                continue
            name, equals, value = line.partition("=")
            try:
                facts[name.strip()] = json.loads(value)
            except (ValueError, RecursionError) as error:
                msg = f"{path}: line {number}: {error if equals else 'no value'}"
                raise RecordingError(msg) from error
        return facts

    def _json(self, name: str) -> dict[str, Any]:
        try:
            data = json.loads(self._text(name))
        except (ValueError, RecursionError) as error:
            msg = f"{self._folder / name}: {error}"
            raise RecordingError(msg) from error
        if not isinstance(data, dict):
            msg = f"{self._folder / name}: holds no JSON object"
            raise RecordingError(msg)
        return data
