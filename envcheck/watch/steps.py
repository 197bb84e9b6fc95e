"""Times the steps of a training loop from inside, split into what each part of a step waits for.

The time between two steps is the wait for data. Inside a step, copies to the GPU and communication
count as such where they are marked; the rest is computing. On a GPU, parts are timed by CUDA
events, which are recorded into the stream and read much later, so that nothing waits for them;
without torch or a GPU, by the clock. When measuring itself took more than its share of the time,
steps are only counted until that is made up for.

`envcheck watch -- COMMAND` names a file in the environment, to which means are appended about once
a second; without it they are kept for `summary`.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections import deque
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from envcheck.model.activity import Steps

VARIABLE = "ENVCHECK_WATCH_STEPS"
"""Environment variable with the file that means are appended to."""

MOST_OVERHEAD = 0.005
"""Share of the program's time that measuring may take, before steps are merely counted."""

_PENDING = 64
"""Steps whose events are not read yet; when the GPU is further behind, the oldest is given up."""

_WRITE_SECONDS = 1.0

TO_DEVICE, COMMUNICATION = "to_device", "communication"


class Step:
    """One step of a loop, as `step` gives it."""

    def __init__(self, clock: Clock, wait: float | None) -> None:
        """Begin; `wait` is how long the loop waited for this step's data, None before the first."""
        self.wait = wait
        self.began = time.perf_counter()
        self.ended = self.began
        self._clock = clock
        self._marks: list[tuple[str, Any, Any]] = []
        self.first = clock.mark()
        self.last: Any = None

    def to_device(self) -> contextlib.AbstractContextManager[None]:
        """Mark a part of the step that copies data to the GPU."""
        return self._part(TO_DEVICE)

    def communication(self) -> contextlib.AbstractContextManager[None]:
        """Mark a part of the step that communicates with other GPUs."""
        return self._part(COMMUNICATION)

    @contextlib.contextmanager
    def _part(self, name: str) -> Iterator[None]:
        begin = self._clock.mark()
        try:
            yield
        finally:
            self._marks.append((name, begin, self._clock.mark()))

    def end(self) -> None:
        """End; the events are read later."""
        self.last = self._clock.mark()
        self.ended = time.perf_counter()

    def parts(self) -> dict[str, float] | None:
        """Seconds of each part; None while the GPU has not come to the end of the step."""
        if not self._clock.reached(self.last):
            return None
        parts = {TO_DEVICE: 0.0, COMMUNICATION: 0.0}
        for name, begin, end in self._marks:
            parts[name] += self._clock.between(begin, end)
        whole = self._clock.between(self.first, self.last)
        parts["compute"] = max(0.0, whole - sum(parts.values()))
        marked = {name for name, _, _ in self._marks}
        return {name: each for name, each in parts.items() if name in marked or name == "compute"}


class Clock:
    """Marks moments: in the GPU's stream where torch drives one, else on the host."""

    def __init__(self) -> None:
        """Look at what the program has imported; nothing is imported for it."""
        self._torch: Any = None

    def mark(self) -> Any:
        """A moment."""
        if self._torch is None:
            torch = sys.modules.get("torch")
            cuda = getattr(torch, "cuda", None)
            # Before CUDA is initialised nothing runs on the GPU; asking must not initialise it.
            if cuda is None or not cuda.is_initialized():
                return time.perf_counter()
            self._torch = torch
        event = self._torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def reached(self, moment: Any) -> bool:
        """Whether a moment has passed."""
        return isinstance(moment, float) or bool(moment.query())

    def between(self, begin: Any, end: Any) -> float:
        """Seconds between two moments that have passed; none when they are of two clocks."""
        if isinstance(begin, float) or isinstance(end, float):
            same = isinstance(begin, float) and isinstance(end, float)
            return float(end - begin) if same else 0.0
        return float(begin.elapsed_time(end)) / 1000.0


class Recorder:
    """Collects steps, reads them when the GPU is done with them, and writes their means."""

    def __init__(self, path: str | None) -> None:
        """Append to `path`, when there is one."""
        self._path = path
        self._clock = Clock()
        self._pending: deque[Step] = deque()
        self._last_end: float | None = None
        self._began: float | None = None
        self._overhead = 0.0
        self._open = self._totals()
        self._all = self._totals()
        self._written = time.perf_counter()

    @staticmethod
    def _totals() -> dict[str, float]:
        return {"steps": 0, "timed": 0, "seconds": 0.0, "wait": 0.0}

    def begin(self) -> Step | None:
        """Begin a step; None when it is only counted."""
        now = time.perf_counter()
        if self._began is None:
            self._began = now
        self._count(now)
        if self._overhead > MOST_OVERHEAD * (now - self._began) and self._all["steps"] > 3:
            self._last_end = None
            return None
        wait = None if self._last_end is None else now - self._last_end
        made = Step(self._clock, wait)
        self._overhead += time.perf_counter() - now
        return made

    def _count(self, now: float) -> None:
        for totals in (self._open, self._all):
            totals["steps"] += 1
            totals.setdefault("first", now)
            totals["latest"] = now

    def end(self, made: Step | None) -> None:
        """End a step."""
        now = time.perf_counter()
        if made is not None:
            made.end()
            self._last_end = made.ended
            self._pending.append(made)
        self.collect()
        if self._path is not None and now - self._written > _WRITE_SECONDS:
            self._write(now)
        self._overhead += time.perf_counter() - now

    def collect(self) -> None:
        """Read the steps that the GPU has come to the end of."""
        while self._pending:
            parts = self._pending[0].parts()
            if parts is None:
                if len(self._pending) > _PENDING:
                    self._pending.popleft()
                return
            done = self._pending.popleft()
            for totals in (self._open, self._all):
                if done.wait is not None:
                    totals["timed"] += 1
                    totals["wait"] += done.wait
                    for name, each in parts.items():
                        totals[name] = totals.get(name, 0.0) + each

    def _write(self, now: float) -> None:
        import json

        self._written = now
        if self._path is None or not self._open["timed"]:
            return
        line = means(self._open) | {"pid": os.getpid(), "overhead": self._share()}
        try:
            # One short line in one write: processes that share the file do not mix.
            with open(self._path, "a", encoding="utf-8") as file:  # noqa: PTH123
                file.write(json.dumps(line) + "\n")
        except OSError:
            self._path = None
        self._open = self._totals()

    def _share(self) -> float:
        if self._began is None:
            return 0.0
        return self._overhead / max(time.perf_counter() - self._began, 1e-9)

    def summary(self) -> Steps | None:
        """Means of all steps so far, None before the second."""
        from envcheck.model.activity import Steps

        self.collect()
        if not self._all["timed"]:
            return None
        return Steps(**means(self._all), overhead=self._share())

    def flush(self) -> None:
        """Write what was not written yet."""
        self.collect()
        self._write(time.perf_counter())


def means(totals: dict[str, float]) -> dict[str, Any]:
    """Totals of steps as the fields of `Steps`."""
    count, timed = int(totals["steps"]), totals["timed"]
    span = totals["latest"] - totals["first"]
    found: dict[str, Any] = {
        "count": count,
        "seconds": span / (count - 1) if count > 1 else 0.0,
        "data_wait": totals["wait"] / timed,
    }
    for name in (TO_DEVICE, "compute", COMMUNICATION):
        if name in totals:
            found[name] = totals[name] / timed
    return found


_recorders: dict[int, Recorder] = {}


def recorder() -> Recorder:
    """The recorder of this process; a forked child has its own."""
    found = _recorders.get(os.getpid())
    if found is None:
        import atexit

        _recorders.clear()
        found = _recorders[os.getpid()] = Recorder(os.environ.get(VARIABLE) or None)
        atexit.register(found.flush)
    return found


@contextlib.contextmanager
def step() -> Iterator[Step]:
    """Time a step of a training loop; the time since the last one is the wait for data.

    Yields:
        The step, on which parts may be marked: `to_device()` and `communication()`.
    """
    here = recorder()
    made = here.begin()
    try:
        yield made or _Counted()
    finally:
        here.end(made)


class _Counted(Step):
    """A step that is only counted."""

    def __init__(self) -> None:
        """Begin nothing."""

    @contextlib.contextmanager
    def _part(self, name: str) -> Iterator[None]:
        yield


def summary() -> Steps | None:
    """Mean times of this process's steps so far, None before the second one."""
    return recorder().summary()
