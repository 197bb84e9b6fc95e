"""Rules about the smoke test, and causes that it proves."""

from __future__ import annotations

from typing import Any

from envcheck.engine import judge
from envcheck.model.finding import Finding, Report
from envcheck.model.smoke import Smoke, Stage
from envcheck.model.snapshot import Snapshot
from envcheck.rules import all_rules
from tests.rules.asking import tables
from tests.support import evolve, gpu, machine, torch


def stage(name: str, outcome: str = "ok", **facts: Any) -> Stage:
    """A stage of torch on the first GPU."""
    defaults: dict[str, Any] = {"framework": "torch", "device": "cuda:0", "seconds": 0.1}
    return Stage(**{**defaults, "name": name, "outcome": outcome, **facts})


def ran(*stages: Stage, **facts: Any) -> Snapshot:
    """A healthy machine with torch, after a smoke test."""
    facts.setdefault("frameworks", (torch(),))
    device = "cpu" if stages[0].device == "cpu" else "cuda"
    return evolve(machine(**facts), {"smoke": Smoke(device=device, stages=stages)})


def judged(snapshot: Snapshot) -> Report:
    report = judge(snapshot, tables(), all_rules(), require_gpu=True)
    assert [each for each in report.unknown if each.kind == "crashed"] == []
    return report


def only(snapshot: Snapshot) -> Finding:
    (finding,) = judged(snapshot).findings
    return finding


def test_a_run_in_which_all_is_well() -> None:
    snapshot = ran(stage("import"), stage("matmul-fp16", "skipped"), stage("training-step-fp32"))
    assert judged(snapshot).findings == ()


def test_no_run_is_no_finding() -> None:
    assert judged(machine(frameworks=(torch(),))).findings == ()


def test_smoke_wrong_result() -> None:
    found = only(ran(stage("matmul-bf16", "wrong", detail="the product differs by 0.3")))
    assert (found.id, found.severity) == ("smoke-wrong-result", "error")
    assert found.title == "torch computes wrong numbers in matmul-bf16"
    assert found.found == "the product differs by 0.3"
    assert found.fix[0].commands[-1] == "dcgmi diag -r 3"


def test_smoke_wrong_result_on_the_cpu_tests_no_gpu() -> None:
    snapshot = ran(stage("matmul-bf16", "wrong", device="cpu", detail="off"))
    assert [command for fix in only(snapshot).fix for command in fix.commands] == []


def test_smoke_crashed() -> None:
    snapshot = ran(
        stage("import"),
        stage("convolution", "crash", detail="its process was ended by SIGSEGV", output=("a", "b")),
    )
    found = only(snapshot)
    assert (found.id, found.title) == ("smoke-crashed", "torch crashes in convolution")
    assert found.subject == "torch on cuda:0"
    assert [each.value for each in found.evidence] == [
        "its process was ended by SIGSEGV",
        "a",
        "b",
    ]
    assert found.fix[1].commands == (
        "CUDA_LAUNCH_BLOCKING=1 envcheck smoke --framework torch --gpus 0",
    )


def test_one_finding_for_all_gpus() -> None:
    stages = [stage("copy", "error", device=f"cuda:{at}", detail="bad") for at in range(8)]
    found = only(ran(*stages))
    assert found.subject == "torch on " + ", ".join(f"cuda:{at}" for at in range(8))
    assert found.title == "torch fails in copy"


def test_smoke_timeout() -> None:
    found = only(
        ran(stage("all-reduce", "timeout", device="cuda:0,cuda:1", detail="no answer within 9 s"))
    )
    assert (found.id, found.title) == ("smoke-timeout", "torch hangs in all-reduce")
    commands = [command for fix in found.fix for command in fix.commands]
    assert commands[0] == "NCCL_P2P_DISABLE=1 envcheck smoke --framework torch --gpus 0,1"
    assert "envcheck smoke --framework torch --gpus 0,1 --timeout 600" in commands


def test_a_driver_that_is_too_old_leads_to_the_failure() -> None:
    snapshot = ran(
        stage("find-devices", "error", detail="The NVIDIA driver on your system is too old"),
        driver="470.82.01",
        cuda="11.4",
    )
    first = judged(snapshot).findings[0]
    assert first.id == "driver-too-old"
    assert "smoke-crashed" in first.consequences


def test_no_kernel_image() -> None:
    """The architectures that the build itself lists say why."""
    snapshot = ran(
        stage(
            "context", "error", detail="AcceleratorError: CUDA error: no kernel image is available"
        ),
        gpus=(gpu(name="Tesla V100-SXM2-32GB", arch="7.0"),),
        frameworks=(torch(arches=("sm_75", "sm_80", "sm_90")),),
    )
    first = judged(snapshot).findings[0]
    assert (first.id, first.consequences) == ("gpu-older-than-build", ("smoke-crashed",))


def test_memory_that_others_hold() -> None:
    full = gpu(memory_used_bytes=79 << 30)
    out = stage("copy", "error", detail="OutOfMemoryError: CUDA out of memory. Tried to allocate")
    found = only(ran(out, gpus=(full,)))
    assert (found.id, found.severity) == ("gpu-memory-occupied", "error")
    assert found.consequences == ("smoke-crashed",)
    # Without the error it is information, and an error on a GPU with free memory has another cause.
    assert only(ran(stage("copy"), gpus=(full,))).severity == "info"
    assert only(ran(out)).id == "smoke-crashed"


def test_p2p_that_is_blocked() -> None:
    """`p2p-blocked-by-iommu` by experiment: without peer access it works."""
    both = "cuda:0,cuda:1"
    hangs = stage("all-reduce", "timeout", device=both, detail="no answer within 9 s")
    works = stage("all-reduce-without-p2p", device=both, detail="NCCL_P2P_DISABLE=1")
    gpus = (gpu(0), gpu(1))
    found = only(ran(hangs, works, gpus=gpus))
    assert (found.id, found.severity) == ("p2p-blocked-by-iommu", "error")
    assert found.consequences == ("smoke-timeout",)
    assert found.fix[0].commands == ("export NCCL_P2P_DISABLE=1",)
    fails_too = stage("all-reduce-without-p2p", "timeout", device=both)
    assert only(ran(hangs, fails_too, gpus=gpus)).id == "smoke-timeout"


def test_a_hidden_gpu_leads_to_the_failure() -> None:
    snapshot = evolve(
        ran(stage("libcuda", "error", detail="CUDA_ERROR_NO_DEVICE")),
        {"host.driver.libcuda.code": 100, "host.driver.libcuda.outcome": "error"},
    )
    from envcheck.model.environment import Variable

    hidden = (Variable(name="CUDA_VISIBLE_DEVICES", value=""),)
    first = judged(evolve(snapshot, {"env.variables": hidden})).findings[0]
    assert (first.id, first.severity) == ("cuda-visible-devices-invalid", "error")
    assert "smoke-crashed" in first.consequences
