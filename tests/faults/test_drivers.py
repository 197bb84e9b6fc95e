"""Driver libraries and nvidia-smi that hang, die, flood or refuse, in real processes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from envcheck.engine import judge
from envcheck.matrix.loader import Matrix
from envcheck.probe.live import Live
from envcheck.probe.record import Recorded
from envcheck.probe.snapshot import _payload, take_snapshot
from envcheck.probe.source import Command, Result, Source
from envcheck.rules import all_rules
from tests.cli.runner import environment
from tests.faults.conftest import doctor
from tests.faults.faulty import Faulty

NVML_CODES = (
    1,
    2,
    3,
    4,
    5,
    6,
    7,
    8,
    9,
    10,
    11,
    12,
    13,
    14,
    15,
    16,
    17,
    18,
    19,
    20,
    23,
    25,
    27,
    29,
    999,
)
CUDA_CODES: tuple[int, ...] = (
    1,
    2,
    3,
    4,
    34,
    35,
    36,
    46,
    100,
    101,
    200,
    201,
    209,
    214,
    222,
    300,
    302,
)
CUDA_CODES += (304, 400, 500, 700, 800, 802, 803, 804, 999)


@pytest.mark.parametrize(
    ("wish", "outcome"), [("hang", "timeout"), ("segv", "crash"), ("abort", "crash")]
)
def test_a_driver_library_that_hangs_or_dies(stubs: Path, wish: str, outcome: str) -> None:
    ran = doctor(
        "--timeout",
        "1" if wish == "hang" else "20",
        variables={
            "LD_LIBRARY_PATH": str(stubs / "full"),
            "NVIDIA_STUB_INIT": wish,
            "CUDA_STUB_INIT": wish,
        },
    )
    driver = ran.report["snapshot"]["host"]["driver"]
    assert (driver["nvml"]["outcome"], driver["libcuda"]["outcome"]) == (outcome, outcome)
    assert ran.report["verdict"] != "ok"


class Refusing(Faulty):
    """A recorded machine on which some programs answer something else."""

    def __init__(self, machine: Source, answers: Mapping[str, Result]) -> None:
        """Take the machine, and the answers by the programs' names."""
        super().__init__(machine, None, None)
        self._answers = answers

    def run(self, command: Command) -> Result:
        """The other answer, where there is one."""
        return self._answers.get(command.name) or super().run(command)


def test_every_error_code_is_an_answer(stubs: Path) -> None:
    """The libraries answer each code; the doctor keeps it, and never calls the machine well."""
    machine = Recorded(str(Path(__file__).resolve().parents[1] / "machines" / "h200x1"))
    tables = Matrix.shipped()
    codes = [
        (NVML_CODES[at % len(NVML_CODES)], CUDA_CODES[at % len(CUDA_CODES)])
        for at in range(max(len(NVML_CODES), len(CUDA_CODES)))
    ]
    for nvml, cuda in codes:
        live = Live(
            variables={
                "LD_LIBRARY_PATH": str(stubs / "full"),
                "NVIDIA_STUB_INIT": str(nvml),
                "CUDA_STUB_INIT": str(cuda),
            }
        )
        names = ("query_nvml", "query_libcuda")
        said = live.run_all(tuple(_payload(live, each, 10.0) for each in names))

        answers = {f"payload:{name}": each for name, each in zip(names, said, strict=True)}
        snapshot = take_snapshot(Refusing(machine, answers))
        driver = snapshot.host.driver
        assert (driver.nvml.code, driver.libcuda.code) == (nvml, cuda)
        report = judge(snapshot, tables, all_rules())
        assert [each for each in report.unknown if each.kind == "crashed"] == []
        assert report.verdict in {"error", "warning", "unknown"}, (nvml, cuda)


def smi(folder: Path, body: str) -> dict[str, str | None]:
    """An nvidia-smi in front of every other."""
    path = folder / "nvidia-smi"
    path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    path.chmod(0o755)
    return {"PATH": f"{folder}:{Path(sys.executable).parent}:/usr/bin:/bin"}


MEASURED = """
import resource, subprocess, sys
command = [sys.argv[1], "-m", "envcheck", "doctor", "--json"]
code = subprocess.call(command, stdout=subprocess.DEVNULL)
print(code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""
"""Starts the doctor from a small process: a child is charged with what its parent held then."""


def test_nvidia_smi_that_floods_a_gigabyte_takes_no_memory(tmp_path: Path) -> None:
    """The flood is stopped after some megabytes; the run stays small and short."""
    variables = smi(tmp_path, "exec head -c 1073741824 /dev/zero")
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, sys.executable],
        capture_output=True,
        text=True,
        cwd="/",
        env=environment(**variables),
        check=False,
    )
    assert done.stderr == ""
    code, kibibytes = map(int, done.stdout.split())
    assert code in {0, 1}
    assert kibibytes < 250_000
    assert time.monotonic() - started < 40


@pytest.mark.parametrize(
    "body",
    [
        "printf '\\033[2J\\377\\000{[<'",
        "echo 'NVIDIA-SMI ist fehlgeschlagen: Treiber nicht geladen'; exit 9",
        "trap '' TERM INT HUP; sleep 60",
    ],
    ids=["garbage", "german", "hang"],
)
def test_nvidia_smi_that_answers_nothing_of_use(tmp_path: Path, body: str) -> None:
    ran = doctor("--timeout", "1", variables=smi(tmp_path, body))
    driver = ran.report["snapshot"]["host"]["driver"]
    if driver["nvml"]["outcome"] != "ok":
        assert driver["smi"]["outcome"] in {"error", "timeout"}
        assert ran.report["verdict"] != "ok"


@pytest.mark.filterwarnings("ignore:Exception ignored:pytest.PytestUnraisableExceptionWarning")
def test_a_child_that_cannot_be_killed_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """As one in uninterruptible sleep: no signal ends it, and the others' answers still come."""
    from envcheck.probe import live

    children: list[int] = []

    def immune(pid: int, _signal: int) -> None:
        children.append(pid)

    kill = os.killpg
    monkeypatch.setattr(os, "killpg", immune)
    monkeypatch.setattr(live, "end_marked", lambda _marks: None)
    started = time.monotonic()
    stuck, well = Live().run_all(
        (
            Command(name="stuck", argv=("sleep", "47"), timeout=0.3),
            Command(name="well", argv=("echo", "answer")),
        )
    )
    assert time.monotonic() - started < 10
    assert (stuck.outcome, stuck.error) == (
        "timeout",
        "did not answer within 0.3 s and was stopped",
    )
    assert well.stdout == "answer\n"
    for pid in set(children):
        try:
            kill(pid, 9)
        except ProcessLookupError:
            continue


@pytest.fixture
def asleep() -> str:
    """How long a test's own processes sleep: by it they are told from all others."""
    return str(3000 + os.getpid() % 1000) + "." + str(time.monotonic_ns() % 10**6)


def sleeping(asleep: str) -> list[str]:
    done = subprocess.run(
        ["pgrep", "-f", f"^sleep {asleep}$"], capture_output=True, text=True, check=False
    )
    return done.stdout.split()


@pytest.mark.parametrize(
    "body",
    [
        "setsid sleep {} & sleep 60",
        "(setsid sleep {} &) ; sleep 60",
        "setsid sh -c 'setsid sleep {} & exit' ; sleep 60",
        "(setsid sleep {} &) ; yes",
        "(setsid sleep {} &) ; echo answer",
    ],
    ids=["session", "orphan", "orphan of a session", "flood", "held output"],
)
def test_grandchildren_in_sessions_of_their_own_are_ended(asleep: str, body: str) -> None:
    argv = ("/bin/sh", "-c", body.format(asleep))
    Live().run(Command(name="x", argv=argv, timeout=1.0, limit_bytes=100_000))
    assert sleeping(asleep) == []
