"""What was watched, as the first part of the report of `envcheck watch`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.report.components import Row
from envcheck.report.foreign import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from envcheck.model.activity import Activity, GpuActivity, HostActivity, Spread, Steps

GIB = 1 << 30

_TARGETS = {"machine": "this machine", "process": "a process", "command": "a command"}


def activity_rows(activity: Activity, tables: tuple[tuple[str, str], ...] = ()) -> tuple[Row, ...]:
    """Rows of the table: how long, each GPU, the host, and the program's own steps.

    Args:
        activity: what was sampled.
        tables: (table, date) pairs that it was judged by.
    """
    rows = [Row(name="Watched", text=_watched(activity))]
    rows += [Row(name=f"GPU {gpu.index}", text=", ".join(_gpu(gpu))) for gpu in activity.gpus]
    if activity.host is not None:
        rows.append(Row(name="Host", text=", ".join(_host(activity.host))))
    if activity.steps is not None:
        rows.append(Row(name="Steps", text=", ".join(_steps(activity.steps))))
    rows += [
        Row(name="Not sampled", text=each, state="unknown")
        for each in dict.fromkeys(activity.notes)
    ]
    date = dict(tables).get("activity")
    if date is not None:
        rows.append(Row(name="Judged by", text=f"thresholds of {date}"))
    return tuple(Row(name=row.name, text=one_line(row.text), state=row.state) for row in rows)


def _watched(activity: Activity) -> str:
    text = f"{_TARGETS[activity.target]} for {activity.seconds:.1f} s, {activity.samples} samples"
    if activity.started >= 0.1:
        text += f", after {activity.started:.1f} s of start in which no GPU was used"
    if activity.sampler_cpu is not None:
        text += f"; sampling took {100 * activity.sampler_cpu:.1f} % of a core"
    return text


def _percent(spread: Spread | None, name: str) -> Iterator[str]:
    if spread is not None:
        value = f"{spread.mean:.2f}" if 0.0 < spread.mean < 1.0 else f"{spread.mean:.0f}"
        yield f"{name} {value} %"


def _gpu(gpu: GpuActivity) -> Iterator[str]:
    yield gpu.name or "unnamed GPU"
    yield from _percent(gpu.utilization, "utilisation")
    yield from _percent(gpu.sm, "SM activity")
    yield from _percent(gpu.tensor, "tensor")
    yield from _percent(gpu.dram, "memory bandwidth")
    if gpu.power_watts is not None:
        limit = f" of {gpu.power_limit_watts:.0f}" if gpu.power_limit_watts else ""
        yield f"{gpu.power_watts.mean:.0f}{limit} W"
    if gpu.memory_used_bytes is not None and gpu.memory_total_bytes:
        yield f"{gpu.memory_used_bytes / GIB:.1f} of {gpu.memory_total_bytes / GIB:.0f} GiB"
    if gpu.clock_mhz is not None:
        yield f"{gpu.clock_mhz.mean:.0f} MHz"
    if gpu.temperature_c is not None:
        yield f"{gpu.temperature_c.peak:.0f} °C"
    for name, one, other in (
        ("PCIe", gpu.pcie_in, gpu.pcie_out),
        ("NVLink", gpu.nvlink_in, gpu.nvlink_out),
    ):
        rate = max(each.mean if each is not None else 0.0 for each in (one, other))
        if rate >= 100.0:
            yield f"{name} {rate / 1000:.1f} GB/s"
    if gpu.pcie_replays:
        yield f"{gpu.pcie_replays} PCIe packets sent again"


def _host(host: HostActivity) -> Iterator[str]:
    if host.cpu is not None:
        yield f"{host.cpu.mean:.1f} of {host.cores} cores in use"
    if host.gpu_process_cpu is not None:
        yield f"processes on the GPU {host.gpu_process_cpu.mean:.1f}"
    if host.worker_cpu is not None:
        yield f"their helpers {host.worker_cpu.mean:.1f}"
    if host.busiest is not None:
        yield f"busiest thread {host.busiest.name} {100 * host.busiest.cpu.mean:.0f} % of a core"
    if host.iowait is not None and host.iowait.mean >= 0.05:
        yield f"{host.iowait.mean:.1f} cores waiting for disks"
    if host.disk_read is not None and host.disk_read.mean >= 1.0:
        yield f"disks read {host.disk_read.mean:.0f} MB/s"
    if (
        host.shm_total_bytes
        and host.shm_used_bytes
        and host.shm_used_bytes * 20 > host.shm_total_bytes
    ):
        yield f"/dev/shm {host.shm_used_bytes / GIB:.1f} of {host.shm_total_bytes / GIB:.1f} GiB"


def _steps(steps: Steps) -> Iterator[str]:
    yield f"{steps.count} of {1000 * steps.seconds:.1f} ms"
    for name, value in (
        ("waiting for data", steps.data_wait),
        ("copies to the GPU", steps.to_device),
        ("computing", steps.compute),
        ("communicating", steps.communication),
    ):
        if value is not None and steps.seconds > 0.0:
            yield f"{name} {1000 * value:.1f} ms ({value / steps.seconds:.0%})"
