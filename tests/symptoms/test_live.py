"""Messages in what a probe read itself."""

from __future__ import annotations

from envcheck.model.smoke import Smoke, Stage
from envcheck.symptoms.live import from_snapshot
from tests.support import evolve, machine, torch
from tests.symptoms.data import tables


def test_a_healthy_machine_says_nothing() -> None:
    assert from_snapshot(machine(frameworks=(torch(),)), tables()) == ()


def test_the_kernel_log_imports_and_failed_stages_are_read_and_told_apart() -> None:
    snapshot = evolve(
        machine(
            frameworks=(torch(error="ImportError: libcudnn.so.9: cannot open shared object file"),)
        ),
        {
            "host.driver.kernel_log": ("NVRM: GPU 0000:01:00.0: RmInitAdapter failed! (0x22)",),
            "smoke": Smoke(
                device="cuda",
                stages=(
                    Stage(
                        framework="torch",
                        device="cuda:0",
                        name="matmul",
                        outcome="error",
                        detail="CUDA error: uncorrectable ECC error encountered",
                    ),
                    Stage(
                        framework="torch",
                        device="cuda:0",
                        name="conv",
                        outcome="ok",
                        output=("CUDA out of memory. Tried to allocate 1 GiB",),
                    ),
                ),
            ),
        },
    )
    assert [(each.name, each.via) for each in from_snapshot(snapshot, tables())] == [
        ("gpu-init-adapter", "kernel log"),
        ("cudnn-not-loaded", "import torch"),
        ("library-load-failed", "import torch"),
        ("ecc-uncorrectable", "smoke matmul"),
    ]


def test_what_a_missing_libcuda_says_on_a_machine_without_a_gpu_is_no_symptom() -> None:
    snapshot = evolve(
        machine(driver=None, cuda=None, gpus=()),
        {"host.driver.libcuda.message": "libcuda.so.1: cannot open shared object file"},
    )
    assert from_snapshot(snapshot, tables()) == ()
