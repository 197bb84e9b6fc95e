"""A machine at one moment: all facts that rules may judge."""

from __future__ import annotations

from envcheck.model.activity import Activity
from envcheck.model.base import model
from envcheck.model.environment import Environment
from envcheck.model.host import Host
from envcheck.model.smoke import Smoke
from envcheck.model.symptom import Symptom

SCHEMA = 1


@model
class Gap:
    """Something that the probe could not learn.

    `path` is the dotted place in the snapshot (`host.gpus`, `env.packages`), `reason` what stood in
    the way, in words for a person.
    """

    path: str
    reason: str


@model
class Snapshot:
    """Facts about one machine and one Python environment on it."""

    schema: int = SCHEMA
    source: str = "live"
    """`live`, `recorded:<name>`, `report`, `image:<ref>`, `plan`."""
    taken_at: str | None = None
    """ISO 8601, UTC."""
    envcheck: str | None = None
    """Version of envcheck that took it."""
    host: Host = Host()
    env: Environment = Environment()
    symptoms: tuple[Symptom, ...] = ()
    """Messages that were recognised, in a pasted text, the kernel log or a child's output."""
    smoke: Smoke | None = None
    activity: Activity | None = None
    gaps: tuple[Gap, ...] = ()

    def gap(self, path: str) -> str | None:
        """Why a fact is missing: the reason of the gap at `path` or nearest above it."""
        while path:
            for each in self.gaps:
                if each.path == path:
                    return each.reason
            path = path.rpartition(".")[0]
        return None
