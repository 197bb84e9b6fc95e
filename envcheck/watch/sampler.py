"""Takes samples: GPUs through a child process, the host from /proc, side by side."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import TYPE_CHECKING, Any

from envcheck.errors import UndeterminedError
from envcheck.paths import payload
from envcheck.watch.host import Host, cores, gpu_processes
from envcheck.watch.processes import Tree
from envcheck.watch.series import Series

if TYPE_CHECKING:
    from collections.abc import Callable
    from subprocess import Popen

    from envcheck.watch.series import Tick

START_SECONDS = 30.0
"""How long NVML may take to start: a driver without persistence mode takes many."""

SILENCE_SECONDS = 10.0
"""After this long without a sample NVML counts as hung."""


class NoSamplesError(UndeterminedError):
    """There is no GPU to sample; the message is NVML's reason."""


class Sampler:
    """Samples until it is told to stop."""

    def __init__(
        self, *, interval: float, gpus: tuple[int, ...] = (), roots: tuple[int, ...] | None = None
    ) -> None:
        """Start the child and wait for its first line.

        Args:
            interval: seconds between samples.
            gpus: indices, all when empty.
            roots: processes to watch with all that they start; None for those that hold a GPU
                context now.

        Raises:
            NoSamplesError: NVML cannot be asked, or has no such GPU.
        """
        self.interval = interval
        self._child = _start(interval, gpus)
        self._rest = b""
        self.series = Series({"interval": interval})
        first = self._line(START_SECONDS)
        if first is None:
            self.close()
            msg = "NVML did not answer"
            raise NoSamplesError(msg)
        if "failed" in first:
            self.close()
            raise NoSamplesError(str(first["failed"]["message"]))
        start = first["start"]
        missing = sorted(set(gpus) - {each["index"] for each in start["gpus"]})
        if missing or not start["gpus"]:
            self.close()
            count = start["total"]
            msg = f"no GPU {missing[0]}: NVML shows {count}" if missing else "NVML shows no GPU"
            raise NoSamplesError(msg)
        self.origin = float(start.pop("t"))
        found = gpu_processes() if roots is None else roots
        self.tree = Tree(found) if found else None
        self.series.head |= {"cores": cores(), **start}
        self._host = Host(self.tree)
        self.extra: Callable[[], dict[int, dict[str, float]]] | None = None
        """Counters by GPU from elsewhere, laid over each sample."""

    def run(
        self, stop: Callable[[], bool], on_tick: Callable[[Tick], None] | None = None
    ) -> Series:
        """Sample until `stop` says so; then end the child and give what was sampled."""
        spent = time.thread_time()
        while not stop():
            line = self._line(SILENCE_SECONDS)
            if line is None:
                self.series.head.setdefault("notes", []).append("NVML stopped answering")
                break
            if "t" not in line:
                self.series.end = line.get("end", {})
                break
            tick = {"t": round(line["t"] - self.origin, 3), **{"gpus": line["gpus"]}}
            if self.extra is not None:
                more = self.extra()
                for each in tick["gpus"]:
                    each.update(more.get(each["i"], {}))
            tick["host"] = self._host.sample()
            self.series.ticks.append(tick)
            if on_tick is not None:
                on_tick(tick)
        self.close()
        self.series.end["watcher_cpu"] = round(time.thread_time() - spent, 4)
        return self.series

    def close(self) -> None:
        """End the child: closing its input asks it to, and it is killed when it does not."""
        import subprocess

        child = self._child
        if child.stdin is not None and not child.stdin.closed:
            child.stdin.close()
        until = time.monotonic() + 2.0
        while (left := until - time.monotonic()) > 0:
            line = self._line(left)
            if line is None:
                break
            if "end" in line:
                self.series.end = line["end"]
        try:
            child.wait(0.5)
        except subprocess.TimeoutExpired:
            child.kill()
        if child.stdout is not None:
            child.stdout.close()

    def _line(self, seconds: float) -> dict[str, Any] | None:
        """The child's next line; None when it is silent for so long, or has ended."""
        import select

        pipe = self._child.stdout
        if pipe is None or pipe.closed:
            return None
        until = time.monotonic() + seconds
        while b"\n" not in self._rest:
            ready, _, _ = select.select([pipe], [], [], max(0.0, until - time.monotonic()))
            data = os.read(pipe.fileno(), 65536) if ready else b""
            if not data:
                return None
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        try:
            found = json.loads(line)
        except ValueError:
            # A library that writes to standard output.
            return self._line(max(0.0, until - time.monotonic()))
        return found if isinstance(found, dict) else None


def _start(interval: float, gpus: tuple[int, ...]) -> Popen[bytes]:
    import importlib.util
    import subprocess

    argv = [sys.executable or "python3", "-S", str(payload("sample_nvml"))]
    argv += ["--interval", str(interval), "--gpus", ",".join(map(str, gpus))]
    try:
        found = importlib.util.find_spec("pynvml")
    except (ImportError, ValueError):
        found = None
    if found is not None and found.origin:
        # Without site-packages it starts in half the time, and needs nothing else from there.
        argv += ["--path", found.origin.rpartition("/")[0]]
    return subprocess.Popen(
        argv,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        # Ctrl-C is for us: the child ends when its input does.
        start_new_session=True,
        cwd="/",
    )
