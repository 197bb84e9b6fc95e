"""What the host does meanwhile, read from /proc and /sys at every tick."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envcheck.watch.processes import TICKS, all_pids, has_context, read_stat

if TYPE_CHECKING:
    from envcheck.watch.processes import Tree

SLOW_SECONDS = 1.0
"""How often the rarer figures are read: new processes, threads, disks, network."""

SECTOR = 512
"""Bytes of the unit that /proc/diskstats counts in, whatever the disk's own is."""

_WHOLE_DISKS = ("nvme", "sd", "vd", "xvd", "hd", "mmcblk")
_VIRTUAL_NETS = ("lo", "docker", "veth", "br-", "virbr", "cni", "flannel", "cali")


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0))


class Host:
    """Samples the machine and, when there is one, the watched tree."""

    def __init__(self, tree: Tree | None) -> None:
        """Take the first readings, from which the next ones are counted."""
        self.tree = tree
        self._then = time.monotonic()
        self._cpu = _cpu_times()
        self._slow_then = self._then
        self._disks = _disk_bytes()
        self._net = _network_bytes()
        self._net_limit = _network_limit()
        self._framework_since: float | None = None
        if tree is not None:
            tree.look_around()
            tree.usage(1.0)
            tree.busiest_thread(1.0)
            tree.look_for_frameworks()
            tree.frameworks_at_start = bool(tree.frameworks)

    def sample(self) -> dict[str, Any]:
        """Figures since the last call."""
        now = time.monotonic()
        seconds = max(now - self._then, 1e-3)
        self._then = now
        found: dict[str, Any] = {}
        times = _cpu_times()
        if times is not None and self._cpu is not None:
            busy, waiting = (
                (new - old) / TICKS / seconds for new, old in zip(times, self._cpu, strict=True)
            )
            found |= {"cpu": round(max(busy, 0.0), 3), "iowait": round(max(waiting, 0.0), 3)}
        self._cpu = times
        if self.tree is not None:
            found |= self.tree.usage(seconds)
        if now - self._slow_then >= SLOW_SECONDS:
            found |= self._slow(now, now - self._slow_then)
            self._slow_then = now
        return found

    def _slow(self, now: float, seconds: float) -> dict[str, Any]:
        found: dict[str, Any] = {}
        running = _running()
        if running is not None:
            found["run"] = running
        disks, net = _disk_bytes(), _network_bytes()
        for key, new, old in (
            ("disk_r", disks[0], self._disks[0]),
            ("disk_w", disks[1], self._disks[1]),
            ("net_in", net[0], self._net[0]),
            ("net_out", net[1], self._net[1]),
        ):
            found[key] = round(max(new - old, 0) / seconds / 1e6, 2)
        self._disks, self._net = disks, net
        if self._net_limit:
            found["net_limit"] = self._net_limit
        try:
            room = os.statvfs("/dev/shm")
            found["shm"] = (room.f_blocks - room.f_bfree) * room.f_frsize
            found["shm_total"] = room.f_blocks * room.f_frsize
        except OSError:
            pass
        if self.tree is not None:
            found |= self._tree(self.tree, now, seconds)
        return found

    def _tree(self, tree: Tree, now: float, seconds: float) -> dict[str, Any]:
        tree.look_around()
        tree.look_for_frameworks()
        found: dict[str, Any] = {"context": tree.ever_context}
        if tree.frameworks:
            if self._framework_since is None:
                self._framework_since = now - _age(tree)
            found["frameworks"] = sorted(tree.frameworks)
            found["framework_s"] = round(now - self._framework_since, 1)
        hot = tree.busiest_thread(seconds)
        if hot is not None:
            found["hot"] = list(hot)
        return found


def _age(tree: Tree) -> float:
    """Seconds for which a framework that is seen first now has been loaded.

    Nothing for one that appeared while we watched; else since the start of the process, about.
    """
    if tree.frameworks_at_start:
        stats = [read_stat(f"/proc/{pid}/stat") for pid in tree.roots]
        # Processes are dated from the machine's start, as this clock is.
        boot = time.clock_gettime(time.CLOCK_BOOTTIME)
        return max((boot - each.started for each in stats if each is not None), default=0.0)
    return 0.0


def gpu_processes() -> tuple[int, ...]:
    """Processes that hold a GPU context, as far as this user may see."""
    own = os.getpid()
    return tuple(pid for pid in all_pids() if pid != own and has_context(pid))


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


def _cpu_times() -> tuple[int, int] | None:
    """Ticks of all cores together: busy, and waiting for disks."""
    for line in _lines("/proc/stat")[:1]:
        words = line.split()
        if words[0] == "cpu" and len(words) >= 8:
            numbers = [int(each) for each in words[1:9]]
            user, nice, system, _, waiting, irq, soft = numbers[:7]
            return user + nice + system + irq + soft, waiting
    return None


def _running() -> int | None:
    """Threads that run or want to."""
    for line in _lines("/proc/loadavg"):
        words = line.split()
        if len(words) >= 4 and "/" in words[3]:
            return int(words[3].partition("/")[0])
    return None


def _disk_bytes() -> tuple[int, int]:
    """Bytes read from and written to whole disks since the machine's start."""
    read = written = 0
    for line in _lines("/proc/diskstats"):
        words = line.split()
        if len(words) >= 10 and words[2].startswith(_WHOLE_DISKS) and not _partition(words[2]):
            read += int(words[5]) * SECTOR
            written += int(words[9]) * SECTOR
    return read, written


def _partition(name: str) -> bool:
    if name.startswith(("nvme", "mmcblk")):
        return "p" in name.rpartition("n")[2] if name.startswith("nvme") else "p" in name
    return name[-1:].isdecimal()


def _network_bytes() -> tuple[int, int]:
    """Bytes received and sent by network and InfiniBand ports."""
    received = sent = 0
    for line in _lines("/proc/net/dev")[2:]:
        name, _, rest = line.partition(":")
        words = rest.split()
        if len(words) >= 9 and not name.strip().startswith(_VIRTUAL_NETS):
            received += int(words[0])
            sent += int(words[8])
    for port in _infiniband_ports():
        try:
            # Counted in words of four bytes.
            received += int((port / "counters/port_rcv_data").read_text()) * 4
            sent += int((port / "counters/port_xmit_data").read_text()) * 4
        except (OSError, ValueError):
            continue
    return received, sent


def _infiniband_ports() -> list[Path]:
    try:
        return sorted(Path("/sys/class/infiniband").glob("*/ports/*"))
    except OSError:
        return []


def _network_limit() -> float | None:
    """MB/s of all ports whose speed is known, in one direction."""
    total = 0.0
    for path in (*Path("/sys/class/net").glob("*/speed"),):
        if path.parent.name.startswith(_VIRTUAL_NETS):
            continue
        try:
            total += max(int(path.read_text()), 0) / 8
        except (OSError, ValueError):
            continue
    for port in _infiniband_ports():
        try:
            total += float((port / "rate").read_text().split()[0]) * 1000 / 8
        except (OSError, ValueError, IndexError):
            continue
    return round(total, 1) or None
