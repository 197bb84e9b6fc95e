"""The watched processes: who belongs to the tree, who holds a GPU context, what they use."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

TICKS = os.sysconf("SC_CLK_TCK")

CONTEXT_FILES = ("/dev/nvidia-uvm", "/dev/dxg", "/dev/nvmap", "/dev/nvhost-gpu")
"""Device files that a process with a CUDA context has open: the memory manager's, WSL's, Jetson's.

A process that only asks NVML has none of them.
"""

FRAMEWORKS = {
    "libtorch_python": "torch",
    "libtorch_cpu": "torch",
    "libtensorflow_framework": "tensorflow",
    "_pywrap_tensorflow": "tensorflow",
    "jaxlib": "jax",
}
"""Part of a mapped file's path -> the framework that it belongs to."""


class Stat(NamedTuple):
    """What /proc/PID/stat says."""

    name: str
    state: str
    parent: int
    major_faults: int
    cpu: float
    """Seconds of all threads, user and system."""
    started: float
    """Seconds after the machine's start."""


def read_stat(path: str) -> Stat | None:
    """Parse a stat file of a process or a thread; None when it has ended."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - read hundreds of times a second
            text = file.read()
    except OSError:
        return None
    # The name is in brackets and may hold brackets and spaces.
    head, _, tail = text.rpartition(b")")
    name = head.partition(b"(")[2].decode("utf-8", "replace")
    words = tail.split()
    if len(words) < 20:
        return None
    return Stat(
        name=name,
        state=words[0].decode(),
        parent=int(words[1]),
        major_faults=int(words[9]),
        cpu=(int(words[11]) + int(words[12])) / TICKS,
        started=int(words[19]) / TICKS,
    )


def all_pids() -> list[int]:
    """Every process that this one can see."""
    return [int(name) for name in os.listdir("/proc") if name.isdecimal()]  # noqa: PTH208


def has_context(pid: int) -> bool | None:
    """Whether a process has the device files of a CUDA context open; None when not allowed."""
    folder = f"/proc/{pid}/fd"
    try:
        numbers = os.listdir(folder)  # noqa: PTH208
    except OSError:
        return None
    for number in numbers:
        try:
            # What `Path.readlink` does, in a tenth of the time.
            if os.readlink(f"{folder}/{number}") in CONTEXT_FILES:  # noqa: PTH115
                return True
        except OSError:
            continue
    return False


def frameworks_of(pid: int) -> set[str]:
    """Frameworks whose libraries a process has loaded."""
    try:
        maps = Path(f"/proc/{pid}/maps").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return set()
    return {name for part, name in FRAMEWORKS.items() if part in maps}


def command_of(pid: int) -> bytes:
    """The command line of a process, empty when it cannot be read."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


class Process:
    """A watched process and what it used when it was last looked at."""

    def __init__(self, pid: int, stat: Stat, *, new: bool) -> None:
        """Start counting; a `new` process counts from its own start."""
        self.pid = pid
        self.stat = stat
        self.cpu = 0.0 if new else stat.cpu
        self.faults = 0 if new else stat.major_faults
        self.context: bool | None = None
        self.threads: dict[str, float] = {}


class Tree:
    """The processes below some roots, sorted into those that drive a GPU and those that help."""

    def __init__(self, roots: tuple[int, ...]) -> None:
        """Watch `roots` and everything that they start."""
        self.roots = roots
        self.processes: dict[int, Process] = {}
        self.frameworks: set[str] = set()
        self.frameworks_at_start = False
        """They were loaded when the watching began."""
        self.ever_context: bool | None = None
        self._parents: dict[int, int] = {}
        self._looked = False

    @property
    def alive(self) -> bool:
        """Whether a root still runs."""
        return any((s := read_stat(f"/proc/{p}/stat")) and s.state != "Z" for p in self.roots)

    def look_around(self) -> None:
        """Find processes that started and drop those that ended; once a second is enough."""
        pids = all_pids()
        present = set(pids)
        for pid in pids:
            if pid not in self._parents:
                stat = read_stat(f"/proc/{pid}/stat")
                if stat is not None:
                    self._parents[pid] = stat.parent
        for pid in set(self._parents) - present:
            del self._parents[pid]
        for pid in pids:
            if pid not in self.processes and self._belongs(pid):
                stat = read_stat(f"/proc/{pid}/stat")
                if stat is not None:
                    self.processes[pid] = Process(pid, stat, new=self._looked)
        self._looked = True
        # Parents first: what a child inherited is judged by what its parent holds.
        for process in sorted(self.processes.values(), key=lambda each: each.stat.started):
            if not process.context:
                process.context = self._drives_gpu(process)
        self._note_contexts()

    def _belongs(self, pid: int) -> bool:
        # A child whose parent ended belongs to init then, but is known by that time.
        for _ in range(64):
            if pid in self.roots or pid in self.processes:
                return True
            parent = self._parents.get(pid, 0)
            if parent <= 1:
                return False
            pid = parent
        return False

    def _drives_gpu(self, process: Process) -> bool | None:
        found = has_context(process.pid)
        if not found:
            return found
        # A forked data loader inherits the device files of its parent and must not use them.
        above = self.processes.get(process.stat.parent)
        forked = above is not None and above.context and process.pid not in self.roots
        return not (forked and command_of(process.pid) == command_of(process.stat.parent))

    def _note_contexts(self) -> None:
        states = [each.context for each in self.processes.values()]
        if any(states):
            self.ever_context = True
        elif self.ever_context is None and states and None not in states:
            self.ever_context = False

    def look_for_frameworks(self) -> None:
        """See which frameworks are loaded, until one is."""
        if not self.frameworks:
            for process in self.processes.values():
                self.frameworks |= frameworks_of(process.pid)

    def usage(self, seconds: float) -> dict[str, Any]:
        """What the tree used since the last call, as rates.

        Args:
            seconds: how long ago that was.
        """
        driving = helping = 0.0
        faults = blocked = 0
        for pid, process in list(self.processes.items()):
            stat = read_stat(f"/proc/{pid}/stat")
            if stat is None or stat.state == "Z":
                del self.processes[pid]
                continue
            used = max(0.0, stat.cpu - process.cpu) / seconds
            if process.context:
                driving += used
            else:
                helping += used
            faults += max(0, stat.major_faults - process.faults)
            blocked += stat.state == "D"
            process.cpu, process.faults = stat.cpu, stat.major_faults
        return {
            "gpu_cpu": round(driving, 3),
            "worker_cpu": round(helping, 3),
            "blocked": blocked,
            "faults": round(faults / seconds, 1),
            "procs": len(self.processes),
        }

    def busiest_thread(self, seconds: float) -> tuple[str, float] | None:
        """Name and cores of the busiest thread that drives a GPU, since the last call.

        While no process has a context, of all threads.
        """
        best: tuple[str, float] | None = None
        chosen = [each for each in self.processes.values() if each.context]
        for process in chosen or list(self.processes.values()):
            folder = f"/proc/{process.pid}/task"
            try:
                threads = os.listdir(folder)  # noqa: PTH208
            except OSError:
                continue
            known: dict[str, float] = {}
            for thread in threads:
                stat = read_stat(f"{folder}/{thread}/stat")
                if stat is None:
                    continue
                known[thread] = stat.cpu
                used = (stat.cpu - process.threads.get(thread, stat.cpu)) / seconds
                if best is None or used > best[1]:
                    best = (stat.name, round(used, 3))
            process.threads = known
        return best
