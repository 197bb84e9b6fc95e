"""How busy GPUs and host were over a while, as averages of sampled counters.

Shares and rates are means over the watched window; `None` is a counter that this GPU, driver or
system does not give. Percentages are 0 to 100, CPU is counted in cores: 1.5 is one and a half.
"""

from __future__ import annotations

from typing import Literal

from envcheck.model.base import model


@model
class Spread:
    """How one counter was distributed over the window."""

    mean: float
    low: float
    """5th percentile."""
    median: float
    high: float
    """95th percentile."""
    peak: float


@model
class Share:
    """How much of the window something was the case, 0 to 1."""

    name: str
    share: float


@model
class Gaps:
    """Times in which a GPU did nothing, as far as the interval of sampling shows them."""

    share: float
    """Of the window, 0 to 1."""
    count: int
    longest_seconds: float
    gpu_process_cpu: float | None = None
    """Cores that processes with a GPU context used meanwhile."""
    worker_cpu: float | None = None
    """Cores that the other processes of the tree used meanwhile: data loaders and the like."""
    iowait: float | None = None
    """Cores of the machine that waited for disks meanwhile."""


@model
class GpuActivity:
    """One GPU over the window."""

    index: int
    name: str | None = None
    arch: str | None = None
    samples: int = 0
    via: Literal["gpm", "dcgm", "nvml"] = "nvml"
    """Where SM, tensor and memory activity come from; `nvml` gives utilisation and power only."""
    utilization: Spread | None = None
    """NVML: percent of time in which some kernel ran, however small."""
    sm: Spread | None = None
    """Percent of the multiprocessors that were busy."""
    occupancy: Spread | None = None
    """Percent of the warps that could be active and were."""
    tensor: Spread | None = None
    fp64: Spread | None = None
    fp32: Spread | None = None
    fp16: Spread | None = None
    dram: Spread | None = None
    """Percent of the memory's bandwidth."""
    pcie_in: Spread | None = None
    """MB/s to the GPU."""
    pcie_out: Spread | None = None
    pcie_limit: float | None = None
    """MB/s of the link in one direction."""
    nvlink_in: Spread | None = None
    """MB/s over all links."""
    nvlink_out: Spread | None = None
    nvlink_limit: float | None = None
    """MB/s of all links in one direction."""
    power_watts: Spread | None = None
    power_limit_watts: float | None = None
    clock_mhz: Spread | None = None
    clock_max_mhz: int | None = None
    temperature_c: Spread | None = None
    memory_used_bytes: int | None = None
    """The most that was in use."""
    memory_total_bytes: int | None = None
    throttle: tuple[Share, ...] = ()
    """Why clocks were held down, in the names of `Gpu.throttle_reasons`."""
    pcie_replays: int | None = None
    """Packets that had to be sent again over PCIe during the window."""
    gaps: Gaps | None = None


@model
class Thread:
    """The busiest thread of the processes that hold a GPU context."""

    name: str
    cpu: Spread
    """In cores: 1 is a core used up."""


@model
class HostActivity:
    """The host over the window."""

    cores: int
    cpu: Spread | None = None
    """Cores in use on the whole machine."""
    gpu_process_cpu: Spread | None = None
    """Cores that watched processes with a GPU context used."""
    worker_cpu: Spread | None = None
    """Cores that the other watched processes used."""
    busiest: Thread | None = None
    iowait: Spread | None = None
    """Cores that waited for disks."""
    blocked: Spread | None = None
    """Watched processes that waited for a disk or network file system, uninterruptibly."""
    run_queue: Spread | None = None
    """Threads that ran or wanted to, on the whole machine."""
    major_faults: Spread | None = None
    """Pages a second that watched processes had read from disk."""
    disk_read: Spread | None = None
    """MB/s of all disks."""
    disk_write: Spread | None = None
    network_in: Spread | None = None
    """MB/s of all network and InfiniBand ports but loopback."""
    network_out: Spread | None = None
    network_limit: float | None = None
    """MB/s of those ports whose speed is known."""
    shm_used_bytes: int | None = None
    """The most of /dev/shm that was in use."""
    shm_total_bytes: int | None = None


@model
class Steps:
    """Training steps that the program itself reported through `envcheck.watch.step`."""

    count: int
    seconds: float
    """Mean time from the begin of one step to the begin of the next."""
    data_wait: float
    """Mean seconds between steps: the loop waited for its next batch."""
    to_device: float | None = None
    """Mean seconds of copies to the GPU that were marked."""
    compute: float | None = None
    communication: float | None = None
    """Mean seconds of communication that was marked."""
    overhead: float | None = None
    """Share of the program's time that measuring took."""


@model
class Activity:
    """What was sampled over a while."""

    seconds: float
    """Length of the window that is judged."""
    samples: int
    interval: float | None = None
    """Seconds between samples."""
    target: Literal["machine", "process", "command"] = "machine"
    started: float = 0.0
    """Seconds before the window that are not judged: a command's start, until it used a GPU."""
    gpu_context: bool | None = None
    """Whether a watched process held a GPU context; None when that could not be seen."""
    frameworks: tuple[str, ...] = ()
    """Frameworks that watched processes had loaded: torch, tensorflow, jax."""
    framework_seconds: float | None = None
    """For how long one was loaded, up to the end."""
    gpus: tuple[GpuActivity, ...] = ()
    host: HostActivity | None = None
    steps: Steps | None = None
    sampler_cpu: float | None = None
    """Cores that sampling itself used."""
    notes: tuple[str, ...] = ()
    """What could not be sampled, and why."""
