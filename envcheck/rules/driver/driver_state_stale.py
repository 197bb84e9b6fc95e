"""driver-state-stale."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.model.finding import Evidence, Fix
from envcheck.rules import facts, fixes
from envcheck.rules.base import finding, rule, unknown

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.model.snapshot import Snapshot
    from envcheck.rules.base import Answer

STALE_CODES = frozenset({3, 304, 999})
"""cuInit: not initialised, operating system call failed, unknown error."""

NVML_UNKNOWN = 999

CODES_OF_OTHER_CHECKS = frozenset({46, 214, facts.CUDA_FABRIC_NOT_READY, 803, 804})
"""Devices held exclusively, memory error, fabric, driver mismatch, forward compatibility."""


NVML_OF_OTHER_CHECKS = frozenset({15, facts.NVML_MISMATCH})
"""GPU is lost, driver and library differ."""


def _half_alive(snapshot: Snapshot) -> bool:
    """The module is there and the GPUs are, but not everything answers."""
    return (
        facts.discrete(snapshot)
        and facts.driver_loaded(snapshot)
        and facts.has_gpu(snapshot)
        and not facts.cuda_ok(snapshot)
        and not facts.closed_nodes(snapshot)
        and not facts.missing_nodes(snapshot)
    )


@rule("driver-state-stale", component="driver", when=_half_alive)
def driver_state_stale(snapshot: Snapshot, _matrix: Matrix) -> Answer:
    """CUDA initialises wherever the driver answers.

    Fires when NVML answers but cuInit fails with a code that names no cause (3, 304, 999), or when
    NVML itself answers "Unknown Error" on a host. Codes that have a cause of their own (no device,
    fabric, compatibility, memory) belong to other checks.

    Why: after suspend and resume, or when nvidia_uvm was loaded from another build, the memory
    module of the driver keeps a state that no longer fits the GPU. nvidia-smi does not use it, so
    it still looks well.

    Fix: reload nvidia_uvm when nothing uses the GPU, or restart.
    """
    driver = snapshot.host.driver
    cuda, nvml = driver.libcuda, driver.nvml
    no_word_against = nvml.outcome in {"ok", "missing", "not-asked"}
    if no_word_against and cuda.outcome in {"timeout", "crash"}:
        yield unknown("driver-state-stale", f"cuInit: {facts.said(cuda)}")
        return
    failed = no_word_against and cuda.outcome == "error"
    by_cuda = failed and cuda.code in STALE_CODES
    no_uvm = (
        failed and cuda.code in {facts.CUDA_NO_DEVICE, *STALE_CODES} and _uvm_node_missing(snapshot)
    )
    by_nvml = facts.on_host(snapshot) and nvml.outcome == "error" and nvml.code == NVML_UNKNOWN
    if not (by_cuda or no_uvm or by_nvml):
        if failed and not _has_own_check(snapshot):
            yield unknown(
                "driver-state-stale", f"cuInit fails and names no cause: {facts.said(cuda)}"
            )
        elif nvml.outcome == "error" and nvml.code not in NVML_OF_OTHER_CHECKS:
            yield unknown("driver-state-stale", f"NVML answers an error: {facts.said(nvml)}")
        return
    evidence = list(facts.answers(snapshot))
    if no_uvm:
        evidence.append(Evidence(label="/dev/nvidia-uvm", value="missing", via="/dev"))
    evidence += facts.log_evidence(
        facts.log_lines(snapshot, r"nvidia.uvm", r"suspend", r"resume", r"NVRM: .*fail")
    )
    if facts.in_container(snapshot):
        roads: tuple[Fix, ...] = (
            Fix(
                title="On the host, with nothing using the GPU, reload the memory module; then "
                "recreate the container",
                commands=("sudo modprobe -r nvidia_uvm", "sudo modprobe nvidia_uvm"),
            ),
        )
    else:
        roads = (
            Fix(
                title="Load the memory module of the driver and its device files"
                if no_uvm
                else "Reload the memory module of the driver (stop what uses the GPU first)",
                commands=("sudo nvidia-modprobe -c 0 -u",)
                if no_uvm
                else ("sudo modprobe -r nvidia_uvm", "sudo modprobe nvidia_uvm"),
            ),
            fixes.reboot("Or restart the machine"),
            Fix(
                title="When it comes back after suspend: let the driver save its state",
                commands=(
                    "sudo systemctl enable nvidia-suspend.service nvidia-resume.service "
                    "nvidia-hibernate.service",
                ),
            ),
        )
    yield finding(
        "driver-state-stale",
        "error",
        "driver",
        facts.driver_subject(snapshot),
        "CUDA does not initialise although the driver is loaded"
        if not by_nvml
        else "The driver is loaded but answers with an unknown error",
        found=f"cuInit: {facts.said(cuda)}" if not by_nvml else f"NVML: {facts.said(driver.nvml)}",
        needed="cuInit succeeds",
        why="The nvidia_uvm module is not loaded or has no device file, and CUDA cannot start "
        "without it."
        if no_uvm
        else "The driver's state no longer fits the GPU, most often after suspend and resume; the "
        "environment variables that frameworks suggest are not involved.",
        fix=roads,
        evidence=evidence,
    )


def _uvm_node_missing(snapshot: Snapshot) -> bool:
    nodes = snapshot.host.nodes
    return nodes is not None and not any(each.path == "/dev/nvidia-uvm" for each in nodes)


def _has_own_check(snapshot: Snapshot) -> bool:
    """Whether another check says why CUDA finds nothing."""
    code = snapshot.host.driver.libcuda.code
    if code in CODES_OF_OTHER_CHECKS:
        return True
    seen = facts.gpus(snapshot)
    return code == facts.CUDA_NO_DEVICE and (
        snapshot.env.variable("CUDA_VISIBLE_DEVICES") is not None
        or not seen
        or any(g.mig or g.error or g.compute_mode == "prohibited" for g in seen)
    )
