"""A series as a table of comma-separated values: one row per sample and GPU."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from envcheck.watch.series import Series

GPU_COLUMNS = {
    "util": "utilization_percent",
    "sm": "sm_percent",
    "occ": "occupancy_percent",
    "tensor": "tensor_percent",
    "dram": "dram_percent",
    "power": "power_watts",
    "clock": "clock_mhz",
    "temp": "temperature_c",
    "mem": "memory_bytes",
    "pcie_in": "pcie_in_mb_s",
    "pcie_out": "pcie_out_mb_s",
    "nvl_in": "nvlink_in_mb_s",
    "nvl_out": "nvlink_out_mb_s",
}
HOST_COLUMNS = {
    "cpu": "cpu_cores",
    "gpu_cpu": "gpu_process_cores",
    "worker_cpu": "worker_cores",
    "iowait": "iowait_cores",
    "run": "run_queue",
    "disk_r": "disk_read_mb_s",
    "disk_w": "disk_write_mb_s",
}


def csv_text(series: Series) -> str:
    """The table with its heading; a counter that a sample does not have is an empty cell."""
    made = io.StringIO()
    writer = csv.writer(made, lineterminator="\n")
    writer.writerow(["seconds", "gpu", *GPU_COLUMNS.values(), *HOST_COLUMNS.values()])
    for tick in series.ticks:
        host = tick.get("host", {})
        for gpu in tick["gpus"]:
            writer.writerow(
                [
                    tick["t"],
                    gpu["i"],
                    *(gpu.get(name, "") for name in GPU_COLUMNS),
                    *(host.get(name, "") for name in HOST_COLUMNS),
                ]
            )
    return made.getvalue()
