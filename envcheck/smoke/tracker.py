"""Turns the events of one child into stages: what it reported, and what its end says."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, cast, get_args

from envcheck.model.smoke import Metric, Stage, StageOutcome
from envcheck.probe.answers import signal_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from envcheck.smoke.child import Child, End

Event = dict[str, Any]

KEPT = 40
"""Lines of output that a failed stage keeps."""
_LONGEST = 300
"""Characters of a line."""
_TELLING = re.compile(
    r"\bWARN\b|error|fail|unable|cannot|could not|no space|Bootstrap|NET/|Fatal Python|\bvia P2P",
    re.I,
)
"""Lines that are kept before others where there are too many."""
_PREFIX = re.compile(r"^\S+:\d+:\d+ (?=\[\d+\] NCCL |NCCL )")
"""Host, process and thread that NCCL writes before each line."""
_SUMMARY = re.compile(
    r"Root Cause.*?rank\s*:\s*(?P<rank>\d+).*?exitcode\s*:\s*(?P<code>-?\d+)", re.S
)
"""What torchrun writes about the rank that failed first."""


def telling(lines: Iterable[str], count: int = KEPT) -> tuple[str, ...]:
    """The lines of an output that say most, in order, shortened."""
    shown = [_PREFIX.sub("", line).strip()[:_LONGEST] for line in lines]
    shown = [line for line in shown if line]
    if len(shown) <= count:
        return tuple(shown)
    marked = [at for at, line in enumerate(shown) if _TELLING.search(line)][-count // 2 :]
    last = [at for at in range(len(shown)) if at not in marked][-(count - len(marked)) :]
    return tuple(shown[at] for at in sorted({*marked, *last}))


def stage_of(event: Mapping[str, Any], output: tuple[str, ...] = ()) -> Stage:
    """The stage that an event reports; what is not of the expected kind is left out."""
    outcome = event.get("outcome")
    seconds = event.get("seconds")
    metrics = event.get("metrics")
    return Stage(
        framework=str(event.get("framework")),
        device=str(event.get("device")),
        name=str(event.get("name")),
        outcome=cast("StageOutcome", outcome if outcome in get_args(StageOutcome) else "error"),
        seconds=float(seconds) if isinstance(seconds, (int, float)) else None,
        detail=str(event.get("detail") or ""),
        output=output,
        metrics=tuple(_metrics(metrics if isinstance(metrics, list) else ())),
    )


def _metrics(items: Iterable[Any]) -> Iterable[Metric]:
    import math

    for each in items:
        value = each.get("value") if isinstance(each, dict) else None
        # JSON has no infinity.
        if isinstance(value, (int, float)) and math.isfinite(value):
            yield Metric(
                name=str(each.get("name")), value=float(value), unit=str(each.get("unit") or "")
            )


def how_it_ended(end: End, silence: float) -> tuple[StageOutcome, str]:
    """Outcome and words for a stage that a child did not come back from."""
    if end.timeout:
        words = f"no answer within {silence:g} s"
        if end.left:
            words += ", and it could not be killed: it waits for the driver or for storage"
        return "timeout", words
    if end.code is None:
        return "error", "the process that watches over it ended"
    if end.code < 0:
        name = signal_name(end.code)
        more = " (was the machine out of memory?)" if name == "SIGKILL" else ""
        return "crash", f"its process was ended by {name}{more}"
    return "error", f"its process ended with exit status {end.code}"


class Tracker:
    """Follows one process through its stages."""

    def __init__(self, framework: str, device: str) -> None:
        """Follow a process of `framework` that was asked for `device`, `cuda` or `cpu`."""
        self.stages: list[Stage] = []
        self.facts: dict[str, Any] = {}
        self.devices: list[int] | None = None
        self.done: list[int] = []
        self._framework = framework
        self._device = device
        self._now: Event | None = None

    def take(self, event: Event, child: Child) -> str | None:
        """Take note of an event; the name of the stage that begins, if one does."""
        kind = event["event"]
        if kind == "begin":
            self._now = event
            return f"{event.get('framework')} {event.get('device')} {event.get('name')}"
        if kind == "stage":
            self._now = None
            lines = child.take_output()
            failed = event.get("outcome") not in {"ok", "skipped"}
            self.stages.append(stage_of(event, telling(lines) if failed else ()))
        elif kind == "facts":
            self.facts.update(event)
        elif kind == "devices":
            self.devices = [each for each in event.get("indices") or () if isinstance(each, int)]
        elif kind == "done":
            self.done.append(event.get("index", -1))
        return None

    def finish(self, child: Child, silence: float) -> None:
        """Add what the end of the process says beyond what it reported itself."""
        if self._now is None and child.end.code == 0 and not child.end.timeout:
            return
        failed = any(each.outcome not in {"ok", "skipped"} for each in self.stages)
        if self._now is None and failed and (child.end.code or 0) > 0:
            return
        outcome, words = how_it_ended(child.end, silence)
        lines = child.take_output()
        name = "exit" if self.stages else "start"
        if not self.stages and self._now is None and lines:
            words += f": {lines[-1][:_LONGEST]}"
        event = self._now or {"framework": self._framework, "device": self._device, "name": name}
        self.stages.append(
            stage_of(
                {
                    **event,
                    "outcome": outcome,
                    "detail": words,
                    "seconds": silence if outcome == "timeout" else None,
                },
                telling(lines),
            )
        )

    def left_over(self) -> list[int]:
        """Devices that a new process should still try: those after the one that it failed on."""
        if not self.devices:
            return []
        tried = len(self.done) if self._now is None else len(self.done) + 1
        return self.devices[tried:]


class Ranks:
    """Follows the processes of one distributed run."""

    def __init__(self, device: str, count: int) -> None:
        """Follow `count` local ranks on `device`: `cpu`, or `cuda:0,cuda:1`."""
        self._device = device
        self._count = count
        self._ranks: dict[int, int] = {}
        self._order: list[str] = []
        self._seen: dict[str, dict[int, Event]] = {}
        self._lines: list[str] = []

    def take(self, event: Event, child: Child) -> str | None:
        """Take note of an event; the name of the stage that begins, if one does."""
        self._lines += child.take_output()
        name, rank = event.get("name"), event.get("rank")
        if not isinstance(name, str) or not isinstance(rank, int):
            return None
        self._ranks.setdefault(rank, rank)
        if name not in self._seen:
            self._order.append(name)
        self._seen.setdefault(name, {})[rank] = event
        return f"torch {self._device} {name}" if event["event"] == "begin" else None

    def finish(self, child: Child, silence: float) -> list[Stage]:
        """One stage for what the ranks did together."""
        self._lines += child.take_output()
        stages = [self._together(name) for name in self._order]
        bad = any(each.outcome not in {"ok", "skipped"} for each in stages)
        outcome, words = self._ended(child, silence)
        # What the other ranks report when one crashes is that they lost it.
        if child.end.code == 0 or (bad and outcome not in {"crash", "timeout"}):
            return [each for each in stages if each.outcome != "skipped"]
        open_at = next((at for at, name in enumerate(self._order) if self._open(name)), None)
        kept = stages if open_at is None else stages[:open_at]
        if outcome == "timeout":
            words += self._whereabouts()
        elif open_at is not None and stages[open_at].detail:
            words += f"; {stages[open_at].detail}"
        kept.append(
            Stage(
                framework="torch",
                device=self._device,
                name="ddp-start" if open_at is None else self._order[open_at],
                outcome=outcome,
                seconds=silence if outcome == "timeout" else None,
                detail=words,
                output=telling(self._lines),
            )
        )
        return kept

    def _open(self, name: str) -> bool:
        """Whether some rank began a stage and not all finished it."""
        seen = self._seen[name]
        return len(seen) < self._count or any(each["event"] == "begin" for each in seen.values())

    def _ended(self, child: Child, silence: float) -> tuple[StageOutcome, str]:
        found = _SUMMARY.search("\n".join(self._lines))
        if found is None or child.end.timeout:
            return how_it_ended(child.end, silence)
        code = int(found["code"])
        if code < 0:
            return "crash", f"rank {found['rank']} was ended by {signal_name(code)}"
        return "error", f"rank {found['rank']} ended with exit status {code}"

    def _whereabouts(self) -> str:
        """Which ranks wait where."""
        places: dict[str, list[int]] = {}
        for name in self._order:
            for rank, event in self._seen[name].items():
                for ranks in places.values():
                    if rank in ranks:
                        ranks.remove(rank)
                where = f"in {name}" if event["event"] == "begin" else f"past {name}"
                places.setdefault(where, []).append(rank)
        known = "; ".join(
            f"rank {', '.join(map(str, sorted(ranks)))} {where}"
            for where, ranks in places.items()
            if ranks
        )
        silent = self._count - len(self._ranks)
        more = f"; {silent} of {self._count} ranks reported nothing" if silent else ""
        return (f": {known}" if known else "") + more

    def _together(self, name: str) -> Stage:
        """The stages of all ranks as one: the worst outcome, the longest time."""
        events = [event for _rank, event in sorted(self._seen[name].items())]
        stages = [stage_of(each) for each in events if each["event"] == "stage"]
        order = ("ok", "skipped", "error", "wrong", "timeout", "crash")
        worst = max((each.outcome for each in stages), key=order.index, default="skipped")
        details = [
            f"rank {event.get('rank')}: {event.get('detail')}"
            for event in events
            if event.get("detail") and event.get("outcome") not in {None, "ok"}
        ]
        failed = worst not in {"ok", "skipped"}
        return Stage(
            framework="torch",
            device=self._device,
            name=name,
            outcome=cast("StageOutcome", worst),
            seconds=max((each.seconds or 0.0 for each in stages), default=None),
            detail="; ".join(details),
            output=telling(self._lines) if failed else (),
            metrics=stages[0].metrics if stages else (),
        )
