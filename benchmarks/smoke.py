"""What the smoke test costs beside a bare script that does the same on the same GPU, in one run.

    python benchmarks/smoke.py --torch-python ~/venv/bin/python

Runs `envcheck smoke --framework torch --gpus 0` and `benchmarks/bare_training_step.py` in turns,
and prints the median wall time of each, their ratio, and the most memory of the GPU that the smoke
test held at a time, as NVML counts it, context included.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

LIMIT = 1.15
"""Wall time of the smoke test, as a multiple of the bare script's."""
MEMORY_LIMIT = 1.5e9
"""Bytes of the GPU's memory."""


class Peak:
    """Samples the memory in use of GPU 0 while something runs."""

    def __init__(self) -> None:
        """Start NVML."""
        import pynvml

        pynvml.nvmlInit()
        self._nvml = pynvml
        self._handle = pynvml.nvmlDeviceGetHandleByIndex(0)
        self._stop = threading.Event()
        self.before = self._used()
        self.highest = self.before

    def _used(self) -> int:
        return int(self._nvml.nvmlDeviceGetMemoryInfo(self._handle).used)

    def __enter__(self) -> Peak:
        """Begin."""
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()
        return self

    def _sample(self) -> None:
        while not self._stop.wait(0.005):
            self.highest = max(self.highest, self._used())

    def __exit__(self, *_error: object) -> None:
        """End."""
        self._stop.set()
        self._thread.join()

    @property
    def bytes(self) -> int:
        """Most memory beyond what was in use before."""
        return self.highest - self.before


def timed(argv: list[str]) -> tuple[float, str]:
    """Wall time in seconds, and what it printed."""
    started = time.perf_counter()
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - started
    if done.returncode != 0:
        msg = f"exit status {done.returncode}: {' '.join(argv)}\n{done.stdout}{done.stderr}"
        raise SystemExit(msg)
    return seconds, done.stdout


def main() -> int:
    """Run the benchmark; exit status 1 when a limit is not kept."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--torch-python", required=True, metavar="PATH", help="interpreter that has torch"
    )
    parser.add_argument("--python", default=sys.executable, help="interpreter that has envcheck")
    parser.add_argument("--rounds", type=int, default=5, metavar="N")
    parser.add_argument("--json", action="store_true", help="print the numbers as JSON")
    args = parser.parse_args()

    bare = [args.torch_python, str(Path(__file__).with_name("bare_training_step.py"))]
    smoke = [args.python, "-m", "envcheck", "smoke", "--framework", "torch", "--gpus", "0"]
    smoke += ["--python", args.torch_python, "--distributed", "off", "--json"]
    times: dict[str, list[float]] = {"bare": [], "smoke": [], "stages": []}
    peaks = []
    for at in range(args.rounds + 1):  # the first round warms the caches and is not counted
        seconds, _ = timed(bare)
        with Peak() as peak:
            whole, printed = timed(smoke)
        report = json.loads(printed)
        if at > 0:
            times["bare"].append(seconds)
            times["smoke"].append(whole)
            times["stages"].append(report["snapshot"]["smoke"]["seconds"])
            peaks.append(peak.bytes)
    medians = {name: statistics.median(each) for name, each in times.items()}
    ratio = medians["smoke"] / medians["bare"]
    numbers = {
        **{f"{name}_s": round(value, 3) for name, value in medians.items()},
        "ratio": round(ratio, 3),
        "peak_bytes": max(peaks),
    }
    if args.json:
        print(json.dumps(numbers))
    else:
        for name, value in numbers.items():
            print(f"{name:12} {value}")
    return int(ratio > LIMIT or max(peaks) > MEMORY_LIMIT)


if __name__ == "__main__":
    sys.exit(main())
