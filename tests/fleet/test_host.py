"""What a host answers, asked in old Pythons too, and the snapshot that is made of it here."""

from __future__ import annotations

import ast
import base64
import io
import json
import os
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path
from typing import Any

import pytest

from envcheck.commands.fleet_host import answer
from envcheck.fleet.ansible import _heard
from envcheck.fleet.archive import build
from envcheck.fleet.host import Refused, snapshot_of
from envcheck.model.codec import encode
from envcheck.probe.live import Live
from envcheck.probe.record import Recorded
from envcheck.probe.snapshot import take_snapshot
from tests.fleet.recorded import MACHINES

NAMES = sorted(each.name for each in MACHINES.iterdir() if (each / "machine.toml").is_file())


def answers_of(machine: str, **options: Any) -> dict[str, Any]:
    """The answers of a recorded machine, as they travel."""
    data: dict[str, Any] = json.loads(
        json.dumps(answer(Recorded(str(MACHINES / machine)), options))
    )
    return data


@pytest.mark.parametrize("machine", NAMES)
def test_the_snapshot_is_the_one_that_the_host_would_make(machine: str) -> None:
    there = take_snapshot(Recorded(str(MACHINES / machine)))
    here = encode(snapshot_of(answers_of(machine)))
    assert here == {**encode(there), "source": "live"}


def test_what_was_not_asked_is_a_gap_and_no_absence() -> None:
    answers = answers_of("h200x1")
    for path in [each for each in answers["paths"] if each.startswith("/sys/bus/pci")]:
        del answers["paths"][path]
    del answers["commands"]["payload:query_nvml"]
    snapshot = snapshot_of(answers)
    assert snapshot.host.pci is None
    gap = snapshot.gap("host.pci")
    assert gap is not None
    assert "not asked on this host" in gap
    assert snapshot.host.gpus != ()


def test_a_crash_on_the_host_keeps_the_answers_before_it() -> None:
    class Failing(Recorded):
        def stat(self, path: str) -> Any:
            if "libcuda" in path:
                raise AssertionError(path)
            return super().stat(path)

    data = answer(Failing(str(MACHINES / "h200x1")), {})
    assert data["crash"].startswith("AssertionError: ")
    snapshot = snapshot_of(data)
    assert snapshot.host.driver.module_version == "580.159.04"
    assert any("the questions ended early: AssertionError" in each.reason for each in snapshot.gaps)


def test_an_environment_that_is_not_there_is_refused_by_the_host() -> None:
    data = answer(Live(), {"python": "/nonexistent"})
    with pytest.raises(Refused, match="--python /nonexistent: no such file or folder"):
        snapshot_of(data)


def test_only_variables_that_matter_leave_a_host() -> None:
    variables = {
        **os.environ,
        "HOME": "/home/someone",
        "AWS_SECRET_ACCESS_KEY": "x",
        "NCCL_DEBUG": "INFO",
    }
    data = answer(Live(variables), {"timeout": 5})
    assert "AWS_SECRET_ACCESS_KEY" not in data["variables"]
    assert data["variables"]["NCCL_DEBUG"] == "INFO"


@pytest.mark.parametrize(
    "change",
    [
        {"files": None},
        {"paths": {"/proc/version": 5}},
        {"commands": {"uname": {"outcome": "fine"}}},
        {"smoke": {"device": 1}},
        {"unheard-of": 1},
    ],
)
def test_damaged_answers_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError, KeyError, AttributeError)):
        snapshot_of({**answers_of("h200x1"), **change})


def event(kind: str, **result: Any) -> dict[str, Any]:
    return {"event": kind, "event_data": {"host": "h", "res": result}}


def packed(data: Any) -> str:
    return base64.b64encode(zlib.compress(json.dumps(data).encode())).decode()


@pytest.mark.parametrize(
    ("data", "outcome", "reason"),
    [
        (event("runner_on_ok", answer=packed({"taken_at": "x"})), "ok", ""),
        (event("runner_on_ok", answer="no base64!"), "failed", "its answer is damaged: Error"),
        (event("runner_on_ok", answer=packed([1])), "failed", "its answer is damaged: TypeError"),
        (event("runner_on_ok"), "failed", "its answer is damaged: TypeError"),
        (
            event("runner_on_unreachable", msg="ssh:\n  no route"),
            "unreachable",
            "ssh: no route",
        ),
        (
            event("runner_on_failed", msg="x", module_stderr='  File "a"\nSyntaxError: bad'),
            "failed",
            "its Python is too old for Ansible's modules (SyntaxError: bad)",
        ),
        (
            event("runner_on_failed", msg="x", module_stderr="sh: python3: not found\nmore"),
            "failed",
            "sh: python3: not found",
        ),
        (event("runner_on_failed", msg="the probe ended"), "failed", "the probe ended"),
    ],
)
def test_what_is_heard(data: dict[str, Any], outcome: str, reason: str) -> None:
    heard = _heard(data)
    assert heard is not None
    assert (heard.host, heard.outcome, heard.reason) == ("h", outcome, reason)


def test_an_answer_that_unpacks_to_too_much_is_damaged() -> None:
    bomb = base64.b64encode(zlib.compress(b"[" + b" " * (65 << 20) + b"]")).decode()
    heard = _heard(event("runner_on_ok", answer=bomb))
    assert heard is not None
    assert heard.outcome == "failed"


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is sent to hosts, unpacked."""
    folder = tmp_path_factory.mktemp("agent")
    with zipfile.ZipFile(io.BytesIO(build())) as archive:
        archive.extractall(folder)
    return folder


def test_the_archive_is_the_same_every_time() -> None:
    assert build() == build()
    assert len(build()) < 300_000


def test_the_archive_is_in_the_syntax_of_python_38(agent: Path) -> None:
    files = sorted(agent.rglob("*.py"))
    assert len(files) > 50
    for path in files:
        tree = ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 8))
        names = {each.attr for each in ast.walk(tree) if isinstance(each, ast.Attribute)}
        # Methods of str, which nothing can add to an old Python.
        assert not names & {"removeprefix", "removesuffix"}, path


def old_pythons() -> list[str]:
    """Interpreters older than envcheck's own, where this machine has some."""
    roots = [Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"]
    found = [str(each) for root in roots for each in sorted(root.glob("3.[89].*/bin/python3"))]
    return [*found, sys.executable]


@pytest.mark.parametrize("python", old_pythons())
def test_every_python_asks_the_same_questions(agent: Path, python: str, tmp_path: Path) -> None:
    """An old Python must not leave out a question of any recorded machine."""
    asked = {}
    for machine in NAMES:
        answers = answers_of(machine)
        asked[machine] = {
            "paths": {path: sorted(verbs) for path, verbs in answers["paths"].items()},
            "commands": sorted(answers["commands"]),
        }
        (tmp_path / f"{machine}.json").write_text(json.dumps(answers))
    done = subprocess.run(
        [python, "-I", "-S", "-B", "-c", _REPLAY, str(agent), str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
    )
    assert done.stderr == ""
    assert json.loads(done.stdout) == asked


_REPLAY = """\
import json, os, sys
sys.path.insert(0, sys.argv[1])
from envcheck.fleet.old_python import adapt
adapt()
from envcheck.commands.fleet_host import answer
from envcheck.probe.source import Result, Stat

class Source:
    name, root = "live", "/"
    def __init__(self, data):
        self.data, self.variables = data, data["variables"]
    def taken_at(self):
        return self.data["taken_at"]
    def interpreter(self):
        return self.data["interpreter"]
    def _answer(self, path, verb):
        found = self.data["paths"][path][verb]
        if isinstance(found, dict) and "refused" in found:
            raise OSError(0, found["refused"])
        return found
    def read(self, path):
        return self.data["files"][path] if self._answer(path, "read") else None
    def list(self, path):
        names = self._answer(path, "list")
        return None if names is None else tuple(names)
    def stat(self, path):
        facts = self._answer(path, "stat")
        return None if facts is None else Stat(**facts)
    def run(self, command):
        return self.run_all((command,))[0]
    def run_all(self, commands):
        return tuple(Result(**self.data["commands"][each.name]) for each in commands)

asked = {}
for name in sorted(os.listdir(sys.argv[2])):
    with open(os.path.join(sys.argv[2], name)) as file:
        data = answer(Source(json.load(file)), {})
    if "crash" in data or "error" in data:
        sys.exit(name + ": " + data.get("crash", data.get("error")))
    asked[name[:-len(".json")]] = {
        "paths": {path: sorted(verbs) for path, verbs in data["paths"].items()},
        "commands": sorted(data["commands"]),
    }
print(json.dumps(asked))
"""
"""Answers as a recorded machine did, in an interpreter of any age, and says what was asked."""


@pytest.mark.parametrize("python", old_pythons())
def test_a_live_machine_is_asked_in_any_python(agent: Path, python: str) -> None:
    done = subprocess.run(
        [python, "-I", "-S", "-B", str(agent), json.dumps({"timeout": 10, "deep": True})],
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
    )
    assert (done.returncode, done.stderr) == (0, "")
    data = json.loads(done.stdout)
    assert "crash" not in data
    snapshot = snapshot_of(data)
    live = take_snapshot(Live())
    assert snapshot.host.os == live.host.os
    assert snapshot.host.driver.version == live.host.driver.version
