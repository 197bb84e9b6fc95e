"""What the smoke test costs beside a bare script that does the same on the same GPU, in one run.

    python benchmarks/smoke.py --torch-python ~/venv/bin/python

Runs `envcheck smoke --framework torch --gpus 0` and `benchmarks/bare_training_step.py` in turns,
and prints the median wall time of each, their ratio, and the most memory of the GPU that the smoke
test held at a time, as NVML counts it, context included. Memory is sampled in the first round only,
which is not timed: whoever asks the driver 200 times a second slows down what starts on it.

With `--json` also the machine, and the stages of one more run with every framework that there is:
`benchmarks/h200/smoke.json` is such an output. `--device cpu` compares the same two on the CPU,
where there is no limit to keep.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

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
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--rounds", type=int, default=5, metavar="N")
    parser.add_argument("--json", action="store_true", help="print the numbers as JSON")
    args = parser.parse_args()

    on_gpu = args.device == "cuda"
    bare = [args.torch_python, str(Path(__file__).with_name("bare_training_step.py"))]
    bare += [] if on_gpu else ["cpu"]
    smoke = [args.python, "-m", "envcheck", "smoke", "--framework", "torch"]
    smoke += ["--gpus", "0"] if on_gpu else ["--device", "cpu"]
    smoke += ["--python", args.torch_python, "--distributed", "off", "--json"]
    # The first round warms the caches.
    timed(bare)
    with Peak() if on_gpu else contextlib.nullcontext() as peak:
        timed(smoke)
    times: dict[str, list[float]] = {"bare": [], "smoke": [], "stages": []}
    for _ in range(args.rounds):
        times["bare"].append(timed(bare)[0])
        whole, printed = timed(smoke)
        times["smoke"].append(whole)
        times["stages"].append(json.loads(printed)["snapshot"]["smoke"]["seconds"])
    numbers: dict[str, float] = {
        f"{name}_s": round(statistics.median(each), 3) for name, each in times.items()
    }
    numbers["ratio"] = round(numbers["smoke_s"] / numbers["bare_s"], 3)
    if peak is not None:
        numbers["peak_bytes"] = peak.bytes
    if args.json:
        every = [each for each in smoke if each not in {"--framework", "torch"}]
        report = json.loads(timed(every)[1])
        print(readable({"benchmark": {"rounds": args.rounds, **numbers}, **described(report)}))
    else:
        for name, value in numbers.items():
            print(f"{name:12} {value}")
    return int(on_gpu and (numbers["ratio"] > LIMIT or numbers["peak_bytes"] > MEMORY_LIMIT))


def described(report: dict[str, Any]) -> dict[str, Any]:
    """What a report says about the machine and its stages, as far as figures depend on it."""
    snapshot = report["snapshot"]
    used = {each["framework"] for each in report["stages"]}
    return {
        "machine": {
            "gpus": [each["name"] for each in snapshot["host"]["gpus"] or ()],
            "driver": snapshot["host"]["driver"]["version"],
            "python": snapshot["env"]["python"]["version"],
            **{
                each["name"]: each["version"]
                for each in snapshot["env"]["frameworks"] or ()
                if each["name"] in used
            },
            "date": snapshot["taken_at"][:10],
        },
        "stages": [
            {
                **{name: each[name] for name in ("framework", "device", "name", "outcome")},
                "seconds": each["seconds"] and round(each["seconds"], 3),
                **{metric["name"]: float(f"{metric['value']:.4g}") for metric in each["metrics"]},
            }
            for each in report["stages"]
        ],
    }


def readable(figures: dict[str, Any]) -> str:
    """JSON with one stage per line."""
    head = [
        f" {json.dumps(name)}: {json.dumps(value)}"
        for name, value in figures.items()
        if name != "stages"
    ]
    stages = ",\n".join(f"  {json.dumps(each)}" for each in figures["stages"])
    return "{\n" + ",\n".join((*head, f' "stages": [\n{stages}\n ]')) + "\n}"


if __name__ == "__main__":
    sys.exit(main())
