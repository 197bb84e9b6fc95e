"""How long a start and a diagnosis take, beside what they are compared with, in one run.

    python benchmarks/doctor.py --torch-python ~/venv/bin/python

Measured in turns, so that a busy moment meets all of them: a bare start of Python,
`envcheck --help`, `envcheck doctor --json`, and `python -m torch.utils.collect_env` in the
interpreter that has torch, which is also the one that the doctor judges. Prints the median of each,
how many milliseconds the help takes over a bare start, and how many times faster the doctor is.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

HELP_LIMIT_MS = 60.0
DOCTOR_SHARE = 1 / 8


def measure(commands: dict[str, list[str]], rounds: int) -> dict[str, float]:
    """Median wall time of each command, in milliseconds.

    Args:
        commands: name -> argv; each must start and end by itself.
        rounds: how often each is run, after one round that warms the caches and is not counted.
    """
    times: dict[str, list[float]] = {name: [] for name in commands}
    for at in range(rounds + 1):
        for name, argv in commands.items():
            started = time.perf_counter()
            done = subprocess.run(
                argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False
            )
            if done.returncode not in (0, 1):
                msg = f"{name}: exit status {done.returncode}: {' '.join(argv)}"
                raise SystemExit(msg)
            if at > 0:
                times[name].append((time.perf_counter() - started) * 1000)
    return {name: statistics.median(each) for name, each in times.items()}


def main() -> int:
    """Run the benchmark; exit status 1 when a limit is not kept."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--torch-python", metavar="PATH", help="interpreter that has torch")
    parser.add_argument("--python", default=sys.executable, help="interpreter that has envcheck")
    parser.add_argument("--rounds", type=int, default=7, metavar="N")
    parser.add_argument("--json", action="store_true", help="print the numbers as JSON")
    args = parser.parse_args()

    envcheck = [args.python, "-m", "envcheck"]
    target = ["--python", args.torch_python] if args.torch_python else []
    commands = {
        "bare": [args.python, "-c", ""],
        "help": [*envcheck, "--help"],
        "doctor": [*envcheck, "doctor", "--json", *target],
    }
    if args.torch_python:
        commands["collect_env"] = [args.torch_python, "-m", "torch.utils.collect_env"]
    # Away from the checkout, whose folders could be imported instead of what is installed.
    home = Path.cwd()
    os.chdir("/")
    medians = measure(commands, args.rounds)
    os.chdir(home)

    over = medians["help"] - medians["bare"]
    kept = over <= HELP_LIMIT_MS
    numbers = {f"{name}_ms": round(each, 1) for name, each in medians.items()}
    numbers["help_over_bare_ms"] = round(over, 1)
    if "collect_env" in medians:
        share = medians["doctor"] / medians["collect_env"]
        numbers["doctor_share_of_collect_env"] = round(share, 4)
        kept = kept and share <= DOCTOR_SHARE
    if args.json:
        print(json.dumps(numbers))
        return int(not kept)
    for name, each in medians.items():
        print(f"{name:<12} {each:8.1f} ms")
    print(f"help - bare: {over:.1f} ms (limit {HELP_LIMIT_MS:.0f})")
    if "collect_env" in medians:
        share = medians["doctor"] / medians["collect_env"]
        print(f"doctor / collect_env: 1/{1 / share:.1f} (limit 1/{1 / DOCTOR_SHARE:.0f})")
    return int(not kept)


if __name__ == "__main__":
    sys.exit(main())
