"""The timeline as a picture: utilisation against what the GPU really did, power and CPU below."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envcheck.errors import UsageError

if TYPE_CHECKING:
    from envcheck.watch.series import Series


def require_matplotlib() -> None:
    """Say at once when there is nothing to draw with.

    Raises:
        UsageError: matplotlib is not installed.
    """
    if importlib.util.find_spec("matplotlib") is None:
        msg = "--plot needs matplotlib: pip install 'envcheck[plot]'"
        raise UsageError(msg)


def draw(series: Series, path: str, title: str = "") -> None:
    """Draw a series into a PNG file, as a whole or not at all.

    Args:
        series: what was sampled.
        path: file to write.
        title: stands above the picture.

    Raises:
        UsageError: matplotlib is missing, or the file cannot be written.
    """
    require_matplotlib()
    from matplotlib.figure import Figure

    gpus = series.head.get("gpus", ())
    figure = Figure(figsize=(9.6, 2.2 * len(gpus) + 2.6), layout="constrained", dpi=110)
    axes = figure.subplots(len(gpus) + 1, 1, sharex=True, squeeze=False)[:, 0]
    for facts, axis in zip(gpus, axes[:-1], strict=True):
        _gpu(axis, series, facts)
    _host(axes[-1], series)
    axes[-1].set_xlabel("seconds")
    if title:
        figure.suptitle(title, fontsize=10)
    draft = Path(path).with_name(f".{Path(path).name}.part")
    try:
        figure.savefig(draft, format="png")
        draft.replace(path)
    except OSError as error:
        draft.unlink(missing_ok=True)
        msg = f"cannot write {path}: {error.strerror or error}"
        raise UsageError(msg) from error


def _column(series: Series, index: int, name: str) -> tuple[list[float], list[float]]:
    """Times and values of one counter of a GPU."""
    pairs = [
        (tick["t"], gpu[name])
        for tick in series.ticks
        for gpu in tick["gpus"]
        if gpu["i"] == index and name in gpu
    ]
    return [time for time, _ in pairs], [value for _, value in pairs]


def _gpu(axis: Any, series: Series, facts: dict[str, Any]) -> None:
    index = facts["index"]
    times, used = _column(series, index, "util")
    axis.fill_between(times, used, step="pre", color="0.85", label="utilisation (nvidia-smi)")
    for name, label, colour in (
        ("sm", "SM activity", "tab:blue"),
        ("tensor", "tensor activity", "tab:green"),
        ("dram", "memory bandwidth", "tab:orange"),
    ):
        moments, values = _column(series, index, name)
        if moments:
            axis.plot(moments, values, color=colour, linewidth=1.3, label=label)
    limit = facts.get("power_limit")
    moments, watts = _column(series, index, "power")
    if moments and limit:
        share = [100.0 * each / limit for each in watts]
        axis.plot(
            moments, share, "--", color="tab:red", linewidth=1.1, label=f"power of {limit:.0f} W"
        )
    axis.set_ylim(0, 105)
    axis.set_ylabel("%")
    axis.set_title(f"GPU {index}: {facts.get('name') or ''}", fontsize=9, loc="left")
    axis.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1.0, 1.0))


def _host(axis: Any, series: Series) -> None:
    for name, label, colour in (
        ("cpu", "whole machine", "0.7"),
        ("gpu_cpu", "processes on the GPU", "tab:blue"),
        ("worker_cpu", "their helpers", "tab:orange"),
        ("iowait", "waiting for disks", "tab:red"),
    ):
        pairs = [(t["t"], t["host"][name]) for t in series.ticks if name in t.get("host", {})]
        if pairs:
            axis.plot(*zip(*pairs, strict=True), color=colour, linewidth=1.2, label=label)
    axis.set_ylim(bottom=0)
    axis.set_ylabel("cores")
    axis.set_title("CPU", fontsize=9, loc="left")
    axis.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1.0, 1.0))
