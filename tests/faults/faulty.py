"""A recorded machine on which one question of the probe goes wrong."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

from envcheck.errors import NotRecordedError
from envcheck.probe.source import Command, Result, Source, Stat

T = TypeVar("T")

MEGABYTE = "0123456789abcde\n" * 65536
GARBAGE = "\x00\x01\x1b]0;x\x07{[<\"'`%s\\\n\u202e\n:::=,,\n-\n"
GERMAN = (
    "Fehler: Datei oder Verzeichnis nicht gefunden\n"
    "NVIDIA-SMI ist fehlgeschlagen, da es nicht mit dem NVIDIA-Treiber kommunizieren konnte.\n"
    "Treiberversion: nicht verf\u00fcgbar; CUDA-Version: k. A.\n"
)
UNDECODABLE = "\ufffd\ufffd\x00\ufffd=\ufffd\n\ufffd"
"""What is left of bytes that are no UTF-8."""


class Question(NamedTuple):
    """One thing that the probe asks: a verb of `Source`, and a path or a program's name."""

    verb: str
    key: str


def refused(_answer: Any) -> Any:
    raise PermissionError(13, "Permission denied")


def broken(_answer: Any) -> Any:
    raise OSError(5, "Input/output error")


def looped(_answer: Any) -> Any:
    raise OSError(40, "Too many levels of symbolic links")


def absent(_answer: Any) -> Any:
    return None


def says(text: str) -> Callable[[Any], Any]:
    """The file holds this text, if there is one."""
    return lambda answer: None if answer is None else text


def prints(text: str, code: int = 0) -> Callable[[Result], Result]:
    """The program prints this text on both outputs."""
    return lambda _answer: Result(outcome="ok", code=code, stdout=text, stderr=text)


def ends(**facts: Any) -> Callable[[Result], Result]:
    """The program ends so."""
    return lambda _answer: Result(**facts)


def half(answer: Result) -> Result:
    """The program was stopped in the middle of its answer."""
    text = answer.stdout
    return dataclasses.replace(
        answer, outcome="timeout", code=None, stdout=text[: len(text) // 2], error="flood"
    )


FAULTS: Mapping[str, Mapping[str, Callable[[Any], Any]]] = {
    "read": {
        "refused": refused,
        "broken": broken,
        "absent": absent,
        "empty": says(""),
        "garbage": says(GARBAGE),
        "german": says(GERMAN),
        "megabyte": says(MEGABYTE),
        "undecodable": says(UNDECODABLE),
    },
    "list": {
        "refused": refused,
        "broken": broken,
        "absent": absent,
        "empty": lambda answer: None if answer is None else (),
        "garbage": lambda answer: None if answer is None else ("\x1b[2J", "a\nb", "\ufffd", "..."),
    },
    "stat": {
        "refused": refused,
        "looped": looped,
        "absent": absent,
        "other": lambda answer: None if answer is None else Stat(kind="other"),
    },
    "run": {
        "missing": ends(outcome="missing", error="Resource temporarily unavailable"),
        "timeout": ends(outcome="timeout", error="did not answer within 10 s and was stopped"),
        "crash": ends(outcome="crash", code=-11),
        "unknown signal": ends(outcome="crash", code=-99),
        "silence": prints(""),
        "failure": prints("", 1),
        "garbage": prints(GARBAGE),
        "german": prints(GERMAN),
        "megabyte": prints(MEGABYTE, 1),
        "undecodable": prints(UNDECODABLE),
        "half": half,
        "no object": prints("envcheck-json:[1]\n"),
        "empty object": prints("envcheck-json:{}\n"),
        "deep": prints("envcheck-json:" + "[" * 100_000 + "\n"),
    },
}


class Faulty:
    """Passes every question on but one, whose answer a fault replaces."""

    def __init__(
        self, source: Source, question: Question | None, fault: Callable[[Any], Any] | None
    ) -> None:
        """Take a machine, the question, and what becomes of its answer; `asked` tells all."""
        self._source = source
        self._question = question
        self._fault = fault
        self.asked: list[Question] = []
        self.name = source.name
        self.root = source.root

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

    def _pass(self, verb: str, key: str, ask: Callable[[], T]) -> T:
        question = Question(verb, key)
        self.asked.append(question)
        if question != self._question or self._fault is None:
            return ask()
        replaced: T = self._fault(ask())
        return replaced

    def _file(self, verb: str, path: str, ask: Callable[[str], T | None]) -> T | None:
        """A fault may lead to questions that the recording cannot know: there nothing is there."""

        def known() -> T | None:
            try:
                return ask(path)
            except NotRecordedError:
                return None

        return self._pass(verb, path, known)

    def read(self, path: str) -> str | None:
        """Text of a file, or the fault."""
        return self._file("read", path, self._source.read)

    def list(self, path: str) -> tuple[str, ...] | None:
        """Names in a folder, or the fault."""
        return self._file("list", path, self._source.list)

    def stat(self, path: str) -> Stat | None:
        """What a path is, or the fault."""
        return self._file("stat", path, self._source.stat)

    def run(self, command: Command) -> Result:
        """How a program ends, or the fault."""

        def known() -> Result:
            try:
                return self._source.run(command)
            except NotRecordedError:
                return Result(outcome="missing", error=f"{command.argv[0]}: not found")

        return self._pass("run", command.name, known)

    def run_all(self, commands: tuple[Command, ...]) -> tuple[Result, ...]:
        """How programs end, or the fault."""
        return tuple(self.run(each) for each in commands)
