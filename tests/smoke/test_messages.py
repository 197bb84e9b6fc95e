"""Messages in the output of stages that failed, as causes."""

from __future__ import annotations

from argparse import Namespace

import pytest

from envcheck.commands.smoke import with_smoke
from envcheck.engine import judge
from envcheck.matrix.loader import Matrix
from envcheck.model.smoke import Smoke, Stage
from envcheck.probe.live import Live
from envcheck.rules import all_rules
from envcheck.smoke import run
from tests.support import evolve, machine

SEGMENT = (
    "[1] misc/shmutils.cc:87 NCCL WARN Error while creating shared memory segment "
    "/dev/shm/nccl-Wd0fBc (size 9637888)"
)
NOTHING = "[0] bootstrap.cc:45 NCCL WARN Bootstrap : no socket interface found"
LOOPBACK = "[0] NCCL INFO Bootstrap : Using lo:127.0.0.1<0>"
GLOO = (
    "[W] Unable to resolve hostname to a (local) address. Using the loopback address as fallback. "
    "Manually set the network interface with GLOO_SOCKET_IFNAME"
)
TWO = ("--nnodes=2",)


@pytest.mark.parametrize(
    ("line", "launcher", "cause"),
    [
        (SEGMENT, (), "shm-too-small"),
        (NOTHING, (), "nccl-wrong-interface"),
        (GLOO, TWO, "nccl-wrong-interface"),
        # Within one machine the loopback leads to everybody.
        (GLOO, (), None),
        (LOOPBACK, (), None),
    ],
)
@pytest.mark.parametrize("outcome", ["timeout", "error"])
def test_the_cause_of_a_failed_collective(
    monkeypatch: pytest.MonkeyPatch,
    line: str,
    launcher: tuple[str, ...],
    cause: str | None,
    outcome: str,
) -> None:
    stage = Stage(
        framework="torch",
        device="cuda:0,cuda:1",
        name="all-reduce",
        outcome="timeout" if outcome == "timeout" else "error",
        detail="no answer within 120 s",
        output=("[0] NCCL INFO NET/Plugin: none", line),
    )
    smoke = Smoke(device="cuda", stages=(stage,), seconds=1.0)
    monkeypatch.setattr(run, "run_smoke", lambda *_: run.Outcome(smoke=smoke))
    matrix = Matrix.shipped(None)
    args = Namespace(python=None, framework=("torch",), launcher=launcher)
    before = evolve(machine(), {"source": "live"})
    report = judge(with_smoke(before, Live(), args, matrix), matrix, all_rules())
    plain = "smoke-timeout" if outcome == "timeout" else "smoke-crashed"
    found = [(each.id, each.consequences) for each in report.findings if each.severity == "error"]
    assert found == ([(plain, ())] if cause is None else [(cause, (plain,))])
