"""Hand-built activity for rule tests: a GPU at some work, and the host beside it."""

from __future__ import annotations

from typing import Any

from envcheck.engine import judge
from envcheck.model.activity import Activity, Gaps, GpuActivity, HostActivity, Spread, Thread
from envcheck.model.finding import Report
from envcheck.model.snapshot import Snapshot
from envcheck.rules.activity import ACTIVITY_RULES
from tests.rules.asking import tables
from tests.support import evolve, machine


def flat(value: float) -> Spread:
    """A counter that stands still."""
    return Spread(mean=value, low=value, median=value, high=value, peak=value)


def gpu(**facts: Any) -> GpuActivity:
    """An H200 with GPM that does reasonable work: in between all thresholds."""
    numbers = {
        name: flat(facts.pop(name, default))
        for name, default in {
            "utilization": 95.0,
            "sm": 60.0,
            "tensor": 40.0,
            "dram": 40.0,
            "power_watts": 500.0,
            "pcie_in": 10.0,
            "pcie_out": 10.0,
            "nvlink_in": 0.0,
            "nvlink_out": 0.0,
        }.items()
    }
    defaults: dict[str, Any] = {
        "index": 0,
        "name": "NVIDIA H200",
        "arch": "9.0",
        "samples": 100,
        "via": "gpm",
        "pcie_limit": 63008.0,
        "nvlink_limit": 478116.0,
        "power_limit_watts": 700.0,
        "memory_used_bytes": 40 << 30,
        "memory_total_bytes": 141 << 30,
        "gaps": gaps(0.0),
    }
    return GpuActivity(**{**defaults, **numbers, **facts})


def old_gpu(utilization: float, watts: float) -> GpuActivity:
    """A GPU without GPM: utilisation and power, no more."""
    made = gpu(utilization=utilization, power_watts=watts, power_limit_watts=300.0, via="nvml")
    changes = dict.fromkeys(("sm", "tensor", "dram", "nvlink_in", "nvlink_out"))
    return evolve(made, {**changes, "name": "Tesla T4", "arch": "7.5"})


def gaps(share: float) -> Gaps:
    """A share of the samples without work."""
    return Gaps(share=share, count=round(share * 100), longest_seconds=share)


def host(*, thread: float = 0.3, workers: float = 0.0, blocked: float = 0.0) -> HostActivity:
    """A host of 16 cores; `thread` is the busiest one on the GPU."""
    return HostActivity(
        cores=16,
        cpu=flat(thread + workers),
        gpu_process_cpu=flat(thread),
        worker_cpu=flat(workers),
        blocked=flat(blocked),
        iowait=flat(0.0),
        busiest=Thread(name="python3", cpu=flat(thread)),
    )


def watched(*gpus: GpuActivity, on: HostActivity | None = None, **facts: Any) -> Snapshot:
    """A machine that was watched for 10 seconds."""
    defaults: dict[str, Any] = {
        "seconds": 10.0,
        "samples": 100,
        "interval": 0.1,
        "target": "command",
        "gpu_context": True,
        "frameworks": ("torch",),
        "framework_seconds": 20.0,
        "gpus": gpus or (gpu(),),
        "host": on or host(),
    }
    return evolve(machine(), {"activity": Activity(**{**defaults, **facts})})


def report(snapshot: Snapshot) -> Report:
    """What the rules on activity say; none may crash."""
    answer = judge(snapshot, tables(), ACTIVITY_RULES)
    assert [each for each in answer.unknown if each.kind == "crashed"] == []
    return answer


def said(snapshot: Snapshot) -> list[tuple[str, str]]:
    """(id, severity) of every finding."""
    return [(each.id, each.severity) for each in report(snapshot).findings]
