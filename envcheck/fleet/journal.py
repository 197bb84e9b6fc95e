"""The journal of a run: which hosts were to be asked, and what came of each, a line each.

It is only ever appended to, so that a run that is cut off loses nothing that it knew.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from envcheck.fleet.model import Absent
from envcheck.fleet.names import file_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from envcheck.fleet.model import AbsentKind

NAME = "run.jsonl"
Outcome = Literal["ok", "unreachable", "failed"]
_OUTCOMES = ("ok", "unreachable", "failed")


class Journal:
    """The journal in a folder of reports; empty when there is none."""

    def __init__(self, folder: str) -> None:
        """Read what is there; a line that was cut off is passed over."""
        self._folder = Path(folder)
        self.options: dict[str, Any] | None = None
        """What the reports were asked for with; None before the first run."""
        self.hosts: dict[str, None] = {}
        """Every host that was to be asked."""
        self.outcomes: dict[str, tuple[Outcome, str]] = {}
        """The last outcome of each host, and why."""
        try:
            lines = (self._folder / NAME).read_text(encoding="utf-8", errors="replace").splitlines()
        except (FileNotFoundError, NotADirectoryError):
            return
        for line in lines:
            self._take(line)

    def _take(self, line: str) -> None:
        try:
            data = json.loads(line)
        except (ValueError, RecursionError):
            return
        if not isinstance(data, dict):
            return
        hosts, host, outcome = data.get("hosts"), data.get("host"), data.get("outcome")
        if isinstance(hosts, list):
            options = data.get("options")
            self.options = options if isinstance(options, dict) else {}
            self.hosts.update(dict.fromkeys(map(str, hosts)))
        elif isinstance(host, str) and outcome in _OUTCOMES:
            self.outcomes[host] = cast("Outcome", outcome), str(data.get("reason", ""))

    def begin(self, hosts: Iterable[str], options: Mapping[str, Any], *, anew: bool) -> None:
        """Write that a run begins; `anew` forgets what earlier runs came to."""
        path = self._folder / NAME
        if anew:
            self.hosts, self.outcomes = {}, {}
            path.unlink(missing_ok=True)
        self.options = dict(options)
        names = list(hosts)
        self.hosts.update(dict.fromkeys(names))
        self._write({"options": self.options, "hosts": names})

    def note(self, host: str, outcome: Outcome, reason: str = "") -> None:
        """Write what came of a host."""
        self.outcomes[host] = outcome, reason
        self._write({"host": host, "outcome": outcome, **({"reason": reason} if reason else {})})

    def _write(self, data: dict[str, Any]) -> None:
        # What was cut off must not swallow the next line.
        path = self._folder / NAME
        lead = ""
        if path.is_file() and path.stat().st_size:
            with path.open("rb") as file:
                file.seek(-1, 2)
                lead = "" if file.read() == b"\n" else "\n"
        with path.open("a", encoding="utf-8") as file:
            file.write(lead + json.dumps(data) + "\n")

    def done(self, host: str) -> bool:
        """Whether a host gave its report, and that is still there."""
        return self.outcomes.get(host, ("",))[0] == "ok" and self._has_report(host)

    def _has_report(self, host: str) -> bool:
        return (self._folder / file_name(host)).is_file()

    def absent(self) -> tuple[Absent, ...]:
        """Hosts that were to be asked and gave no report."""
        found = []
        for host in self.hosts:
            outcome, reason = self.outcomes.get(host, ("not-asked", "the run ended before"))
            if outcome != "ok":
                found.append(
                    Absent(
                        name=host,
                        kind=cast("AbsentKind", outcome),
                        reason=reason,
                        report=self._has_report(host),
                    )
                )
        return tuple(found)
