"""What happened when something small was run on the GPU."""

from __future__ import annotations

from typing import Literal

from envcheck.model.base import model

StageOutcome = Literal["ok", "error", "wrong", "crash", "timeout", "skipped"]
"""It worked, it failed with a message, it gave wrong numbers, its process died by a signal, it hung
and was killed, or it does not apply here."""


@model
class Metric:
    """A figure that a stage measured."""

    name: str
    value: float
    unit: str = ""


@model
class Stage:
    """One step of the smoke test."""

    framework: str
    """torch, jax, tensorflow, or cuda for libcuda alone."""
    device: str
    """`cuda:0`, `cpu`; `cuda:0,cuda:1` where several take part."""
    name: str
    outcome: StageOutcome
    seconds: float | None = None
    detail: str = ""
    """Why it was skipped, the first line of its error, the signal that ended it."""
    output: tuple[str, ...] = ()
    """Last lines that its process wrote, where it failed."""
    metrics: tuple[Metric, ...] = ()


@model
class Smoke:
    """A run of the smoke test."""

    device: str
    """What was asked for: `cuda` or `cpu`."""
    stages: tuple[Stage, ...] = ()
    seconds: float | None = None
