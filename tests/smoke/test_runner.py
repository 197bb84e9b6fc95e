"""The runner with stand-in interpreters: what children report, and what their end says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from envcheck.model.smoke import Stage
from envcheck.paths import payload
from envcheck.smoke.run import Request, run_smoke, start_early
from envcheck.smoke.tracker import telling
from tests.smoke.running import wait_until

HEAD = f"""#!{sys.executable}
import json, os, sys, time
script = next((w for w in sys.argv if w.endswith(".py")), "")
asked = json.loads(sys.argv[-1])
def say(event, **facts):
    record = {{"event": event, "framework": "torch", "device": "cuda", **facts}}
    print("envcheck-json:" + json.dumps(record), flush=True)
def ok(name, device, **facts):
    say("begin", name=name, device=device, **facts)
    say("stage", name=name, device=device, outcome="ok", seconds=0.5, metrics=[], **facts)
"""


def scripted(tmp_path: Path, code: str, **facts: Any) -> Request:
    """A smoke test whose interpreter is a script."""
    script = tmp_path / "python"
    script.write_text(HEAD + code, encoding="utf-8")
    script.chmod(0o755)
    return Request(
        frameworks=("torch",),
        interpreter=str(script),
        own=sys.executable,
        **{"timeout": 5.0, **facts},
    )


def run(tmp_path: Path, code: str, **facts: Any) -> tuple[Stage, ...]:
    """Stages of a smoke test whose interpreter is a script."""
    return run_smoke(scripted(tmp_path, code, **facts), dict(os.environ)).smoke.stages


def brief(stages: tuple[Stage, ...]) -> list[tuple[str, str, str]]:
    return [(each.device, each.name, each.outcome) for each in stages]


def test_the_next_gpu_gets_a_new_process(tmp_path: Path) -> None:
    """The first of three GPUs kills the process, the second loses its context."""
    code = """
ok("import", "cuda")
gpus = [0, 1, 2] if asked["gpus"] is None else asked["gpus"]
say("devices", indices=gpus)
for at in gpus:
    say("begin", name="context", device=f"cuda:{at}")
    if at == 0:
        os.kill(os.getpid(), 11)
    outcome = "error" if at == 1 else "ok"
    say("stage", name="context", device=f"cuda:{at}", outcome=outcome, seconds=0.1, detail="lost")
    say("done", index=at)
    if at == 1:
        sys.exit(1)
"""
    stages = run(tmp_path, code, distributed=False)
    assert brief(stages) == [
        ("cuda", "import", "ok"),
        ("cuda:0", "context", "crash"),
        ("cuda:1", "context", "error"),
        ("cuda:2", "context", "ok"),
    ]


def test_peer_access_is_tried_as_the_cause_of_a_hang(tmp_path: Path) -> None:
    code = """
if script.endswith("smoke_torch.py"):
    ok("import", "cuda")
    say("devices", indices=[0, 1])
    say("done", index=0), say("done", index=1)
    sys.exit()
for rank in (0, 1):
    ok("ddp-init", f"cuda:{rank}", rank=rank)
    say("begin", name="all-reduce", device=f"cuda:{rank}", rank=rank)
print("h100-7:41:55 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM", flush=True)
if os.environ.get("NCCL_P2P_DISABLE") != "1":
    time.sleep(60)
for rank in (0, 1):
    say("stage", name="all-reduce", device=f"cuda:{rank}", rank=rank, outcome="ok", seconds=0.1,
        metrics=[{"name": "bus_bandwidth", "value": 9.5, "unit": "GB/s"}])
"""
    stages = run(tmp_path, code, timeout=3.0)
    both = "cuda:0,cuda:1"
    assert brief(stages) == [
        ("cuda", "import", "ok"),
        (both, "ddp-init", "ok"),
        (both, "all-reduce", "timeout"),
        (both, "all-reduce-without-p2p", "ok"),
    ]
    hung, works = stages[2:]
    assert hung.detail == "no answer within 3 s: rank 0, 1 in all-reduce"
    # The log without the name of the machine.
    assert hung.output == ("[0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM",)
    assert (works.detail, works.metrics[0].value) == ("NCCL_P2P_DISABLE=1", 9.5)


def test_torchrun_gets_what_was_passed(tmp_path: Path) -> None:
    code = """
if script.endswith("smoke_torch.py"):
    ok("import", "cuda")
    say("devices", indices=[0])
    say("done", index=0)
else:
    ok("ddp-init " + " ".join(w for w in sys.argv[1:] if w.startswith("-")), "cuda:0", rank=0)
"""
    launcher = ("--nnodes=2", "--rdzv-backend=c10d", "--rdzv-endpoint=node1:29500")
    (_, stage) = run(tmp_path, code, launcher=launcher)
    assert stage.name == (
        "ddp-init -m --nnodes=2 --rdzv-backend=c10d --rdzv-endpoint=node1:29500 --nproc-per-node=1"
    )
    # One process alone has nobody to talk to.
    assert brief(run(tmp_path, code)) == [("cuda", "import", "ok")]


@pytest.mark.parametrize(
    ("code", "stage", "detail"),
    [
        ("sys.stderr.write('no such thing\\n'); sys.exit(3)", "start", "status 3: no such thing"),
        ("os.kill(os.getpid(), 9)", "start", "SIGKILL (was the machine out of memory?)"),
        ("ok('import', 'cuda'); os.kill(os.getpid(), 6)", "exit", "SIGABRT"),
        ("say('begin', name='import'); time.sleep(60)", "import", "no answer within 1 s"),
    ],
)
def test_ends_that_no_stage_reports(tmp_path: Path, code: str, stage: str, detail: str) -> None:
    last = run(tmp_path, code + "\n", timeout=1.0, distributed=False)[-1]
    assert (last.name, detail in last.detail) == (stage, True), last


def test_nonsense_on_the_way_is_no_event(tmp_path: Path) -> None:
    code = """
print("envcheck-json: {not json", flush=True)
print("envcheck-json:[1, 2]", flush=True)
print("envcheck-json:" + json.dumps({"event": 7}), flush=True)
sys.stdout.buffer.write(b"\\xff\\xfe\\n")
say("stage", name="import", outcome="surprise", seconds="soon", metrics=[{"value": "x"}, 3])
"""
    (stage,) = run(tmp_path, code, distributed=False)
    assert (stage.outcome, stage.seconds, stage.metrics) == ("error", None, ())


def test_an_environment_without_interpreter() -> None:
    request = Request(frameworks=("torch",), own=sys.executable, reason="bin/python: gone")
    (stage,) = run_smoke(request, dict(os.environ)).smoke.stages
    assert (stage.name, stage.outcome, stage.detail) == ("start", "error", "bin/python: gone")


def test_an_interpreter_that_cannot_start(tmp_path: Path) -> None:
    request = Request(frameworks=("torch",), interpreter=str(tmp_path / "none"), own=sys.executable)
    (stage,) = run_smoke(request, dict(os.environ)).smoke.stages
    assert (stage.name, stage.outcome) == ("start", "error")
    assert "No such file or directory" in stage.detail


def test_the_telling_lines_of_a_long_log_are_kept() -> None:
    lines = [f"host:1:2 [0] NCCL INFO line {at}" for at in range(200)]
    lines[20] = "host:1:2 [0] NCCL WARN Call to posix_fallocate failed : No space left on device"
    kept = telling(lines)
    assert len(kept) == 40
    assert kept[0] == "[0] NCCL WARN Call to posix_fallocate failed : No space left on device"
    assert kept[-1] == "[0] NCCL INFO line 199"
    assert json.dumps(kept).count("host") == 0


WAITS = """
ok("import", "cuda")
said = os.environ["SAID"]
with open(said, "a") as file:
    file.write(f"{os.getpid()} held={asked['held']}\\n")
if asked["held"]:
    assert os.read(0, 1)
    with open(said, "a") as file:
        file.write("went on\\n")
ok("context", "cuda:0")
"""


def test_what_was_started_early_waits_and_is_then_used(tmp_path: Path) -> None:
    said = tmp_path / "said"
    request = scripted(tmp_path, WAITS, distributed=False)
    variables = {**os.environ, "SAID": str(said)}
    early = start_early(request, variables)
    assert early is not None
    try:
        assert wait_until(said.exists)
        assert not wait_until(lambda: "went on" in said.read_text(), 0.3)
        smoke = run_smoke(request, variables, early=early).smoke
    finally:
        early.close()
    assert brief(smoke.stages) == [("cuda", "import", "ok"), ("cuda:0", "context", "ok")]
    assert [line.split()[-1] for line in said.read_text().splitlines()] == ["held=True", "on"]


def test_a_wrong_guess_is_ended(tmp_path: Path) -> None:
    said = tmp_path / "said"
    request = scripted(tmp_path, WAITS, distributed=False)
    variables = {**os.environ, "SAID": str(said)}
    early = start_early(request, variables)
    assert early is not None
    assert wait_until(said.exists)
    other = scripted(tmp_path, WAITS, distributed=False, gpus=(1,))
    stages = run_smoke(other, variables, early=early).smoke.stages
    first, second = said.read_text().splitlines()
    assert (brief(stages)[-1], second.split()[-1]) == (("cuda:0", "context", "ok"), "held=False")
    assert not Path("/proc", first.split()[0]).exists()


@pytest.mark.parametrize("framework", ["torch", "jax", "tensorflow"])
def test_a_held_payload_does_nothing_after_the_import(tmp_path: Path, framework: str) -> None:
    """Nothing of CUDA starts before the machine has been looked at: stdin ends without a byte."""
    for name in (framework, "numpy"):
        (tmp_path / f"{name}.py").touch()
    done = subprocess.run(
        [sys.executable, str(payload(f"smoke_{framework}")), json.dumps({"held": True})],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    events = [json.loads(line.partition(":")[2]) for line in done.stdout.split("\n") if line]
    assert [(each["event"], each["name"]) for each in events] == [
        ("begin", "import"),
        ("stage", "import"),
    ]
    assert (done.returncode, events[-1]["outcome"]) == (1, "ok")
