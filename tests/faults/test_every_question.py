"""Every question of the probe goes wrong in every way: the doctor answers, and never says `ok`."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from envcheck.engine import judge
from envcheck.matrix.loader import Matrix
from envcheck.model.finding import Report
from envcheck.model.snapshot import Snapshot
from envcheck.probe.answers import MARKER
from envcheck.probe.record import Recorded
from envcheck.probe.snapshot import take_snapshot
from envcheck.probe.source import Result
from envcheck.rules import all_rules
from tests.faults.faulty import FAULTS, Faulty, Question, prints

MACHINES = Path(__file__).resolve().parents[1] / "machines"

OLD_DRIVER = "rtx4090-r575-cu130"
NO_DRIVER = "rtx3090-driver-missing"
SICK = (OLD_DRIVER, NO_DRIVER)

TRUE_OF = {
    OLD_DRIVER: {"driver-too-old", "driver-branch-ended"},
    NO_DRIVER: {"driver-missing", "driver-branch-ended"},
}
"""Findings that may be given on a machine, whatever else could not be learnt."""

LIES = frozenset({("list", "empty"), ("run", "silence"), ("stat", "absent"), ("read", "absent")})
"""Faults that no program could tell from a true answer."""


@functools.cache
def recorded(name: str) -> Recorded:
    return Recorded(str(MACHINES / name))


@functools.cache
def tables() -> Matrix:
    return Matrix.shipped()


@functools.cache
def judged(snapshot: Snapshot) -> Report:
    """Most faults leave the facts as they are: those are judged once."""
    return judge(snapshot, tables(), all_rules())


@functools.cache
def questions(name: str) -> tuple[Question, ...]:
    source = Faulty(recorded(name), None, None)
    assert judged(take_snapshot(source)).verdict == "error"
    return tuple(dict.fromkeys(source.asked))


def report(name: str, question: Question, fault: Callable[[Any], Any]) -> Report:
    found = judged(take_snapshot(Faulty(recorded(name), question, fault)))
    assert [each for each in found.unknown if each.kind == "crashed"] == []
    return found


@pytest.mark.parametrize("verb", list(FAULTS))
@pytest.mark.parametrize("name", SICK)
def test_a_failed_question_never_makes_a_sick_machine_well(name: str, verb: str) -> None:
    asked = [each for each in questions(name) if each.verb == verb]
    assert len(asked) >= 9
    for question in asked:
        for kind, fault in FAULTS[verb].items():
            found = report(name, question, fault)
            told = {each.id for each in found.findings if each.severity != "info"}
            assert found.verdict in {"error", "warning", "unknown"}, (question, kind)
            if found.verdict == "unknown":
                assert found.unknown, (question, kind)
            if (verb, kind) not in LIES:
                assert told <= TRUE_OF[name], (question, kind, told)


def leaves(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Places in plain data: every key, and the first item of every list or open dictionary."""
    if isinstance(data, dict):
        keys = list(data)[:1] if any("/" in str(key) for key in data) else list(data)
        for key in keys:
            yield (*path, key)
            yield from leaves(data[key], (*path, key))
    elif isinstance(data, list) and data:
        # The last of a long list shows that all are looked at.
        yield (*path, len(data) - 1)
        yield from leaves(data[-1], (*path, len(data) - 1))


def changed(text: str, path: tuple[Any, ...], change: Callable[[Any, Any], None]) -> str:
    data = json.loads(text)
    place = data
    for key in path[:-1]:
        place = place[key]
    change(place, path[-1])
    return f"{MARKER}{json.dumps(data)}\n"


def put(value: Any) -> Callable[[Any, Any], None]:
    def change(place: Any, key: Any) -> None:
        place[key] = value

    return change


def drop(place: Any, key: Any) -> None:
    del place[key]


CHANGES: dict[str, Callable[[Any, Any], None]] = {
    "gone": drop,
    "null": put(None),
    "number": put(-1),
    "text": put("\x1b[2J"),
    "truth": put(True),
    "list": put([None]),
    "object": put({"": []}),
}


@pytest.mark.parametrize("payload", ["query_nvml", "query_libcuda", "inspect_env"])
def test_an_answer_of_another_shape_is_no_answer(payload: str) -> None:
    """Each part of each payload's JSON is taken away or made something else."""
    question = Question("run", f"payload:{payload}")
    assert question in questions(OLD_DRIVER)
    stdout = (MACHINES / OLD_DRIVER / "commands" / f"payload-{payload}.stdout").read_text("utf-8")
    text = next(line[len(MARKER) :] for line in stdout.splitlines() if line.startswith(MARKER))
    paths = list(leaves(json.loads(text)))
    assert len(paths) > 5
    for path in paths:
        for kind, change in CHANGES.items():
            said: Callable[[Result], Result] = prints(changed(text, path, change))
            try:
                report(OLD_DRIVER, question, said)
            except Exception as error:
                raise AssertionError((path, kind)) from error


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{}", "printed no answer: $.binding?"),
        ("[]", "printed no answer: $ is no object"),
        (
            '{"binding": "x", "gpus": [{"index": true}]}',
            "printed no answer: $.gpus[0].index is no int",
        ),
        ("[" * 100_000, "printed something that is not JSON"),
    ],
)
def test_a_payload_that_answers_nothing_is_told(text: str, words: str) -> None:
    question = Question("run", "payload:query_nvml")
    source = Faulty(recorded(OLD_DRIVER), question, prints(f"{MARKER}{text}\n"))
    answer = take_snapshot(source).host.driver.nvml
    assert (answer.outcome, answer.message) == ("error", words)
