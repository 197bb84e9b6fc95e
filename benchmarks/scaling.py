"""What the doctor and a fleet's report cost as machines, environments and fleets grow.

    python benchmarks/scaling.py [--rounds 5] [--reports 10000]

GPUs: a recorded machine with one, edited to have up to 16. Distributions: virtual environments with
up to 5,000, read live. Reports: `benchmarks/fleet.py`. Each kind's sizes are measured in turns; of
each the fastest run counts. Growth counts as linear when one more costs, between the two largest
sizes, at most 1.5 times what it costs on average from the smallest on; differences of less than 20
ms in all say nothing.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
BASE = HERE.parent / "tests" / "machines" / "h200x1"
GPUS = (1, 2, 4, 8, 16)
DISTRIBUTIONS = (10, 100, 1000, 5000)
REPORTS = (1, 10, 100, 1000, 10_000)
UNEVEN = 1.5
NOISE_MS = 20.0


def main() -> int:
    """Run the benchmark; 1 when something grows faster than its number."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5, metavar="N")
    parser.add_argument("--reports", type=int, default=REPORTS[-1], metavar="N", help="at most")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="envcheck-scaling-") as name:
        folder = Path(name)
        machines = {n: ["--machine", str(_machine(folder / f"gpus-{n}", n))] for n in GPUS}
        linear = _print("GPUs of a recorded machine", _doctors(machines, args.rounds))
        venvs = {n: ["--python", str(_venv(folder / f"venv-{n}", n))] for n in DISTRIBUTIONS}
        linear &= _print("distributions of an environment", _doctors(venvs, args.rounds))
    fleet = {n: _fleet(n) for n in REPORTS if n <= args.reports}
    linear &= _print("reports of a fleet", fleet)
    return int(not linear)


Cost = tuple[float, float]
"""Milliseconds and MiB."""


def _machine(folder: Path, gpus: int) -> Path:
    """The recorded machine, with its GPU so many times."""
    shutil.copytree(BASE, folder)
    for payload in ("query_nvml", "query_libcuda"):
        path = folder / "commands" / f"payload-{payload}.stdout"
        mark, _, text = path.read_text(encoding="utf-8").partition("{")
        answer = json.loads("{" + text)
        answer["gpus"] = [_gpu(answer["gpus"][0], at) for at in range(gpus)]
        path.write_text(mark + json.dumps(answer) + "\n", encoding="utf-8")
    return folder


def _gpu(first: dict[str, Any], at: int) -> dict[str, Any]:
    gpu = copy.deepcopy(first)
    gpu["index"] = at
    gpu["bus_id"] = re.sub(r":..:..\.", f":{at + 1:02x}:00.", str(gpu.get("bus_id")))
    return gpu


def _venv(folder: Path, distributions: int) -> Path:
    """A virtual environment with so many distributions, each with some files and requirements."""
    venv.create(folder, symlinks=True)
    (site,) = (folder / "lib").glob("python3*/site-packages")
    for at in range(distributions):
        name = f"package_{at}"
        info = site / f"{name}-1.{at}.dist-info"
        info.mkdir()
        requires = "".join(
            f"Requires-Dist: package_{(at + step) % distributions}>=1.0; extra == 'all'\n"
            for step in range(1, 6)
        )
        about = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.{at}\n{requires}"
        (info / "METADATA").write_text(about)
        (info / "WHEEL").write_text("Wheel-Version: 1.0\nTag: py3-none-any\n")
        (info / "INSTALLER").write_text("pip\n")
        record = "".join(f"{name}/module_{part}.py,,\n" for part in range(20))
        (info / "RECORD").write_text(record)
    return folder / "bin" / "python"


def _doctors(arguments: dict[int, list[str]], rounds: int) -> dict[int, Cost]:
    best: dict[int, Cost] = {}
    for at in range(rounds + 1):
        for size, argv in arguments.items():
            cost = _doctor(argv)
            if at > 0:
                best[size] = min(best.get(size, cost), cost)
    return best


def _doctor(argv: list[str]) -> Cost:
    started = time.perf_counter()
    child = subprocess.Popen(
        [sys.executable, "-m", "envcheck", "doctor", "--json", "--timeout", "60", *argv],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        cwd="/",
    )
    said = child.stderr.read().decode() if child.stderr is not None else ""
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in (0, 1):
        raise SystemExit(said)
    return (time.perf_counter() - started) * 1000, usage.ru_maxrss / 1024


def _fleet(reports: int) -> Cost:
    fleet = [sys.executable, str(HERE / "fleet.py"), "--formats", "text", "--count", str(reports)]
    done = subprocess.run(fleet, capture_output=True, text=True, check=False)
    found = re.search(r"(?m)^text +([\d.]+) s of CPU +[\d.]+ s +(\d+) MiB", done.stdout)
    if found is None:
        raise SystemExit(done.stdout + done.stderr)
    return float(found[1]) * 1000, float(found[2])


def _print(title: str, costs: dict[int, Cost]) -> bool:
    """Print a table; whether the time grows no faster than the size."""
    sizes = sorted(costs)
    print(title)
    for size in sizes:
        milliseconds, mebibytes = costs[size]
        print(f"  {size:>6} {milliseconds:>9.0f} ms {mebibytes:>5.0f} MiB")
    first, before, last = sizes[0], sizes[-2], sizes[-1]
    rise = costs[last][0] - costs[first][0]
    mean = rise / (last - first)
    late = (costs[last][0] - costs[before][0]) / (last - before)
    linear = rise < NOISE_MS or late <= UNEVEN * mean
    print(
        f"  one more: {mean:.3f} ms, at the end {late:.3f} ms: {'linear' if linear else 'steeper'}"
    )
    return linear


if __name__ == "__main__":
    sys.exit(main())
