"""The live view: a line per GPU and one for the host, twice a second, gone when it ends."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import TracebackType

    from envcheck.watch.series import Tick

REFRESH_SECONDS = 0.5


class LiveView:
    """Draws on standard error, which stays free of it afterwards."""

    def __init__(self, gpus: list[dict[str, Any]]) -> None:
        """Take the facts of the GPUs."""
        from rich.console import Console
        from rich.live import Live

        self._facts = {each["index"]: each for each in gpus}
        self._known: dict[int, dict[str, Any]] = {index: {} for index in self._facts}
        self._host: dict[str, Any] = {}
        self._drawn = 0.0
        self._live = Live(console=Console(stderr=True), transient=True, auto_refresh=False)

    def __enter__(self) -> LiveView:
        """Begin."""
        self._live.start()
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        """Clear the view."""
        self._live.stop()

    def show(self, tick: Tick) -> None:
        """Take a tick, and draw when it is time."""
        for gpu in tick["gpus"]:
            self._known[gpu["i"]].update(gpu)
        self._host.update(tick.get("host", {}))
        now = time.monotonic()
        if now - self._drawn >= REFRESH_SECONDS:
            self._drawn = now
            self._live.update(self._table(tick["t"]), refresh=True)

    def _table(self, seconds: float) -> Any:
        from rich.table import Table

        table = Table(box=None, pad_edge=False, caption=self._caption(seconds))
        table.caption_justify = "left"
        for name in ("GPU", "used", "SM", "tensor", "memory bus", "power", "memory", "temp"):
            table.add_column(name, justify="left" if name == "GPU" else "right", no_wrap=True)
        for index, now in self._known.items():
            facts = self._facts[index]
            table.add_row(
                f"{index} {facts.get('name') or ''}",
                *(_percent(now.get(name)) for name in ("util", "sm", "tensor", "dram")),
                _of(now.get("power"), facts.get("power_limit"), 1.0, "W"),
                _of(now.get("mem"), facts.get("memory_total"), float(1 << 30), "GiB"),
                f"{now['temp']} °C" if "temp" in now else "",
            )
        return table

    def _caption(self, seconds: float) -> str:
        parts = [f"{seconds:.0f} s"]
        for name, label in (
            ("cpu", "cores busy"),
            ("gpu_cpu", "on the GPU"),
            ("worker_cpu", "helping"),
        ):
            if name in self._host:
                parts.append(f"{self._host[name]:.1f} {label}")
        if self._host.get("iowait", 0.0) >= 0.1:
            parts.append(f"{self._host['iowait']:.1f} waiting for disks")
        return "   ".join(parts)


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:.0f} %"


def _of(value: float | None, limit: float | None, unit: float, name: str) -> str:
    if value is None:
        return ""
    return (
        f"{value / unit:.0f}/{limit / unit:.0f} {name}" if limit else f"{value / unit:.0f} {name}"
    )
