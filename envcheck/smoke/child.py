"""One child of the smoke test: started under a supervisor, listened to, and ended as a whole.

The child may crash, hang, or leave workers behind; see `payloads/smoke_supervisor.py` for how they
are found. The supervisor in turn watches a pipe of this process: closing it, or dying, ends all.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections import deque
from typing import TYPE_CHECKING, Any

from envcheck.model.base import model
from envcheck.paths import payload
from envcheck.probe.answers import MARKER

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from subprocess import Popen

_GRACE = 8.0
"""Seconds that the supervisor gets to end everything; it gives up by itself before."""
_LINES = 2000
"""Lines of a child's output that are kept."""
_LONGEST = 1 << 20
"""Bytes of one line; more without a line end is cut."""


@model
class End:
    """How a child ended.

    Attributes:
        code: exit status, minus the signal's number, or None when it was ended from here.
        timeout: it was silent for too long and was killed.
        left: ids of processes that could not be killed.
    """

    code: int | None = None
    timeout: bool = False
    left: tuple[int, ...] = ()


class Child:
    """A program that reports events, one JSON object per line after the marker, on its stdout.

    Use it as a context manager: leaving it, also by an exception or Ctrl-C, ends the program and
    everything that it started, and removes what they left in shared memory.
    """

    def __init__(
        self,
        argv: list[str],
        variables: Mapping[str, str],
        *,
        silence: float,
        held: bool = False,
    ) -> None:
        """Say what to run.

        Args:
            argv: program and arguments.
            variables: its environment.
            silence: seconds without an event after which it is killed, from when events are read.
            held: the program waits at some point for a byte on its stdin; `release` sends it.
        """
        self.argv = argv
        self.end = End()
        self.started = 0.0
        """When it was started, on the monotonic clock."""
        self._held = held
        self._variables = variables
        self._silence = silence
        self._output: deque[str] = deque(maxlen=_LINES)
        self._process: Popen[bytes] | None = None
        self._watch: int | None = None

    def __enter__(self) -> Child:
        """Start it, if it was not started before."""
        if self._process is None:
            self.start()
        return self

    def start(self) -> None:
        """Start it; whoever calls this calls `close` too."""
        import subprocess
        import time

        self.started = time.monotonic()
        read_end, self._watch = os.pipe()
        try:
            self._process = subprocess.Popen(
                [
                    sys.executable or "python3",
                    *("-I", "-S"),
                    str(payload("smoke_supervisor")),
                    str(read_end),
                    *self.argv,
                ],
                stdin=subprocess.PIPE if self._held else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                # One pipe: what went wrong is written before the event that says so, and only so
                # is it read before.
                stderr=subprocess.STDOUT,
                env=dict(self._variables),
                pass_fds=(read_end,),
                # Ctrl-C is for this process, which then ends the child in order.
                start_new_session=True,
                cwd="/",
            )
        except BaseException:
            self._close_watch()
            raise
        finally:
            os.close(read_end)

    def release(self) -> None:
        """Let a program go on that was started to wait."""
        stdin = None if self._process is None else self._process.stdin
        if stdin is not None and not stdin.closed:
            # One that has ended already does not read it any more.
            with contextlib.suppress(OSError):
                os.write(stdin.fileno(), b"\n")
            stdin.close()

    def __exit__(self, *_error: object) -> None:
        """End it; see `close`."""
        self.close()

    def close(self) -> None:
        """End it, if it has not ended, and everything that it started; again does nothing."""
        import signal
        import subprocess

        self._close_watch()
        process = self._process
        if process is None:
            return
        try:
            process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(1.0)
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()

    def _close_watch(self) -> None:
        if self._watch is not None:
            os.close(self._watch)
            self._watch = None

    def take_output(self) -> tuple[str, ...]:
        """Lines that it wrote to both outputs since this was last asked, without the events."""
        lines = tuple(self._output)
        self._output.clear()
        return lines

    def events(self) -> Iterator[dict[str, Any]]:
        """What it reports, as it reports it; `end` is set when this is exhausted."""
        import selectors
        import time

        process = self._process
        if process is None or process.stdout is None:
            return
        output = process.stdout.fileno()
        pending = b""
        deadline = time.monotonic() + self._silence
        killed = False
        with selectors.DefaultSelector() as selector:
            selector.register(output, selectors.EVENT_READ)
            while True:
                left = deadline - time.monotonic()
                if left <= 0:
                    if killed:
                        break
                    killed = True
                    self._close_watch()
                    deadline = time.monotonic() + _GRACE
                    continue
                if not selector.select(left):
                    continue
                data = os.read(output, 65536)
                if not data:
                    break
                *lines, rest = (pending + data).split(b"\n")
                pending = rest[-_LONGEST:]
                for event in self._events_of(lines):
                    if event["event"] == "end":
                        self._ended(event, killed)
                        # Whatever holds the pipe open beyond that is of no interest.
                        return
                    if not killed:
                        deadline = time.monotonic() + self._silence
                    yield event
        self.end = End(timeout=killed, code=None if killed else process.poll())

    def _events_of(self, lines: list[bytes]) -> Iterator[dict[str, Any]]:
        for raw in lines:
            line = raw.decode("utf-8", "replace")
            start = line.find(MARKER)
            event = None
            if start >= 0:
                with contextlib.suppress(ValueError):
                    event = json.loads(line[start + len(MARKER) :])
            if isinstance(event, dict) and isinstance(event.get("event"), str):
                yield event
            elif line.strip():
                self._output.append(line.rstrip())

    def _ended(self, event: dict[str, Any], killed: bool) -> None:
        left = event.get("left")
        self.end = End(
            timeout=killed,
            code=None if killed else event.get("code"),
            left=tuple(each for each in left if isinstance(each, int))
            if isinstance(left, list)
            else (),
        )
