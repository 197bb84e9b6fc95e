"""A series as the averages that rules judge."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from envcheck.model.activity import (
    Activity,
    Gaps,
    GpuActivity,
    HostActivity,
    Share,
    Spread,
    Steps,
    Thread,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from envcheck.watch.series import Series, Tick

IDLE_PERCENT = 2.0
"""SM activity below which a GPU counts as doing nothing in a tick; without it, utilisation."""

PCIE_LANE_MB = {1: 250.0, 2: 500.0, 3: 985.0, 4: 1969.0, 5: 3938.0, 6: 7563.0}
"""MB/s of one lane in one direction, by generation."""

Pair = tuple["Tick", dict[str, Any]]
"""A tick, and one GPU's part of it."""


def analyse(series: Series) -> Activity:
    """Average a series.

    Of a command, only the time counts in which it used a GPU: what comes before is its start
    (imports, reading models), what comes after its end.
    """
    head, ticks = series.head, series.ticks
    target = head.get("target", "machine")
    window = _window(ticks) if target == "command" else ticks
    interval = float(head.get("interval") or 0.1)
    begin = window[0]["t"] - interval if window else 0.0
    seconds = window[-1]["t"] - begin if window else 0.0
    hosts = [tick["host"] for tick in ticks if tick.get("host")]
    facts = {each["index"]: each for each in head.get("gpus", ())}
    return Activity(
        seconds=round(seconds, 3),
        samples=len(window),
        interval=interval,
        target=target,
        started=round(max(begin - (ticks[0]["t"] - interval), 0.0), 3) if window else 0.0,
        gpu_context=_context(hosts),
        frameworks=tuple(_latest(hosts, "frameworks") or ()),
        framework_seconds=_latest(hosts, "framework_s"),
        gpus=tuple(_gpu(each, window, interval) for each in facts.values()),
        host=_host(window, head),
        steps=_steps(series.steps),
        sampler_cpu=_cost(series),
        notes=tuple(head.get("notes", ())),
    )


def _window(ticks: Sequence[Tick]) -> Sequence[Tick]:
    """From the first tick with work on a GPU to the last one."""
    busy = [at for at, tick in enumerate(ticks) if any(_works(each) for each in tick["gpus"])]
    return ticks[busy[0] : busy[-1] + 1] if busy else ticks


def _works(sample: dict[str, Any]) -> bool:
    """Whether a GPU did anything in a tick.

    GPM counts each tick by itself; NVML's utilisation looks back a while, so it only speaks where
    there is nothing better.
    """
    if "sm" in sample:
        return bool(sample["sm"] > 0.0 or sample.get("dram", 0.0) > IDLE_PERCENT)
    return bool(sample.get("util", 0) > 0)


def _idle(sample: dict[str, Any]) -> bool:
    if "sm" in sample:
        quiet = max(sample["sm"], sample.get("dram", 0.0)) < IDLE_PERCENT
        # Kernels too small to show in SM activity still are activity.
        return bool(quiet and sample.get("active", sample.get("util", 0)) < IDLE_PERCENT)
    return bool(sample.get("util", 0) < IDLE_PERCENT)


def spread(values: Iterable[float | None]) -> Spread | None:
    """How numbers are distributed; None when there are none."""
    known = sorted(float(each) for each in values if each is not None)
    if not known:
        return None

    def at(share: float) -> float:
        return known[min(len(known) - 1, math.floor(share * len(known)))]

    return Spread(
        mean=_short(sum(known) / len(known)),
        low=_short(at(0.05)),
        median=_short(at(0.5)),
        high=_short(at(0.95)),
        peak=_short(known[-1]),
    )


def _short(value: float) -> float:
    return round(value, 3)


def _gpu(facts: dict[str, Any], window: Sequence[Tick], interval: float) -> GpuActivity:
    index = facts["index"]
    pairs: list[Pair] = [
        (tick, each) for tick in window for each in tick["gpus"] if each["i"] == index
    ]
    samples = [each for _, each in pairs]

    def over(name: str) -> Spread | None:
        return spread(each.get(name) for each in samples)

    memory = [each["mem"] for each in samples if "mem" in each]
    replays = [each["replay"] for each in samples if "replay" in each]
    clock_max = facts.get("clock_max")
    return GpuActivity(
        index=index,
        name=facts.get("name"),
        arch=facts.get("arch"),
        samples=len(samples),
        via=_via(facts, samples),
        utilization=over("util"),
        sm=over("sm"),
        occupancy=over("occ"),
        tensor=over("tensor"),
        fp64=over("fp64"),
        fp32=over("fp32"),
        fp16=over("fp16"),
        dram=over("dram"),
        pcie_in=over("pcie_in"),
        pcie_out=over("pcie_out"),
        pcie_limit=_pcie_limit(facts),
        nvlink_in=over("nvl_in"),
        nvlink_out=over("nvl_out"),
        nvlink_limit=facts.get("nvlink_limit"),
        power_watts=over("power"),
        power_limit_watts=facts.get("power_limit"),
        clock_mhz=over("clock"),
        clock_max_mhz=clock_max,
        temperature_c=over("temp"),
        memory_used_bytes=max(memory, default=None),
        memory_total_bytes=facts.get("memory_total"),
        throttle=_throttle(samples),
        pcie_replays=replays[-1] - replays[0] if replays else None,
        gaps=_gaps(pairs, interval),
    )


def _via(facts: dict[str, Any], samples: Sequence[dict[str, Any]]) -> Any:
    if not any("sm" in each for each in samples):
        return "nvml"
    return "gpm" if facts.get("gpm") else "dcgm"


def _pcie_limit(facts: dict[str, Any]) -> float | None:
    lane = PCIE_LANE_MB.get(facts.get("pcie_generation") or 0)
    width = facts.get("pcie_width")
    return lane * width if lane and width else None


def _throttle(samples: Sequence[dict[str, Any]]) -> tuple[Share, ...]:
    told = [each["throttle"] for each in samples if "throttle" in each]
    names = sorted({name for reasons in told for name in reasons})
    return tuple(
        Share(name=name, share=_short(sum(name in reasons for reasons in told) / len(told)))
        for name in names
    )


def _gaps(pairs: Sequence[Pair], interval: float) -> Gaps | None:
    if not pairs:
        return None
    quiet = [_idle(sample) for _, sample in pairs]
    runs: list[int] = []
    for at, idle in enumerate(quiet):
        if idle and at > 0 and quiet[at - 1]:
            runs[-1] += 1
        elif idle:
            runs.append(1)
    during = [tick.get("host", {}) for (tick, _), idle in zip(pairs, quiet, strict=True) if idle]
    return Gaps(
        share=_short(sum(quiet) / len(quiet)),
        count=len(runs),
        longest_seconds=_short(max(runs, default=0) * interval),
        gpu_process_cpu=_mean(during, "gpu_cpu"),
        worker_cpu=_mean(during, "worker_cpu"),
        iowait=_mean(during, "iowait"),
    )


def _mean(records: Iterable[dict[str, Any]], name: str) -> float | None:
    found = spread(each.get(name) for each in records)
    return None if found is None else found.mean


def _host(window: Sequence[Tick], head: dict[str, Any]) -> HostActivity | None:
    records = [tick["host"] for tick in window if tick.get("host")]
    if not records:
        return None

    def over(name: str) -> Spread | None:
        return spread(each.get(name) for each in records)

    hot = [each["hot"] for each in records if each.get("hot")]
    busiest = spread(cpu for _, cpu in hot)
    names = [name for name, _ in hot]
    return HostActivity(
        cores=int(head.get("cores") or 1),
        cpu=over("cpu"),
        gpu_process_cpu=over("gpu_cpu"),
        worker_cpu=over("worker_cpu"),
        busiest=Thread(name=max(set(names), key=names.count), cpu=busiest) if busiest else None,
        iowait=over("iowait"),
        blocked=over("blocked"),
        run_queue=over("run"),
        major_faults=over("faults"),
        disk_read=over("disk_r"),
        disk_write=over("disk_w"),
        network_in=over("net_in"),
        network_out=over("net_out"),
        network_limit=_latest(records, "net_limit"),
        shm_used_bytes=max((each["shm"] for each in records if "shm" in each), default=None),
        shm_total_bytes=_latest(records, "shm_total"),
    )


def _latest(records: Sequence[dict[str, Any]], name: str) -> Any:
    return next((each[name] for each in reversed(records) if name in each), None)


def _context(records: Sequence[dict[str, Any]]) -> bool | None:
    """Whether a watched process ever held a context."""
    found = [each["context"] for each in records if "context" in each]
    if True in found:
        return True
    return found[-1] if found else None


def _steps(lines: Sequence[dict[str, Any]]) -> Steps | None:
    """Means over what the program wrote; its first second is left out, when there is more."""
    sound = [each for each in lines if isinstance(each.get("count"), int) and each["count"] > 0]
    kept = sound[1:] or sound
    count = sum(each["count"] for each in kept)
    if not count:
        return None

    def mean(name: str) -> float | None:
        known = [(each[name], each["count"]) for each in kept if each.get(name) is not None]
        weight = sum(number for _, number in known)
        return round(sum(value * number for value, number in known) / weight, 6) if weight else None

    return Steps(
        count=count,
        seconds=mean("seconds") or 0.0,
        data_wait=mean("data_wait") or 0.0,
        to_device=mean("to_device"),
        compute=mean("compute"),
        communication=mean("communication"),
        overhead=mean("overhead"),
    )


def _cost(series: Series) -> float | None:
    """Cores that the child and this process used for sampling."""
    end = series.end
    seconds = end.get("seconds")
    if not seconds:
        return None
    return round(float(end.get("cpu", 0.0) + end.get("watcher_cpu", 0.0)) / float(seconds), 4)
