"""Engines of a GPU host, and what is missing inside a container."""

from __future__ import annotations

from typing import Any

import pytest

from envcheck.model.host import Cdi, DeviceNode, Engine, ProbeAnswer
from envcheck.model.snapshot import Gap, Snapshot
from tests.rules.asking import changed, only, open_checks, said
from tests.support import gpu, torch

DOCKER = Engine(
    name="docker", version="28.1.1", runtimes=("io.containerd.runc.v2", "runc"), desktop=False
)
PODMAN = Engine(name="podman", version="5.4.0")
MISSING = ProbeAnswer(outcome="missing")


def test_docker_without_the_toolkit() -> None:
    found = only(changed({"host.engines": (DOCKER,), "host.toolkit_version": None}))
    assert (found.id, found.severity) == ("container-toolkit-missing", "warning")
    commands = found.fix[0].commands
    assert "sudo apt-get install -y nvidia-container-toolkit" in commands
    assert commands[-2:] == (
        "sudo nvidia-ctk runtime configure --runtime=docker",
        "sudo systemctl restart docker",
    )


def test_toolkit_that_is_not_configured() -> None:
    found = only(changed({"host.engines": (DOCKER,)}))
    assert found.fix[0].commands[0] == "sudo nvidia-ctk runtime configure --runtime=docker"


@pytest.mark.parametrize(
    "changes",
    [
        {"host.cdi": Cdi(paths=("/etc/cdi/nvidia.yaml",), devices=("nvidia.com/gpu=all",))},
        {"host.engines.0.hook_path": "/usr/bin/nvidia-container-runtime-hook"},
        {"host.engines.0.runtimes": ("nvidia", "runc")},
        {"host.engines": ()},
        {"host.engines": None},
        {"host.engines.0.runtimes": None, "host.toolkit_version": "1.17.8"},
        {
            "host.engines.0.runtimes": None,
            "gaps": (Gap(path="host.toolkit_version", reason="not asked"),),
        },
        {"host.cdi": None},
    ],
)
def test_engine_that_can_or_may_give_gpus(changes: dict[str, Any]) -> None:
    assert said(changed({"host.engines": (DOCKER,), "host.toolkit_version": None, **changes})) == []


def test_no_engine_question_without_a_working_driver() -> None:
    snapshot = changed(
        {"host.engines": (DOCKER,), "host.toolkit_version": None}, driver=None, cuda=None, gpus=()
    )
    assert said(snapshot) == [("no-gpu", "warning")]


def test_podman_of_the_operating_system_is_information() -> None:
    snapshot = changed({"host.engines": (PODMAN,), "host.toolkit_version": None})
    assert said(snapshot) == [("container-toolkit-missing", "info")]


def test_podman_with_the_toolkit_but_no_specification() -> None:
    found = only(changed({"host.engines": (PODMAN,)}))
    assert (found.id, found.severity) == ("cdi-spec-missing", "warning")
    assert found.fix[0].commands[0] == "sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml"


def test_specification_of_a_driver_that_is_gone() -> None:
    cdi = Cdi(
        paths=("/etc/cdi/nvidia.yaml",),
        devices=("nvidia.com/gpu=all",),
        missing_paths=("/usr/lib/x86_64-linux-gnu/libcuda.so.575.57.08",),
    )
    found = only(changed({"host.cdi": cdi}))
    assert (found.id, found.severity) == ("cdi-spec-missing", "warning")
    assert found.found == "1 missing, such as /usr/lib/x86_64-linux-gnu/libcuda.so.575.57.08"


def test_docker_desktop() -> None:
    desktop = Engine(name="docker", version="28.1.1", runtimes=("runc",), desktop=True)
    found = only(changed({"host.engines": (desktop,)}))
    assert (found.id, found.severity) == ("docker-desktop-no-gpu", "warning")
    assert found.fix[0].commands[-1] == "docker context use default"


def test_docker_desktop_under_wsl_works() -> None:
    desktop = Engine(name="docker", version="28.1.1", runtimes=("runc",), desktop=True)
    assert said(changed({"host.engines": (desktop,), "host.wsl": 2})) == []


def inside(changes: dict[str, Any], **facts: Any) -> Snapshot:
    """A docker container of a host with a working driver and its GPUs."""
    return changed(
        {
            "host.container.kind": "docker",
            "host.engines": (),
            "host.driver.packages": None,
            "host.driver.dkms": None,
            "host.driver.kernel_log": None,
            "host.driver.secure_boot": None,
            "host.driver.installed": None,
            "host.toolkit_version": None,
            **changes,
        },
        **facts,
    )


NO_GPU = {
    "host.gpus": (),
    "host.nodes": (),
    "host.driver.nvml": MISSING,
    "host.driver.libcuda": MISSING,
    "host.driver.smi": MISSING,
}


def test_container_with_its_gpus_is_quiet_although_the_host_cannot_be_read() -> None:
    snapshot = inside({}, frameworks=(torch(),))
    assert said(snapshot) == []
    assert open_checks(snapshot) == []


def test_container_without_gpus() -> None:
    found = only(inside(NO_GPU, frameworks=(torch(),)))
    assert (found.id, found.severity) == ("container-without-gpu", "error")
    assert found.fix[0].commands == ("docker run --gpus all <image>",)


def test_container_for_the_cpu_is_a_warning() -> None:
    assert said(inside(NO_GPU)) == [("container-without-gpu", "warning")]


def test_privileged_container_has_files_but_no_libraries() -> None:
    nodes = changed({}).host.nodes
    found = only(inside({**NO_GPU, "host.nodes": nodes}, frameworks=(torch(),)))
    assert (found.id, found.severity) == ("container-without-gpu", "error")
    assert found.found == "device files, but no driver libraries in this container"


@pytest.mark.parametrize(
    ("kind", "command"),
    [
        ("podman", "podman run --device nvidia.com/gpu=all <image>"),
        ("kubernetes", "kubectl describe nodes | grep nvidia.com/gpu"),
        ("apptainer", "apptainer exec --nv <image> <command>"),
        ("lxc", "lxc config device add <container> gpu gpu"),
        ("containerd", "nerdctl run --gpus all <image>"),
        ("unknown", "docker run --gpus all <image>"),
    ],
)
def test_flag_of_each_engine(kind: str, command: str) -> None:
    found = only(inside({**NO_GPU, "host.container.kind": kind}))
    assert found.fix[0].commands[0] == command


def test_utility_without_compute() -> None:
    found = only(
        inside(
            {"host.container.driver_capabilities": "utility", "host.driver.libcuda": MISSING},
            frameworks=(torch(),),
        )
    )
    assert (found.id, found.severity) == ("driver-capabilities-missing", "error")
    assert found.fix[0].commands == (
        "docker run --gpus all -e NVIDIA_DRIVER_CAPABILITIES=utility,compute <image>",
    )


@pytest.mark.parametrize("value", ["all", "compute,utility", "utility, compute", None, ""])
def test_capabilities_that_hold_compute_or_the_default(value: str | None) -> None:
    assert said(inside({"host.container.driver_capabilities": value})) == []


def test_unusual_capabilities_with_a_working_libcuda_are_fine() -> None:
    assert said(inside({"host.container.driver_capabilities": "graphics"})) == []


LOST = {
    "host.gpus": (),
    "host.driver.nvml": ProbeAnswer(outcome="error", code=999, message="Unknown Error"),
    "host.driver.libcuda": ProbeAnswer(outcome="error", code=100),
    "host.driver.smi": ProbeAnswer(outcome="error", code=255),
}


def test_access_lost_while_it_ran() -> None:
    found = only(inside(LOST, frameworks=(torch(),)))
    assert (found.id, found.severity) == ("container-device-access-lost", "error")
    assert found.fix[0].commands == ("docker restart <container>",)


def test_files_that_may_not_be_opened() -> None:
    nodes = tuple(
        DeviceNode(path=path, readable=False, writable=False)
        for path in ("/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm")
    )
    facts = {
        **LOST,
        "host.nodes": nodes,
        "host.driver.nvml": ProbeAnswer(
            outcome="error", code=4, message="Insufficient Permissions"
        ),
    }
    assert said(inside(facts)) == [("container-device-access-lost", "error")]


def test_default_shared_memory_with_torch() -> None:
    found = only(inside({"host.shm_bytes": 64 << 20}, frameworks=(torch(),)))
    assert (found.id, found.severity) == ("shm-too-small", "warning")
    assert found.fix[0].commands == ("docker run --gpus all --shm-size=16g <image>",)


@pytest.mark.parametrize(
    ("changes", "facts"),
    [
        ({"host.shm_bytes": 64 << 20}, {}),
        ({"host.shm_bytes": 1 << 30}, {"gpus": (gpu(0), gpu(1)), "frameworks": (torch(),)}),
        ({"host.shm_bytes": None}, {"frameworks": (torch(),)}),
        ({"host.shm_bytes": 64 << 20, "host.container.kind": "none"}, {"frameworks": (torch(),)}),
    ],
)
def test_shared_memory_that_is_enough_or_not_in_question(
    changes: dict[str, Any], facts: dict[str, Any]
) -> None:
    assert said(inside(changes, **facts)) == []


def test_container_whose_libraries_answer_but_that_has_no_gpu() -> None:
    facts = {
        "host.gpus": (),
        "host.nodes": (),
        "host.driver.libcuda": ProbeAnswer(outcome="error", code=100),
    }
    found = only(inside({**facts, "host.container.visible_devices": "void"}))
    assert (found.id, found.severity) == ("container-without-gpu", "warning")
    assert ("NVIDIA_VISIBLE_DEVICES", "void") in [(e.label, e.value) for e in found.evidence]


def test_container_with_compute_only_is_well() -> None:
    facts = {
        "host.gpus": None,
        "host.pci": None,
        "host.driver.nvml": MISSING,
        "host.driver.smi": MISSING,
        "host.container.driver_capabilities": "compute",
    }
    assert said(inside(facts)) == []
    assert open_checks(inside(facts)) == []
