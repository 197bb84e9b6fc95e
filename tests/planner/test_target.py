"""Targets in words, and targets that are machines."""

from __future__ import annotations

import pytest

from envcheck.errors import UndeterminedError, UsageError
from envcheck.model.plan import Target
from envcheck.model.snapshot import Snapshot
from envcheck.planner.target import parse_target, target_of
from tests.planner.asking import MATRIX, recorded
from tests.support import evolve, gpu, machine

READ = {
    "RTX 5090, driver 570, python 3.12": Target(
        gpus=("GeForce RTX 5090",),
        arches=("12.0",),
        driver="570",
        python="3.12",
        forward_compat=False,
    ),
    "2 x RTX 5090 with driver 570.133.20 python 3.12, on Ubuntu 24.04 LTS": Target(
        gpus=("GeForce RTX 5090", "GeForce RTX 5090"),
        arches=("12.0",),
        driver="570.133.20",
        os="ubuntu24.04",
        python="3.12",
        forward_compat=False,
    ),
    "2xH100, cuda 12.4, ubuntu 22.04": Target(
        gpus=("H100", "H100"),
        arches=("9.0",),
        driver="550",
        os="ubuntu22.04",
        forward_compat=True,
    ),
    "A100-SXM4-80GB x2; R535; py3.11": Target(
        gpus=("A100", "A100"), arches=("8.0",), driver="535", python="3.11", forward_compat=True
    ),
    "sm_90, aarch64": Target(arches=("9.0",), platform="linux_aarch64"),
    "GB200": Target(
        gpus=("GB200",), arches=("10.0",), platform="linux_aarch64", forward_compat=True
    ),
    "cpu, cp313, debian 12": Target(python="3.13", os="debian12"),
    "": Target(),
    "rhel 9.4, driver 580.95.05": Target(os="rhel9", driver="580.95.05"),
}


@pytest.mark.parametrize("text", READ)
def test_a_target_is_read(text: str) -> None:
    assert parse_target(text, MATRIX) == READ[text]


@pytest.mark.parametrize(
    ("nickname", "name"),
    [
        ("4090", "GeForce RTX 4090"),
        ("rtx4090", "GeForce RTX 4090"),
        ("NVIDIA GeForce RTX 3080 Ti", "GeForce RTX 3080 Ti"),
        ("3080ti", "GeForce RTX 3080 Ti"),
        ("GTX1080Ti", "GeForce GTX 1080 Ti"),
        ("1080 Ti", "GeForce GTX 1080 Ti"),
        ("v100", "Tesla V100"),
        ("L40S", "L40S"),
        ("NVIDIA H100 80GB HBM3", "H100"),
    ],
)
def test_gpus_are_known_by_what_people_call_them(nickname: str, name: str) -> None:
    assert parse_target(nickname, MATRIX).gpus == (name,)


WRONG = {
    "RTX 5900": "'RTX 5900' is not known: did you mean 'RTX 5090'?",
    "ubunto 24.04": "'ubunto 24.04' is not known: did you mean 'ubuntu 24.04'?",
    "qqqq wwww": "'qqqq wwww' is not known: name GPUs, 'driver N'",
    "driver 570, driver 580": "driver is given twice: 570 and 580",
    "driver 570, cuda 12.4": "driver 570 offers CUDA 12.8, not 12.4",
    "cuda 99.1": "no driver for CUDA 99.1 is known",
    "sm_42": "no GPU of compute capability 4.2 is known",
    "cpu, H100": "no GPU, and yet one is named",
    "0x H100": "0 GPUs: between 1 and 64",
    "999 x H100": "999 GPUs: between 1 and 64",
    "$(id)": "'$(id)' is not known",
    "x\x1b[31m'\"": "is not known",
    "../../etc/passwd": "'../../etc/passwd' is not known",
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_not_understood_is_said(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_target(text, MATRIX)
    assert WRONG[text] in str(caught.value)
    assert str(caught.value).startswith("--target: ")
    assert str(caught.value).isprintable()


def test_a_machine_is_a_target() -> None:
    assert target_of(recorded("h200x1"), MATRIX) == Target(
        gpus=("H200",),
        arches=("9.0",),
        driver="580.159.04",
        os="ubuntu24.04",
        python="3.12",
        forward_compat=True,
    )


def test_a_machine_without_driver_leaves_the_driver_open() -> None:
    target = target_of(recorded("rtx3090-driver-missing"), MATRIX)
    assert (target.gpus, target.arches, target.driver) == (("GeForce RTX 3090",), ("8.6",), None)


def test_after_a_mismatch_the_installed_release_counts() -> None:
    assert target_of(recorded("rtx3090-library-mismatch"), MATRIX).driver == "550.120"


def test_a_machine_without_gpu_is_a_target_for_the_cpu() -> None:
    target = target_of(recorded("debian12-toolkit-only"), MATRIX)
    assert (target.gpus, target.arches, target.driver, target.os) == ((), (), None, "debian12")


def test_a_machine_of_which_nothing_is_known_is_no_target() -> None:
    with pytest.raises(UndeterminedError, match="--target"):
        target_of(Snapshot(), MATRIX)


def test_another_system_than_linux_is_refused() -> None:
    windows = evolve(machine(), {"env.python.platform": "win_amd64"})
    with pytest.raises(UsageError, match="win_amd64"):
        target_of(windows, MATRIX)


def test_a_name_that_no_table_knows_loses_what_a_lock_may_not_hold() -> None:
    odd = machine(gpus=(gpu(name='Weird "GPU"\n$(id) / 9', arch="9.0"),))
    assert target_of(odd, MATRIX).gpus == ("Weird GPU id 9",)
