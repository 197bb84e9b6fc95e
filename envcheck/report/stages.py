"""The smoke test in words: one row per stage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.report.components import Row
from envcheck.report.foreign import one_line

if TYPE_CHECKING:
    from envcheck.model.smoke import Metric, Smoke, Stage

_SIZES = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def rows(smoke: Smoke) -> tuple[Row, ...]:
    """Rows of the table of stages; which of them failed is in the text and in the colour."""
    return tuple(
        Row(
            name=one_line(f"{each.framework} {each.device} {each.name}"),
            text=one_line(_text(each)),
            state={"ok": "found", "skipped": "absent"}.get(each.outcome, "unknown"),  # type: ignore[arg-type]
        )
        for each in smoke.stages
    )


def _text(stage: Stage) -> str:
    seconds = f" {stage.seconds:.2f} s" if stage.seconds is not None else ""
    details = [stage.detail] if stage.detail else []
    details += [metric_text(each) for each in stage.metrics]
    return f"{stage.outcome}{seconds}" + (f": {', '.join(details)}" if details else "")


def metric_text(metric: Metric) -> str:
    """`pinned to gpu 25.1 GB/s`: a figure with its name."""
    value, unit = f"{metric.value:.3g}", metric.unit
    if unit == "B":
        value, unit = next(
            ((f"{metric.value / size:.3g}", name) for size, name in _SIZES if metric.value >= size),
            (f"{metric.value:.0f}", "B"),
        )
    elif unit == "relative":
        unit = ""
    return f"{metric.name.replace('_', ' ')} {value}" + (f" {unit}" if unit else "")
