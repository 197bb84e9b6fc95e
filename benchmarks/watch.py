"""What watching costs: the sampler's own CPU, and whether it slows a large matmul down.

    python benchmarks/watch.py [--python PATH] [--pairs 10] [--json]

A large matmul runs all the time, and writes how long each group of matmuls took. Meanwhile sampling
at 10 Hz is switched on and off in turns of two seconds; neighbouring turns make a pair, so that a
clock that sinks as the card warms up meets both. Prints the sampler's share of a core per GPU and
the median slow-down over the pairs, with limits: 5 % of a core, 0.5 %.

The second part times training steps of about 3 ms with and without `envcheck.watch.step`, in turns:
limit 1 %.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
CORE_LIMIT = 0.05
SLOWDOWN_LIMIT = 0.005
STEP_LIMIT = 0.01
TURN = 2.0
"""Seconds that sampling is on or off."""
SETTLE = 0.2
"""Seconds after a switch that belong to no turn."""

STEPS = """
import json, statistics, sys, time
import torch
from envcheck.watch import step, summary
model = torch.nn.Sequential(*[torch.nn.Linear(2048, 2048) for _ in range(8)]).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
host = torch.randn(1024, 2048).pin_memory()
def plain():
    x = host.to("cuda", non_blocking=True)
    loss = model(x).square().mean()
    optimizer.zero_grad(); loss.backward(); optimizer.step()
def timed():
    with step() as now:
        with now.to_device():
            x = host.to("cuda", non_blocking=True)
        loss = model(x).square().mean()
        optimizer.zero_grad(); loss.backward(); optimizer.step()
def turn(one):
    torch.cuda.synchronize()
    begun = time.perf_counter()
    for _ in range(100):
        one()
    torch.cuda.synchronize()
    return (time.perf_counter() - begun) / 100
for one in (plain, timed) * 2:
    turn(one)
pairs = []
for at in range(int(sys.argv[1])):
    order = (plain, timed) if at % 2 else (timed, plain)
    times = {one.__name__: turn(one) for one in order}
    pairs.append((times["plain"], times["timed"]))
ratios = [b / a - 1 for a, b in pairs]
found = summary()
print(json.dumps({
    "step_ms": round(1000 * statistics.median(a for a, _ in pairs), 4),
    "step_overhead": round(statistics.median(ratios), 5),
    "step_overhead_runs": [round(each, 5) for each in ratios],
    "own_share": round(found.overhead, 6), "compute_ms": round(1000 * found.compute, 4),
    "to_device_ms": round(1000 * found.to_device, 4),
}))
"""


def sampling_cost(python: str, pairs: int) -> dict[str, Any]:
    """Run the matmul, switch sampling on and off beside it, and compare.

    Args:
        python: interpreter with torch.
        pairs: how many turns of each kind.
    """
    from envcheck.watch.sampler import Sampler

    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        seconds = 2 * pairs * TURN + 3.0
        matmul = subprocess.Popen(
            [
                python,
                str(HERE / "workloads" / "big_matmul.py"),
                *("--seconds", str(seconds), "--log", str(log)),
            ],
            stdout=subprocess.DEVNULL,
        )
        _wait_for_load()
        turns: list[tuple[bool, float, float]] = []
        cpu = wall = 0.0
        gpus = 1
        calls: dict[str, Any] = {}
        for at in range(2 * pairs):
            # On, off, off, on, ...: neither kind always comes first.
            on = at % 4 in (0, 3)
            begun = time.monotonic()
            if on:
                sampler = Sampler(interval=0.1, roots=(matmul.pid,))
                gpus = len(sampler.series.head["gpus"])
                started = time.monotonic()
                end = sampler.run(lambda until=begun + TURN: time.monotonic() >= until).end  # type: ignore[misc]
                cpu += end["cpu"] + end["watcher_cpu"]
                wall += end["seconds"]
                calls = end["calls"]
                turns.append((True, started, begun + TURN))
            else:
                time.sleep(TURN)
                turns.append((False, begun, begun + TURN))
        matmul.wait(seconds + 60)
        lines = [line.split() for line in log.read_text(encoding="utf-8").splitlines()]
    groups = [(float(moment), float(took)) for moment, took in lines]
    slow = _slowdowns(groups, turns)
    return {
        "sampler_cores_per_gpu": round(cpu / wall / gpus, 5),
        "gpus": gpus,
        "matmul_slowdown": round(statistics.median(slow), 6),
        "matmul_slowdown_pairs": [round(each, 6) for each in slow],
        "nvml_ms_per_call": {
            name: round(1000 * spent / count, 4) for name, (count, spent) in sorted(calls.items())
        },
    }


def _slowdowns(
    groups: list[tuple[float, float]], turns: list[tuple[bool, float, float]]
) -> list[float]:
    medians = []
    for on, begin, end in turns:
        inside = [took for at, took in groups if begin + SETTLE <= at and at + took <= end - SETTLE]
        medians.append((on, statistics.median(inside)))
    found = []
    for one, other in zip(medians[::2], medians[1::2], strict=True):
        with_it, without = (one[1], other[1]) if one[0] else (other[1], one[1])
        found.append(with_it / without - 1.0)
    return found


def _wait_for_load() -> None:
    """Until a GPU shows work, as the matmul's imports take their time."""
    from envcheck.watch.sampler import Sampler

    sampler = Sampler(interval=0.2, roots=(os.getpid(),))
    until = time.monotonic() + 60.0
    seen = [0.0]

    def stop() -> bool:
        ticks = sampler.series.ticks
        busy = ticks and max(each.get("util", 0) for each in ticks[-1]["gpus"]) > 90
        seen[0] += bool(busy)
        return seen[0] >= 5 or time.monotonic() > until

    sampler.run(stop)


def step_cost(python: str, turns: int) -> dict[str, Any]:
    """Time steps with and without `envcheck.watch.step`, in turns."""
    done = subprocess.run(
        [python, "-c", STEPS, str(turns)],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    if done.returncode:
        msg = f"the training loop failed: {done.stderr.strip().splitlines()[-1:]}"
        raise RuntimeError(msg)
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def main() -> int:
    """Run the benchmark; exit status 1 when a limit is not kept."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--python", default=sys.executable, help="interpreter that has torch")
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    numbers = {**sampling_cost(args.python, args.pairs), **step_cost(args.python, 2 * args.pairs)}
    if args.json:
        print(json.dumps(numbers))
    else:
        for name, each in numbers.items():
            print(f"{name:<24} {each}")
    kept = (
        numbers["sampler_cores_per_gpu"] <= CORE_LIMIT
        and numbers["matmul_slowdown"] <= SLOWDOWN_LIMIT
        and numbers["step_overhead"] <= STEP_LIMIT
    )
    return int(not kept)


if __name__ == "__main__":
    sys.exit(main())
