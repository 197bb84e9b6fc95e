"""Differences from a lock, one field at a time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from envcheck.engine import exit_code, judge
from envcheck.model.environment import Framework, Package
from envcheck.model.finding import Drift
from envcheck.planner.drift import compare
from envcheck.planner.lock import parse_lock
from envcheck.rules import all_rules
from tests.planner.asking import MATRIX
from tests.support import evolve, gpu, machine, torch

LOCK = parse_lock(
    (Path(__file__).parent / "example.lock").read_text(encoding="utf-8"), "example.lock"
)
AS_LOCKED = machine(
    driver="570.133.20",
    cuda="12.8",
    gpus=(gpu(name="NVIDIA GeForce RTX 5090", arch="12.0"),),
    frameworks=(
        torch("2.8.0+cu128", origin="framework-index", cudnn="9.10.2.21", nccl="2.27.3"),
        Framework(name="torchvision", version="0.23.0+cu128", cuda="12.8"),
    ),
    packages=(
        Package(name="torch", version="2.8.0+cu128"),
        Package(name="torchvision", version="0.23.0+cu128"),
        Package(name="transformers", version="4.57.1"),
        Package(name="nvidia-cudnn-cu12", version="9.10.2.21"),
    ),
)


def drift(changes: dict[str, Any]) -> list[tuple[str, str, str]]:
    found, _ = compare(LOCK, evolve(AS_LOCKED, changes), MATRIX)
    return [(each.field, each.locked, each.found) for each in found]


def test_what_is_as_locked_does_not_drift() -> None:
    assert compare(LOCK, AS_LOCKED, MATRIX) == ((), ())


CHANGES: dict[str, tuple[dict[str, Any], list[tuple[str, str, str]]]] = {
    "python": ({"env.python.version": "3.11.9"}, [("python", "3.12", "3.11")]),
    "python patch": ({"env.python.version": "3.12.9"}, []),
    "driver branch": (
        {"host.driver.module_version": "580.95.05"},
        [("driver", "570", "580.95.05")],
    ),
    "driver too old": (
        {"host.driver.module_version": "550.54.15"},
        [("driver", "570", "550.54.15"), ("min_driver", "570.26 or newer", "550.54.15")],
    ),
    "gpus": (
        {"host.gpus": (gpu(), gpu(1))},
        [("gpus", "GeForce RTX 5090", "2x H200")],
    ),
    "gpu names": ({"host.gpus.0.name": "GeForce RTX 5090"}, []),
    "no gpu": ({"host.gpus": ()}, []),
    "os": ({"host.os.version": "22.04"}, [("os", "ubuntu24.04", "ubuntu22.04")]),
    "os of a container": (
        {"host.os.id": "debian", "host.os.version": "12", "host.container.kind": "docker"},
        [],
    ),
    "platform": (
        {"env.python.platform": "linux_aarch64"},
        [("platform", "linux_x86_64", "linux_aarch64")],
    ),
    "library": (
        {"env.packages.2.version": "4.56.0"},
        [("transformers", "4.57.1", "4.56.0")],
    ),
    "library gone": (
        {"env.packages": AS_LOCKED.env.packages[:2]},  # type: ignore[index]
        [("transformers", "4.57.1", "not installed")],
    ),
    "variant": (
        {
            "env.frameworks.0.version": "2.8.0+cu126",
            "env.frameworks.0.cuda": "12.6",
            "env.packages.0.version": "2.8.0+cu126",
        },
        [("torch", "2.8.0+cu128", "2.8.0+cu126"), ("torch.cuda", "12.8", "12.6")],
    ),
    "variant without tag": (
        {"env.packages.0.version": "2.8.0"},
        [],
    ),
    "cpu build": (
        {
            "env.frameworks.0.version": "2.8.0+cpu",
            "env.frameworks.0.cuda": None,
            "env.frameworks.0.cpu_only": True,
        },
        [("torch", "2.8.0+cu128", "2.8.0+cpu"), ("torch.cuda", "12.8", "cpu")],
    ),
    "cudnn": (
        {"env.packages.3.version": "9.9.0.52"},
        [("torch.cudnn", "9.10.2.21", "9.9.0.52")],
    ),
    "nccl": ({"env.frameworks.0.nccl": "2.26.2"}, [("torch.nccl", "2.27.3", "2.26.2")]),
}


@pytest.mark.parametrize("name", CHANGES)
def test_each_field_drifts_by_itself(name: str) -> None:
    changes, expected = CHANGES[name]
    assert drift(changes) == expected


def test_what_was_not_read_is_unknown_and_no_drift() -> None:
    found, unknown = compare(
        LOCK,
        evolve(
            AS_LOCKED,
            {
                "env.packages": None,
                "host.driver.module_version": None,
                "host.driver.version": None,
                "host.driver.userspace_version": None,
                "env.python.version": None,
            },
        ),
        MATRIX,
    )
    assert found == ()
    assert [(each.check, each.kind) for each in unknown] == [("lock", "missing")]


def test_an_image_has_neither_driver_nor_gpus_of_its_own() -> None:
    image = evolve(
        AS_LOCKED,
        {"source": "image:x", "host.driver.module_version": "470.57.02", "host.os.id": "debian"},
    )
    assert compare(LOCK, image, MATRIX) == ((), ())


def test_drift_fails_a_run_unless_nothing_may() -> None:
    report = judge(AS_LOCKED, MATRIX, all_rules())
    drifted = evolve(report, {"drift": (Drift(field="python", locked="3.12", found="3.11"),)})
    assert (exit_code(report), exit_code(drifted)) == (0, 1)
    assert exit_code(drifted, "never") == 0
    assert exit_code(evolve(report, {"drift": ()})) == 0
