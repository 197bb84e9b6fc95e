"""Healthy machines of many kinds, on which no rule may say anything."""

from __future__ import annotations

from typing import Any

import pytest

from envcheck.model.environment import Variable
from envcheck.model.host import Cdi, Driver, Engine, FabricManager, ProbeAnswer
from envcheck.model.snapshot import Gap
from tests.rules.asking import MACHINE_RULES, changed, report
from tests.support import gpu, torch

UNREADABLE: dict[str, Any] = {
    "host.pci": None,
    "host.nodes": None,
    "host.engines": None,
    "host.cdi": None,
    "host.toolkit_version": None,
    "host.shm_bytes": None,
    "host.driver.module_loaded": None,
    "host.driver.uvm_loaded": None,
    "host.driver.installed": None,
    "host.driver.packages": None,
    "host.driver.dkms": None,
    "host.driver.secure_boot": None,
    "host.driver.nouveau_loaded": None,
    "host.driver.kernel_log": None,
}

H200 = tuple(
    gpu(
        index,
        bus_id=f"0000:00:0{6 + index}.0",
        fabric_state="completed",
        fabric_status=0,
        throttle_reasons=("idle",),
        memory_total_bytes=143771 << 20,
        memory_used_bytes=0,
    )
    for index in range(2)
)

MACHINES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "plain host": ({}, {}),
    "with torch": ({}, {"frameworks": (torch(),)}),
    "virtual machine with passed-through GPUs": (
        {
            "host.virtual": "kvm",
            "host.container.kind": "docker",
            "host.container.driver_capabilities": "compute,graphics,utility",
            "host.container.visible_devices": "0,1",
            "host.engines": (),
            "host.fabric_manager": FabricManager(installed=False, running=False),
            "host.driver.kernel_log": (
                "nvidia: loading out-of-tree module taints kernel.",
                "NVRM: gpuClearFbhubPoisonIntrForBug2924523_GA100: FBHUB Interrupt detected.",
            ),
        },
        {"gpus": H200, "frameworks": (torch(),)},
    ),
    "container where nothing of the host can be read": (
        {**UNREADABLE, "host.container.kind": "kubernetes"},
        {"frameworks": (torch(),)},
    ),
    "unprivileged user": (
        {
            **UNREADABLE,
            "gaps": (Gap(path="host.driver.kernel_log", reason="Operation not permitted"),),
        },
        {},
    ),
    "management library left out, CUDA works": (
        {
            "host.driver.nvml": ProbeAnswer(outcome="missing"),
            "host.driver.smi": ProbeAnswer(outcome="missing"),
            "host.container.kind": "docker",
            "host.engines": (),
        },
        {"frameworks": (torch(),)},
    ),
    "batch job with one of the GPUs": (
        {
            "host.gpus": (gpu(0, bus_id="0000:02:00.0"),),
            "env.variables": (
                Variable(name="SLURM_JOB_ID", value="1"),
                Variable(name="CUDA_VISIBLE_DEVICES", value="0"),
            ),
        },
        {"gpus": (gpu(0), gpu(1))},
    ),
    "idle laptop": (
        {
            "host.gpus.0.pcie_generation": 1,
            "host.gpus.0.pcie_width": 8,
            "host.gpus.0.throttle_reasons": ("idle", "sw-power-cap"),
            "host.gpus.0.ecc": None,
            "host.gpus.0.ecc_uncorrected": None,
        },
        {},
    ),
    "engine with CDI only": (
        {
            "host.engines": (
                Engine(name="docker", version="28", runtimes=("runc",), desktop=False),
            ),
            "host.cdi": Cdi(paths=("/var/run/cdi/nvidia.yaml",), devices=("nvidia.com/gpu=all",)),
        },
        {},
    ),
    "MIG host with instances": (
        {"host.gpus.0.mig": True, "host.gpus.0.mig_instances": 7},
        {},
    ),
    "Secure Boot with signed modules": (
        {"host.driver.secure_boot": True, "host.driver.lockdown": "integrity"},
        {},
    ),
    "Jetson": (
        {
            "host.jetson": "36.4.0",
            "host.pci": (),
            "host.gpus": (),
            "host.nodes": (),
            "host.driver": Driver(
                libcuda=ProbeAnswer(outcome="ok", code=0), nvml=ProbeAnswer(outcome="missing")
            ),
            "host.engines": (
                Engine(name="docker", version="28", runtimes=("runc",), desktop=False),
            ),
        },
        {"frameworks": (torch("2.8.0", origin="jetson"),)},
    ),
}


@pytest.mark.parametrize("name", MACHINES)
def test_nothing_is_said_and_nothing_is_open(name: str) -> None:
    changes, facts = MACHINES[name]
    answer = report(changed(changes, **facts))
    assert answer.findings == ()
    assert answer.unknown == ()
    assert answer.verdict == "ok"


def test_every_rule_has_a_page_and_ids_are_its_own() -> None:
    ids = [name for rule in MACHINE_RULES for name in rule.ids]
    assert len(ids) == len(set(ids))
    for rule in MACHINE_RULES:
        assert rule.page.splitlines()[0].endswith(".")
        assert "Why:" in rule.page
        assert "Fix:" in rule.page
