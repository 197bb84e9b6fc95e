"""Drift of many reports from one lock: hosts that are alike are compared once."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from envcheck.model.codec import decode
from envcheck.model.snapshot import Snapshot
from envcheck.planner.drift import compare

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.model.finding import Drift
    from envcheck.model.plan import Lock

_HOST = ("os", "driver", "gpus", "wsl", "container")
_DRIVER = ("version", "module_version", "userspace_version", "installed", "module_loaded")
_ENV = ("python", "frameworks")
_GPU = ("index", "name", "arch")

Compared = tuple[tuple["Drift", ...], tuple[str, ...]]
"""Drift, and reasons why something could not be compared."""


class Comparison:
    """Compares snapshots with a lock."""

    def __init__(self, lock: Lock, matrix: Matrix) -> None:
        """Take the lock, and the tables that say which names mean the same."""
        self._lock = lock
        self._matrix = matrix
        self._pinned = {each.name for each in lock.stack.pins}
        self._known: dict[str, Compared] = {}

    def drift(self, snapshot: dict[str, Any]) -> Compared:
        """Drift of a snapshot, given as plain data.

        Raises:
            CodecError: it is not the data of a snapshot.
            KeyError, TypeError: the same.
        """
        kept = self._reduced(snapshot)
        key = json.dumps(kept)
        if key not in self._known:
            drift, unknown = compare(self._lock, decode(Snapshot, kept), self._matrix)
            self._known[key] = drift, tuple(each.reason for each in unknown)
        return self._known[key]

    def _reduced(self, snapshot: dict[str, Any]) -> dict[str, Any]:
        """What a comparison looks at; what changes by the minute would make every host another."""
        host, env = snapshot["host"], snapshot["env"]
        packages = env["packages"]
        return {
            "source": snapshot["source"],
            "host": {
                **{name: host[name] for name in _HOST},
                "driver": {name: host["driver"][name] for name in _DRIVER},
                "gpus": host["gpus"] and [{n: each[n] for n in _GPU} for each in host["gpus"]],
            },
            "env": {
                **{name: env[name] for name in _ENV},
                "packages": packages
                and [
                    {"name": each["name"], "version": each["version"]}
                    for each in packages
                    if each["name"] in self._pinned or each["name"].startswith("nvidia-")
                ],
            },
            "gaps": [each for each in snapshot["gaps"] if each["path"].startswith("env")],
        }
