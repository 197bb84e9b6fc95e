"""driver-state-stale."""

from __future__ import annotations

from envcheck.model.environment import Variable
from envcheck.model.host import DeviceNode, ProbeAnswer
from tests.rules.asking import changed, only, open_checks, said
from tests.support import torch


def cuinit(code: int, message: str = "unknown error") -> ProbeAnswer:
    """An answer of cuInit that fails with a code."""
    return ProbeAnswer(outcome="error", code=code, message=message)


def test_unknown_error_after_resume() -> None:
    found = only(
        changed(
            {
                "host.driver.libcuda": cuinit(999),
                "host.driver.kernel_log": ("PM: suspend exit", "nvidia-uvm: Loaded the UVM driver"),
            },
            frameworks=(torch(),),
        )
    )
    assert (found.id, found.severity) == ("driver-state-stale", "error")
    assert found.fix[0].commands == ("sudo modprobe -r nvidia_uvm", "sudo modprobe nvidia_uvm")
    assert found.fix[1].commands == ("sudo reboot",)


def test_memory_module_not_loaded() -> None:
    nodes = tuple(
        DeviceNode(path=path, readable=True, writable=True)
        for path in ("/dev/nvidia0", "/dev/nvidiactl")
    )
    found = only(changed({"host.driver.libcuda": cuinit(999), "host.nodes": nodes}))
    assert found.fix[0].commands == ("sudo nvidia-modprobe -c 0 -u",)


def test_nvml_unknown_error_on_a_host() -> None:
    found = only(
        changed(
            {
                "host.gpus": (),
                "host.driver.nvml": cuinit(999, "Unknown Error"),
                "host.driver.libcuda": cuinit(999),
                "host.driver.smi": cuinit(255),
            }
        )
    )
    assert found.id == "driver-state-stale"
    assert found.found == "NVML: Unknown Error (code 999)"


def test_code_without_a_cause_is_unknown() -> None:
    snapshot = changed({"host.driver.libcuda": cuinit(1, "invalid argument")})
    assert said(snapshot) == []
    assert open_checks(snapshot) == ["driver-state-stale"]


def test_hanging_cuinit_is_unknown() -> None:
    snapshot = changed({"host.driver.libcuda": ProbeAnswer(outcome="timeout")})
    assert said(snapshot) == []
    assert open_checks(snapshot) == ["driver-state-stale"]


def test_hidden_gpus_are_not_a_stale_driver() -> None:
    snapshot = changed(
        {
            "host.driver.libcuda": cuinit(100, "no CUDA-capable device is detected"),
            "env.variables": (Variable(name="CUDA_VISIBLE_DEVICES", value=""),),
        }
    )
    assert said(snapshot) == [("cuda-visible-devices-invalid", "error")]
    assert open_checks(snapshot) == []


def test_module_that_loads_on_demand_is_fine() -> None:
    assert said(changed({"host.driver.uvm_loaded": False})) == []


def test_other_errors_of_nvml_are_unknown_and_never_a_pass() -> None:
    snapshot = changed(
        {
            "host.gpus": None,
            "host.driver.nvml": ProbeAnswer(outcome="error", code=17, message="OS call failed"),
            "host.driver.libcuda": ProbeAnswer(),
            "host.driver.smi": ProbeAnswer(),
        }
    )
    assert said(snapshot) == []
    assert open_checks(snapshot) == ["driver-state-stale"]
