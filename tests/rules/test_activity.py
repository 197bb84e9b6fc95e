"""Verdicts of `envcheck watch`: each where it belongs, and none where a GPU does its work."""

from __future__ import annotations

import pytest

from envcheck.model.host import Tool
from tests.rules.watched import gaps, gpu, host, old_gpu, report, said, watched
from tests.support import evolve, machine, torch

TINY = {"utilization": 27.0, "sm": 0.03, "tensor": 0.0, "dram": 0.1, "power_watts": 120.0}
"""As measured on an H200: an addition to a thousand numbers, again and again."""
MATMUL = {"utilization": 99.0, "sm": 94.92, "tensor": 92.16, "dram": 15.92, "power_watts": 688.0}
"""As measured on an H200: bf16 matmuls of 8192^3."""
NARROW = {"utilization": 99.0, "sm": 3.0, "tensor": 0.0, "dram": 2.0, "power_watts": 180.0}
IDLE = {"utilization": 0.0, "sm": 0.0, "tensor": 0.0, "dram": 0.0, "power_watts": 78.0}


def test_nothing_watched_nothing_said() -> None:
    assert said(machine()) == []


def test_reasonable_work_gets_no_verdict() -> None:
    assert said(watched()) == []
    assert report(watched()).verdict == "ok"


def test_big_matmul_works_near_its_limit() -> None:
    (found,) = report(watched(gpu(**MATMUL), on=host(thread=1.0))).findings
    assert (found.id, found.severity) == ("near-limit", "info")
    assert found.found == "compute at 92 %"
    assert found.fix == ()


def test_copies_within_the_memory_work_near_its_limit() -> None:
    copies = gpu(utilization=100.0, sm=98.0, tensor=0.0, dram=88.0, power_watts=420.0)
    (found,) = report(watched(copies, on=host(thread=1.0))).findings
    assert (found.id, found.found) == ("near-limit", "memory at 88 %")


def test_tiny_kernels_wait_for_their_launch() -> None:
    (found,) = report(watched(gpu(**TINY), on=host(thread=0.99))).findings
    assert (found.id, found.severity) == ("launch-bound", "warning")
    assert found.title == (
        "GPU 0: NVIDIA H200 likely waits for kernels to be launched: 27 % utilisation"
    )
    assert found.found == (
        "utilisation 27 % and SM activity 0.03 %, while thread python3 uses 99 % of a core"
    )
    assert any("set_sync_debug_mode" in each for fix in found.fix for each in fix.commands)


def test_tiny_kernels_with_a_rested_cpu_are_not_launch_bound() -> None:
    assert said(watched(gpu(**TINY), on=host(thread=0.3))) == []


def test_kernels_that_are_always_there_but_narrow() -> None:
    (found,) = report(watched(gpu(**NARROW), on=host(thread=1.0))).findings
    assert (found.id, found.severity) == ("busy-but-idle", "warning")
    assert found.found == "utilisation 99 %, while 3.0 % of its multiprocessors work"


def test_a_gpu_that_moves_memory_is_not_idle() -> None:
    assert said(watched(gpu(**{**NARROW, "dram": 45.0}))) == []


def test_gaps_beside_busy_workers() -> None:
    starved = gpu(utilization=15.0, sm=12.0, tensor=9.0, dram=4.0, gaps=gaps(0.7))
    (found,) = report(watched(starved, on=host(thread=0.1, workers=2.0))).findings
    assert (found.id, found.severity) == ("input-bound", "warning")
    assert found.title == "GPU 0: NVIDIA H200 waits for data: 15 % utilisation"
    assert found.fix[0].commands[0].startswith("DataLoader(..., num_workers=15, pin_memory=True")


def test_gaps_too_short_to_see_beside_busy_workers() -> None:
    starved = gpu(utilization=50.0, sm=40.0, tensor=30.0, dram=20.0)
    assert said(watched(starved, on=host(thread=0.2, workers=4.0))) == [("input-bound", "warning")]


def test_gaps_while_storage_is_waited_for() -> None:
    starved = gpu(utilization=15.0, sm=12.0, tensor=9.0, dram=4.0, gaps=gaps(0.7))
    (found,) = report(watched(starved, on=host(thread=0.1, workers=0.1, blocked=2.0))).findings
    assert found.id == "input-bound"
    assert found.fix[0].title.startswith("Move the data to a local disk")


def test_gaps_while_the_loop_itself_works() -> None:
    starved = gpu(utilization=30.0, sm=27.0, tensor=20.0, dram=8.0, gaps=gaps(0.5))
    (found,) = report(watched(starved, on=host(thread=0.98))).findings
    assert found.id == "input-bound"
    assert "likely waits for data" in found.title


def test_gaps_on_a_quiet_machine_are_somebody_elses() -> None:
    server = gpu(utilization=15.0, sm=12.0, tensor=9.0, dram=4.0, gaps=gaps(0.7))
    assert said(watched(server, on=host(thread=0.1))) == []


def test_a_gpu_that_is_always_busy_does_not_wait_for_its_loaders() -> None:
    assert said(watched(on=host(thread=1.0, workers=6.0))) == []


def test_busy_links_beside_idle_tensor_cores() -> None:
    reduces = {"utilization": 99.0, "sm": 15.0, "tensor": 1.0, "dram": 12.0, "power_watts": 250.0}
    pair = [gpu(index=at, **reduces, nvlink_in=2.1e5, nvlink_out=2.1e5) for at in (0, 1)]
    (found,) = report(watched(*pair, on=host(thread=1.0))).findings
    assert (found.id, found.severity) == ("comm-bound", "warning")
    assert found.subject == "GPU 0, 1: NVIDIA H200"
    assert found.found == "NVLink at 44 % of its rate, tensor activity 1.0 %"


def test_busy_links_beside_busy_tensor_cores_are_well_used() -> None:
    assert said(watched(gpu(nvlink_in=2.1e5, nvlink_out=2.1e5))) == []


def test_copies_over_pcie() -> None:
    copies = gpu(utilization=20.0, sm=1.0, tensor=0.0, dram=3.0, pcie_in=4.5e4)
    (found,) = report(watched(copies, on=host(thread=1.0))).findings
    assert (found.id, found.found) == (
        "comm-bound",
        "PCIe at 71 % of its rate, tensor activity 0.0 %",
    )


def test_a_framework_that_works_without_a_gpu() -> None:
    snapshot = watched(gpu(**IDLE), on=host(thread=0.0, workers=8.0), gpu_context=False)
    (found,) = report(snapshot).findings
    assert (found.id, found.severity) == ("cpu-training", "warning")
    assert found.found == "8.0 cores in use, no process with a GPU context"
    assert "torch.cuda.is_available()" in found.fix[0].commands[0]


@pytest.mark.parametrize(
    "facts", [{"framework_seconds": 4.0}, {"frameworks": ()}, {"gpu_context": None}]
)
def test_imports_other_programs_and_the_unseen_are_no_cpu_training(
    facts: dict[str, object],
) -> None:
    quiet = {"gpu_context": False, **facts}
    snapshot = watched(gpu(**IDLE), on=host(thread=0.0, workers=0.2), **quiet)
    assert said(snapshot) == [("gpu-idle", "info")]


def test_idle_gpus_are_named_together() -> None:
    snapshot = watched(gpu(), gpu(index=1, **IDLE), gpu(index=2, **IDLE))
    (found,) = report(snapshot).findings
    assert (found.id, found.subject) == ("gpu-idle", "GPU 1, 2: NVIDIA H200")


def test_a_gpu_at_work_is_not_idle() -> None:
    assert said(watched(gpu(**TINY), on=host(thread=0.2))) == []


def test_memory_near_full() -> None:
    (found,) = report(watched(gpu(memory_used_bytes=138 << 30))).findings
    assert (found.id, found.severity) == ("memory-near-full", "info")
    assert found.found == "138.0 of 141.0 GiB in use at the most"


def test_memory_taken_in_advance_is_not_full() -> None:
    assert said(watched(gpu(memory_used_bytes=127 << 30))) == []


@pytest.mark.parametrize(
    ("utilization", "watts", "thread", "expected"),
    [
        (99.0, 280.0, 1.0, [("near-limit", "info")]),
        (99.0, 80.0, 1.0, [("busy-but-idle", "warning")]),
        (30.0, 60.0, 1.0, [("launch-bound", "warning")]),
        (99.0, 180.0, 1.0, []),
        (60.0, 150.0, 1.0, []),
    ],
)
def test_without_gpm_power_decides_with_caution(
    utilization: float, watts: float, thread: float, expected: list[tuple[str, str]]
) -> None:
    answer = report(watched(old_gpu(utilization, watts), on=host(thread=thread)))
    assert [(each.id, each.severity) for each in answer.findings] == expected
    assert all("likely" in each.title for each in answer.findings)


def test_too_few_samples_are_unknown() -> None:
    answer = report(watched(gpu(**TINY), samples=6))
    assert answer.findings == ()
    (question,) = answer.unknown
    assert question.reason == "6 samples while a GPU was used; it takes 15 to judge"


def test_a_gpu_without_utilisation_is_unknown() -> None:
    mig = evolve(gpu(), {"utilization": None, "sm": None})
    answer = report(watched(mig))
    assert answer.verdict == "unknown"
    assert "with MIG" in answer.unknown[0].reason


def test_the_profilers_that_are_there_are_named_with_their_versions() -> None:
    snapshot = evolve(
        watched(gpu(**TINY), on=host(thread=1.0)),
        {
            "host.tools": (Tool(name="nsys", path="/usr/local/cuda/bin/nsys", version="2025.5.1"),),
            "env.frameworks": (torch("2.11.0+cu130"),),
        },
    )
    (found,) = report(snapshot).findings
    titles = [fix.title for fix in found.fix]
    assert titles[-2].startswith("See it in a timeline with Nsight Systems 2025.5.1")
    assert titles[-1] == "Or with the profiler of torch 2.11.0+cu130, in the program itself"
    assert found.fix[-2].commands[0].startswith("nsys profile -t cuda,nvtx,osrt")


def test_hot_thread_of_another_program_is_not_held_against_the_gpu() -> None:
    snapshot = watched(gpu(**TINY), on=host(thread=1.0), gpu_context=False, frameworks=())
    assert said(snapshot) == []


def test_evidence_says_where_it_was_read() -> None:
    (found,) = report(watched(gpu(**MATMUL))).findings
    assert [(each.label, each.value, each.via) for each in found.evidence[:2]] == [
        ("utilisation", "99 %", "NVML"),
        ("SM activity", "95 %", "NVML GPM"),
    ]
