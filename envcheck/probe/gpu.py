"""GPUs, from NVML where it answers, else from nvidia-smi, else from libcuda."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from envcheck.model.host import Gpu, GpuProcess
from envcheck.probe.answers import payload_answer
from envcheck.probe.shapes import LIBCUDA, NVML
from envcheck.probe.source import Command

if TYPE_CHECKING:
    from collections.abc import Mapping

    from envcheck.probe.notes import Notes
    from envcheck.probe.quiet import Quiet
    from envcheck.probe.source import Result

SMI_FIELDS = ("index", "name", "compute_cap", "pci.bus_id", "memory.total", "memory.used")
SMI_QUERY = Command(
    name="nvidia-smi-query",
    argv=("nvidia-smi", f"--query-gpu={','.join(SMI_FIELDS)}", "--format=csv,noheader,nounits"),
)
SMI_BANNER = Command(name="nvidia-smi-banner", argv=("nvidia-smi",))

CUDA_NO_DEVICE = 100

_BUS_ID = re.compile(r"([0-9a-f]{4,8}):([0-9a-f]{2}:[0-9a-f]{2}\.[0-7])")
_ARCH = re.compile(r"\d+\.\d+")


def read_gpus(source: Quiet, results: Mapping[str, Result], notes: Notes) -> tuple[Gpu, ...] | None:
    """GPUs as the driver reports them.

    Returns:
        Empty only when the driver answered that there is none; None, with a gap, when nothing that
        could say so answered.
    """
    nvml, nvml_why = payload_answer(results.get("payload:query_nvml"), NVML)
    if nvml is not None and nvml.get("gpus") is not None:
        return tuple(_from_nvml(each, source) for each in nvml["gpus"])
    rows = _from_smi(results.get(SMI_QUERY.name))
    if rows is not None:
        return rows
    libcuda, libcuda_why = payload_answer(results.get("payload:query_libcuda"), LIBCUDA)
    if libcuda is not None and libcuda.get("gpus") is not None:
        notes.missing("host.gpus.details", "only libcuda answered: it names the visible GPUs only")
        return tuple(_from_libcuda(each) for each in libcuda["gpus"])
    if libcuda is not None and libcuda.get("init") == CUDA_NO_DEVICE and nvml is not None:
        init = nvml.get("init") or {}
        if not init:
            return ()
    said = nvml or {}
    failure = said.get("init") or (said.get("errors") or {}).get("count") or {}
    reason = failure.get("message") or nvml_why
    notes.missing("host.gpus", reason or libcuda_why or "no driver answered")
    return None


def bus_id(text: str | None) -> str | None:
    """A PCI address as /sys spells it: NVML prints `00000000:06:00.0` for `0000:06:00.0`."""
    if not text:
        return None
    bare = text.strip().lower()
    match = _BUS_ID.fullmatch(bare)
    return f"{int(match.group(1), 16):04x}:{match.group(2)}" if match else bare


def _from_nvml(data: dict[str, Any], source: Quiet) -> Gpu:
    errors = data.get("errors") or {}
    handle = errors.get("handle") or {}
    lost = next(
        (each["message"] for each in errors.values() if "lost" in str(each.get("message")).lower()),
        None,
    )
    processes = data.get("processes")
    plain = {
        name: data.get(name)
        for name in (
            "name",
            "arch",
            "memory_total_bytes",
            "memory_used_bytes",
            "mig",
            "mig_instances",
            "compute_mode",
            "persistence",
            "ecc",
            "ecc_uncorrected",
            "retired_pages_pending",
            "remap_pending",
            "remap_failed",
            "temperature_c",
            "power_watts",
            "power_limit_watts",
            "utilization_percent",
            "pcie_generation",
            "pcie_generation_max",
            "pcie_width",
            "pcie_width_max",
            "fabric_state",
            "fabric_status",
        )
    }
    return Gpu(
        index=data["index"],
        bus_id=bus_id(data.get("bus_id")),
        throttle_reasons=tuple(data.get("throttle_reasons") or ()),
        processes=None
        if processes is None
        else tuple(
            GpuProcess(
                pid=each["pid"],
                name=_process_name(source, each["pid"]),
                memory_bytes=each.get("memory_bytes"),
            )
            for each in processes
        ),
        error=handle.get("message") or lost,
        **plain,
    )


def _process_name(source: Quiet, pid: int) -> str | None:
    name = source.read(f"/proc/{pid}/comm")
    return name.strip() if name else None


def _from_smi(result: Result | None) -> tuple[Gpu, ...] | None:
    if result is None or result.code != 0:
        return None
    import csv

    try:
        rows = list(csv.reader(result.stdout.splitlines(), skipinitialspace=True))
    except csv.Error:
        # Something other than nvidia-smi answers by that name.
        return None
    gpus = []
    for row in rows:
        if len(row) != len(SMI_FIELDS) or not row[0].isdecimal():
            continue
        # `[N/A]`, `[Not Supported]`, `[Unknown Error]`, `[GPU requires reset]`
        index, name, arch, bus, total, used = (
            None if cell.startswith("[") or cell == "N/A" else cell for cell in row
        )
        gpus.append(
            Gpu(
                index=int(index or 0),
                name=name,
                arch=arch if arch and _ARCH.fullmatch(arch) else None,
                bus_id=bus_id(bus),
                memory_total_bytes=_mebibytes(total),
                memory_used_bytes=_mebibytes(used),
            )
        )
    return tuple(gpus) or None


def _mebibytes(text: str | None) -> int | None:
    return int(text) << 20 if text and text.isdecimal() else None


def _from_libcuda(data: dict[str, Any]) -> Gpu:
    return Gpu(
        index=data["index"],
        name=data.get("name"),
        arch=data.get("arch"),
        bus_id=bus_id(data.get("bus_id")),
        memory_total_bytes=data.get("memory_total_bytes"),
        error=data.get("error"),
    )
