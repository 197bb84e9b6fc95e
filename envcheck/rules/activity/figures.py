"""What rules on activity compare: the thresholds of the table, and figures of a GPU beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.matrix import schema
from envcheck.model.finding import Evidence

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.model.activity import Activity, GpuActivity, Spread


class Limits:
    """The thresholds by name."""

    def __init__(self, matrix: Matrix) -> None:
        """Read the table."""
        self._rows = {row.name: row for row in matrix.rows(schema.ActivityThreshold)}

    def __call__(self, name: str) -> float:
        """The figure of a row, as the table has it."""
        return float(self._rows[name].value)

    def rows(self, *names: str) -> tuple[schema.ActivityThreshold, ...]:
        """Rows to cite."""
        return tuple(self._rows[name] for name in names)

    def share(self, name: str) -> float:
        """A percentage as a share, 0 to 1."""
        return self(name) / 100.0


def mean(spread: Spread | None) -> float | None:
    """The mean of a counter, None when it was not sampled."""
    return None if spread is None else spread.mean


def known(spread: Spread | None) -> float:
    """The mean of a counter, 0 when it was not sampled."""
    return 0.0 if spread is None else spread.mean


def power_percent(gpu: GpuActivity) -> float | None:
    """Mean power in percent of the limit."""
    if gpu.power_watts is None or not gpu.power_limit_watts:
        return None
    return 100.0 * gpu.power_watts.mean / gpu.power_limit_watts


def fill_percent(gpu: GpuActivity) -> float | None:
    """How much of the GPU its kernels fill while they run: SM activity per utilisation."""
    if gpu.sm is None or gpu.utilization is None or gpu.utilization.mean <= 0.0:
        return None
    return 100.0 * gpu.sm.mean / gpu.utilization.mean


def pipes_percent(gpu: GpuActivity) -> float | None:
    """The busiest of the arithmetic pipes."""
    found = [each.mean for each in (gpu.tensor, gpu.fp64, gpu.fp32, gpu.fp16) if each is not None]
    return max(found, default=None)


def link_percents(activity: Activity, gpu: GpuActivity) -> dict[str, float]:
    """How busy NVLink, PCIe and the network ports are, the busier direction, in percent."""
    host = activity.host
    pairs = {
        "NVLink": (gpu.nvlink_in, gpu.nvlink_out, gpu.nvlink_limit),
        "PCIe": (gpu.pcie_in, gpu.pcie_out, gpu.pcie_limit),
    }
    if host is not None:
        pairs["network"] = (host.network_in, host.network_out, host.network_limit)
    return {
        name: 100.0 * max(known(one), known(other)) / limit
        for name, (one, other, limit) in pairs.items()
        if limit and (one is not None or other is not None)
    }


def gpu_evidence(gpu: GpuActivity) -> tuple[Evidence, ...]:
    """The figures of a GPU that every verdict on it rests on."""
    via = {"gpm": "NVML GPM", "dcgm": "DCGM", "nvml": "NVML"}[gpu.via]
    found = []
    for label, spread, source in (
        ("utilisation", gpu.utilization, "NVML"),
        ("SM activity", gpu.sm, via),
        ("tensor activity", gpu.tensor, via),
        ("memory bandwidth", gpu.dram, via),
    ):
        if spread is not None:
            found.append(Evidence(label=label, value=percent(spread.mean), via=source))
    if gpu.power_watts is not None:
        limit = f" of {gpu.power_limit_watts:.0f} W" if gpu.power_limit_watts else " W"
        found.append(
            Evidence(label="power", value=f"{gpu.power_watts.mean:.0f}{limit}", via="NVML")
        )
    if gpu.gaps is not None and gpu.gaps.count:
        longest = f"longest {gpu.gaps.longest_seconds:.1f} s"
        found.append(
            Evidence(
                label="samples without work", value=f"{gpu.gaps.share:.0%}, {longest}", via=via
            )
        )
    return tuple(found)


def host_evidence(activity: Activity) -> tuple[Evidence, ...]:
    """What the watched processes did meanwhile."""
    host = activity.host
    if host is None:
        return ()
    found = []
    for label, spread in (
        ("CPU of the processes on the GPU", host.gpu_process_cpu),
        ("CPU of their helpers", host.worker_cpu),
    ):
        if spread is not None:
            found.append(Evidence(label=label, value=f"{spread.mean:.1f} cores", via="/proc"))
    if host.busiest is not None:
        value = f"{host.busiest.name}, {100 * host.busiest.cpu.mean:.0f} % of a core"
        found.append(Evidence(label="busiest thread", value=value, via="/proc"))
    if host.iowait is not None and host.iowait.mean >= 0.1:
        value = f"{host.iowait.mean:.1f} cores waiting for disks"
        found.append(Evidence(label="I/O wait", value=value, via="/proc/stat"))
    if host.blocked is not None and host.blocked.mean >= 0.1:
        value = f"{host.blocked.mean:.1f} processes waiting for storage"
        found.append(Evidence(label="blocked", value=value, via="/proc"))
    steps = activity.steps
    if steps is not None and steps.seconds > 0.0:
        value = f"{steps.data_wait:.4f} of {steps.seconds:.4f} s per step"
        found.append(Evidence(label="waiting for data", value=value, via="envcheck.watch.step"))
    return tuple(found)


def percent(value: float) -> str:
    """`27 %`; small figures with a digit more, since 0.03 is not nothing."""
    if 0.0 < value < 0.1:
        return f"{value:.2f} %"
    return f"{value:.1f} %" if value < 10.0 else f"{value:.0f} %"


def label(gpus: tuple[GpuActivity, ...]) -> str:
    """`GPU 0: NVIDIA H200`, `GPU 0, 1: NVIDIA H200`."""
    numbers = ", ".join(str(each.index) for each in gpus)
    names = ", ".join(dict.fromkeys(each.name for each in gpus if each.name))
    return f"GPU {numbers}: {names}" if names else f"GPU {numbers}"
