"""Faults planted in the real framework are found, named, and leave nothing behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.smoke.running import NOT_ALONE, Run, failed, outcomes, planted, shared, wait_until
from tests.smoke.test_cpu import TORCH

CPU = ("--device", "cpu", "--framework", "torch")
ALONE = (*CPU, "--distributed", "off")

# A convolution that is one per cent too large, in float32 only; a library that cannot be loaded,
# for one stage; and in the last stage a crash.
THREE_FAULTS = """
    import ctypes
    import torch
    import torch.utils.checkpoint, torch.utils.data
    real = torch.nn.functional.conv2d
    def wrong(images, *args, **kwargs):
        made = real(images, *args, **kwargs)
        return made * 1.01 if made.dtype == torch.float32 else made
    def refuse(*args, **kwargs):
        raise RuntimeError("libgomp.so.1: cannot allocate memory in static TLS block")
    torch.nn.functional.conv2d = wrong
    torch.utils.checkpoint.checkpoint = refuse
    torch.utils.data.DataLoader = lambda *args, **kwargs: ctypes.string_at(0)
"""


def test_wrong_numbers_an_error_and_a_crash(frameworks: Path, tmp_path: Path) -> None:
    run = Run(*ALONE, python=frameworks, **planted(tmp_path, smoke_torch=THREE_FAULTS))
    status, report = run.finish()
    alone = {name: each for name, each in TORCH.items() if not name.startswith(("ddp", "all"))}
    # What a fault does not concern goes on.
    assert (status, outcomes(report)) == (
        1,
        {
            **alone,
            "convolution": "wrong",
            "training-step-fp32": "wrong",
            "checkpointing": "error",
            "data-loader": "crash",
        },
    )
    stages = {each["name"]: each for each in report["stages"]}
    wanted = "RuntimeError: libgomp.so.1: cannot allocate memory in static TLS block"
    assert stages["checkpointing"]["detail"] == wanted
    assert stages["data-loader"]["detail"] == "its process was ended by SIGSEGV"
    assert any("Segmentation fault" in line for line in stages["data-loader"]["output"])
    findings = {each["id"]: each for each in report["findings"] if each["severity"] == "error"}
    assert set(findings) == {"smoke-wrong-result", "smoke-crashed"}
    wrong = findings["smoke-wrong-result"]
    assert wrong["title"] == "torch computes wrong numbers in convolution"
    assert wrong["found"].startswith("the convolution differs from the reference by 0.01")
    crashed = findings["smoke-crashed"]
    assert crashed["title"] == "torch fails in checkpointing"
    assert any(
        (each["label"], each["value"]) == ("data-loader on cpu", "its process was ended by SIGSEGV")
        for each in crashed["evidence"]
    )
    assert run.left() == ([], set())


HANGS = """
    import os, time
    import torch.distributed as dist
    if os.environ.get("RANK") == "1":
        dist.all_reduce = lambda *args, **kwargs: time.sleep(3600)
"""
CRASHES = """
    import os, signal, sys
    import torch.distributed as dist
    def fail(*args, **kwargs):
        print("host:7:9 [1] misc/shmutils.cc:87 NCCL WARN Error while creating shared memory "
              "segment /dev/shm/nccl-Wd0fBc (size 9637888)", flush=True)
        os.kill(os.getpid(), signal.SIGSEGV)
    if os.environ.get("RANK") == "1":
        dist.all_reduce = fail
"""


Ended = tuple[int, dict[str, Any], Run]


@pytest.fixture(scope="module", autouse=True)
def ranks(
    frameworks: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Callable[[], Ended]]]:
    """Two runs over two ranks: in one of them a rank hangs, in one it crashes.

    They go on beside the other tests of this module, since one of them mostly waits.
    """
    # Loading PyTorch three times at once is no hang yet, on a machine as busy as this one is now.
    began = time.monotonic()
    subprocess.run([str(frameworks), "-c", "import torch"], check=True, cwd="/")
    patience = round(10 + 6 * (time.monotonic() - began))
    folder = tmp_path_factory.mktemp("ranks")
    runs = {
        name: Run(
            *(*CPU, *timeout),
            python=frameworks,
            **planted(folder / name, smoke_torch=NOT_ALONE, smoke_ddp=code),
        )
        for name, code, timeout in (
            ("hangs", HANGS, ("--timeout", str(patience))),
            ("crashes", CRASHES, ()),
        )
    }
    with ThreadPoolExecutor() as pool:
        ended = {name: pool.submit(run.finish) for name, run in runs.items()}
        yield {
            name: lambda name=name, run=run: (*ended[name].result(), run)  # type: ignore[misc]
            for name, run in runs.items()
        }


HANG_MODULE = """
import mmap, os, sys, time
path = os.environ["ENVCHECK_TEST_FILE"]
def leave_a_file():
    with open("/dev/shm/%s_%d" % (path, os.getpid()), "w+b") as file:
        file.write(b"x" * 4096)
        file.flush()
        return mmap.mmap(file.fileno(), 4096)
def hang(*args, **kwargs):
    kept = leave_a_file()
    time.sleep(3600)
def refuse(*args, **kwargs):
    raise RuntimeError("left out")
if "smoke_ddp" in " ".join(sys.orig_argv):
    # Ranks lead sessions of their own.
    import torch.distributed
    torch.distributed.all_reduce = hang
else:
    # Workers of the DataLoader are alive, and a file of theirs lies in shared memory.
    import torch
    torch.full = hang
    torch.optim.SGD = refuse
"""
HANG = "import smoke_plant_hang"


@pytest.mark.parametrize("script", ["smoke_torch", "smoke_ddp"])
def test_nothing_is_left(frameworks: Path, tmp_path: Path, script: str) -> None:
    """However the run ends, its workers, ranks and shared memory end with it."""
    (tmp_path / "smoke_plant_hang.py").write_text(HANG_MODULE, encoding="utf-8")
    variables = planted(tmp_path, **{"smoke_torch": NOT_ALONE, script: HANG})
    args = ALONE if script == "smoke_torch" else CPU
    ends = {signal.SIGINT: 130, signal.SIGKILL: -signal.SIGKILL}
    runs = {}
    for killed in ends:
        name = f"envcheck-test-{os.getpid()}-{script}-{killed}"
        runs[killed] = Run(*args, python=frameworks, ENVCHECK_TEST_FILE=name, **variables)

    def hanging() -> bool:
        return all(
            len([each for each in shared() if each.startswith(run.variables["ENVCHECK_TEST_FILE"])])
            >= 2
            for run in runs.values()
        )

    with ExitStack() as stack:
        started = {killed: stack.enter_context(run.start()) for killed, run in runs.items()}
        for process in started.values():
            stack.callback(process.kill)
        assert wait_until(hanging, 240.0), [run.alive() for run in runs.values()]
        for killed, process in started.items():
            process.send_signal(killed)
        assert {killed: process.wait(15) for killed, process in started.items()} == ends
    assert [run.left() for run in runs.values()] == [([], set()), ([], set())]


def test_ctrl_c_at_the_very_start(frameworks: Path) -> None:
    for delay in (0.3, 1.0):
        run = Run(*ALONE, python=frameworks)
        with run.start() as process:
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(delay)
            process.send_signal(signal.SIGINT)
            assert process.wait(15) in {130, -signal.SIGINT}
        assert run.left() == ([], set())


def test_a_rank_that_crashes(ranks: dict[str, Callable[[], Ended]]) -> None:
    """What NCCL wrote before is the cause, and the crash what it led to."""
    status, report, run = ranks["crashes"]()
    assert status == 1
    (stage,) = failed(report)
    assert (stage["name"], stage["outcome"]) == ("all-reduce", "crash")
    assert stage["detail"].startswith("rank 1 was ended by SIGSEGV")
    (finding,) = [each for each in report["findings"] if each["severity"] == "error"]
    assert (finding["id"], finding["consequences"]) == ("shm-too-small", ["smoke-crashed"])
    assert run.left() == ([], set())


def test_a_rank_that_hangs(ranks: dict[str, Callable[[], Ended]]) -> None:
    status, report, run = ranks["hangs"]()
    assert status == 1
    (stage,) = failed(report)
    assert (stage["name"], stage["outcome"]) == ("all-reduce", "timeout")
    assert re.fullmatch(r"no answer within \d+ s: rank 0, 1 in all-reduce", stage["detail"])
    # Both say where they hang.
    assert any("in all_reduce" in line for line in stage["output"])
    (finding,) = [each for each in report["findings"] if each["severity"] == "error"]
    assert (finding["id"], finding["title"]) == ("smoke-timeout", "torch hangs in all-reduce")
    assert any("GLOO_SOCKET_IFNAME=lo" in c for fix in finding["fix"] for c in fix["commands"])
    assert run.left() == ([], set())
