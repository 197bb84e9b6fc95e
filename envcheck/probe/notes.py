"""Where collectors write down what they could not learn."""

from __future__ import annotations

from envcheck.model.snapshot import Gap


class Notes:
    """Collects gaps; one per place, the first reason wins."""

    def __init__(self) -> None:
        """Start empty."""
        self._reasons: dict[str, str] = {}

    def missing(self, path: str, reason: str) -> None:
        """Note that the fact at a dotted snapshot path (`host.gpus`) is missing, and why."""
        self._reasons.setdefault(path, reason)

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """All gaps, in the order they were met."""
        return tuple(Gap(path=path, reason=reason) for path, reason in self._reasons.items())
