"""Faults planted in the real framework are found, named, and leave nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.smoke.running import Run, failed, outcomes, planted, shared, wait_until

CPU = ("--device", "cpu", "--framework", "torch")
ALONE = (*CPU, "--distributed", "off")


def test_wrong_numbers(frameworks: Path, tmp_path: Path) -> None:
    """A convolution that is one per cent too large, in float32 only."""
    code = """
        import torch
        real = torch.nn.functional.conv2d
        def wrong(images, *args, **kwargs):
            made = real(images, *args, **kwargs)
            return made * 1.01 if made.dtype == torch.float32 else made
        torch.nn.functional.conv2d = wrong
    """
    status, report = Run(
        *ALONE, python=frameworks, **planted(tmp_path, "smoke_torch", code)
    ).finish()
    assert status == 1
    bad = {each["name"]: each["outcome"] for each in failed(report)}
    assert bad == {"convolution": "wrong", "training-step-fp32": "wrong"}
    (finding,) = [each for each in report["findings"] if each["severity"] == "error"]
    assert finding["id"] == "smoke-wrong-result"
    assert finding["title"] == "torch computes wrong numbers in convolution"
    assert finding["found"].startswith("the convolution differs from the reference by 0.01")


def test_a_crash_keeps_what_came_before(frameworks: Path, tmp_path: Path) -> None:
    code = """
        import ctypes
        import torch
        torch.nn.functional.conv2d = lambda *args, **kwargs: ctypes.string_at(0)
    """
    run = Run(*ALONE, python=frameworks, **planted(tmp_path, "smoke_torch", code))
    status, report = run.finish()
    assert (status, outcomes(report)["matmul-bf16"]) == (1, "ok")
    (stage,) = failed(report)
    assert (stage["name"], stage["outcome"]) == ("convolution", "crash")
    assert stage["detail"] == "its process was ended by SIGSEGV"
    assert any("Segmentation fault" in line for line in stage["output"])
    (finding,) = [each for each in report["findings"] if each["severity"] == "error"]
    assert (finding["id"], finding["title"]) == ("smoke-crashed", "torch crashes in convolution")
    assert run.left() == ([], set())


def test_a_library_that_cannot_be_loaded(frameworks: Path, tmp_path: Path) -> None:
    code = """
        import torch
        def refuse(*args, **kwargs):
            raise RuntimeError("Could not load library libcudnn_ops.so.9")
        torch.nn.functional.conv2d = refuse
    """
    status, report = Run(
        *ALONE, python=frameworks, **planted(tmp_path, "smoke_torch", code)
    ).finish()
    assert status == 1
    stage = failed(report)[0]
    assert (stage["name"], stage["outcome"]) == ("convolution", "error")
    assert stage["detail"] == "RuntimeError: Could not load library libcudnn_ops.so.9"
    # What does not need it goes on.
    assert outcomes(report)["data-loader"] == "ok"


def test_a_rank_that_hangs(frameworks: Path, tmp_path: Path) -> None:
    code = """
        import os, time
        import torch.distributed as dist
        if os.environ.get("RANK") == "1":
            dist.all_reduce = lambda *args, **kwargs: time.sleep(3600)
    """
    run = Run(*CPU, "--timeout", "15", python=frameworks, **planted(tmp_path, "smoke_ddp", code))
    status, report = run.finish()
    assert status == 1
    (stage,) = failed(report)
    assert (stage["name"], stage["outcome"]) == ("all-reduce", "timeout")
    assert stage["detail"] == "no answer within 15 s: rank 0, 1 in all-reduce"
    # Both say where they hang.
    assert any("in all_reduce" in line for line in stage["output"])
    (finding,) = [each for each in report["findings"] if each["severity"] == "error"]
    assert (finding["id"], finding["title"]) == ("smoke-timeout", "torch hangs in all-reduce")
    assert any("GLOO_SOCKET_IFNAME=lo" in c for fix in finding["fix"] for c in fix["commands"])
    assert run.left() == ([], set())


def test_a_rank_that_crashes(frameworks: Path, tmp_path: Path) -> None:
    code = """
        import os, signal
        import torch.distributed as dist
        if os.environ.get("RANK") == "1":
            dist.all_reduce = lambda *args, **kwargs: os.kill(os.getpid(), signal.SIGSEGV)
    """
    run = Run(*CPU, python=frameworks, **planted(tmp_path, "smoke_ddp", code))
    status, report = run.finish()
    assert status == 1
    (stage,) = failed(report)
    assert (stage["name"], stage["outcome"]) == ("all-reduce", "crash")
    assert stage["detail"].startswith("rank 1 was ended by SIGSEGV")
    assert run.left() == ([], set())


HANG = {
    # Workers of the DataLoader are alive, and a file of theirs lies in shared memory.
    "smoke_torch": """
        import smoke_plant_hang
    """,
    # Ranks lead sessions of their own.
    "smoke_ddp": """
        import smoke_plant_hang
    """,
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
if "smoke_ddp" in " ".join(sys.orig_argv):
    import torch.distributed
    torch.distributed.all_reduce = hang
else:
    import torch
    torch.full = hang
"""


@pytest.mark.parametrize("killed", [signal.SIGINT, signal.SIGKILL], ids=["ctrl-c", "killed"])
@pytest.mark.parametrize("script", list(HANG))
def test_nothing_is_left(
    frameworks: Path, tmp_path: Path, script: str, killed: signal.Signals
) -> None:
    """However the run ends, its workers, ranks and shared memory end with it."""
    (tmp_path / "smoke_plant_hang.py").write_text(HANG_MODULE, encoding="utf-8")
    name = f"envcheck-test-{os.getpid()}-{script}-{killed}"
    variables = planted(tmp_path, script, HANG[script])
    args = ALONE if script == "smoke_torch" else CPU
    run = Run(*args, python=frameworks, ENVCHECK_TEST_FILE=name, **variables)

    def hanging() -> bool:
        return len([each for each in shared() - run.shared if each.startswith(name)]) >= 2

    with run.start() as process:
        try:
            assert wait_until(hanging, 60.0), run.alive()
            process.send_signal(killed)
            code = process.wait(15)
        finally:
            if process.poll() is None:
                process.kill()
    assert code == (130 if killed == signal.SIGINT else -signal.SIGKILL)
    assert run.left() == ([], set())


def test_ctrl_c_at_the_very_start(frameworks: Path) -> None:
    for delay in (0.3, 1.0):
        run = Run(*ALONE, python=frameworks)
        with run.start() as process:
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(delay)
            process.send_signal(signal.SIGINT)
            assert process.wait(15) in {130, -signal.SIGINT}
        assert run.left() == ([], set())
