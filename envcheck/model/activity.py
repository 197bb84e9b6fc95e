"""How busy GPUs and host were over a while, as averages of sampled counters."""

from __future__ import annotations

from envcheck.model.base import model


@model
class Activity:
    """What was sampled over a while."""

    seconds: float
    """How long it was sampled."""
    samples: int
