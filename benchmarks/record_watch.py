"""Records every workload under `envcheck watch` and measures what watching costs, on a real GPU.

    python benchmarks/record_watch.py OUT [--python PATH] [--rounds 3] [--seconds 8] [--limit 350]

Into the folder OUT go, for each round of each workload, NAME-ROUND.jsonl (the series, which
`envcheck watch --replay` judges), NAME-ROUND.json (the report), .txt (the same as text), .csv and
.log (what the workload printed), a plot of each workload's first round where matplotlib is
installed, and summary.json: the verdict of each run beside the expected one, and the costs. A
workload that fails or hangs costs its own runs only; what no time is left for is said to be
skipped. Exit status 1 when something went wrong.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SKIPPED = 77
RUN_LIMIT = 60.0
"""Seconds after which a run counts as hung."""


def environment() -> dict[str, str]:
    """This process's, with the checkout to import envcheck from when it is not installed."""
    variables = dict(os.environ)
    folders = [str(HERE.parent), *filter(None, [variables.get("PYTHONPATH")])]
    variables["PYTHONPATH"] = os.pathsep.join(folders)
    variables["NO_COLOR"] = "1"
    return variables


def run(argv: list[str], log: Path, limit: float) -> int | None:
    """Run a program with its output in a file; its exit status, None when it was killed."""
    with log.open("w", encoding="utf-8") as file:
        child = subprocess.Popen(
            argv, stdout=file, stderr=file, env=environment(), start_new_session=True
        )
        try:
            return child.wait(limit)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            return None


def record(name: str, number: int, args: argparse.Namespace) -> dict[str, Any]:
    """One run of one workload; what came of it."""
    stem = args.out / f"{name}-{number}"
    script = HERE / "workloads" / f"{name}.py"
    plot = []
    if number == 1 and importlib.util.find_spec("matplotlib") is not None:
        plot = ["--plot", f"{stem}.png"]
    begun = time.monotonic()
    code = run(
        [
            *(sys.executable, "-m", "envcheck", "watch", "--json", "-o", f"{stem}.json"),
            *("--record", f"{stem}.jsonl", "--csv", f"{stem}.csv", *plot, "--"),
            *(args.python, str(script), "--seconds", str(args.seconds)),
        ],
        Path(f"{stem}.log"),
        RUN_LIMIT,
    )
    found: dict[str, Any] = {"exit": code, "took": round(time.monotonic() - begun, 1)}
    if code == SKIPPED:
        return {**found, "skipped": "the workload needs more GPUs"}
    try:
        report = json.loads(Path(f"{stem}.json").read_text(encoding="utf-8"))
        activity = report["snapshot"]["activity"]
        found["verdicts"] = [each["id"] for each in report["findings"]]
        found["titles"] = [each["title"] for each in report["findings"]]
        found["unknown"] = report["unknown"]
        found["sampler_cpu"] = activity["sampler_cpu"]
        found["gpus"] = [means(each) for each in activity["gpus"]]
        found["host"] = means(activity["host"] or {})
        found["steps"] = activity["steps"]
        found["window"] = [activity["started"], activity["seconds"], activity["samples"]]
        found["context"] = activity["gpu_context"]
        found["notes"] = activity["notes"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        log = Path(f"{stem}.log").read_text(encoding="utf-8", errors="replace")
        found["problem"] = f"{type(error).__name__}: {error}"
        found["log"] = log.splitlines()[-15:]
        return found
    with Path(f"{stem}.txt").open("w", encoding="utf-8") as file:
        subprocess.run(
            [sys.executable, "-m", "envcheck", "watch", "--replay", f"{stem}.jsonl"],
            stdout=file,
            stderr=file,
            env=environment(),
            timeout=30,
            check=False,
        )
    return found


def means(data: dict[str, Any]) -> dict[str, Any]:
    """Spreads by their means, all else as it is, without what is not known."""
    return {
        name: each["mean"] if isinstance(each, dict) and "mean" in each else each
        for name, each in data.items()
        if each not in (None, [], {})
    }


def main() -> int:
    """Record everything that there is time for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("out", type=Path, metavar="OUT")
    parser.add_argument("--python", default=sys.executable, help="interpreter that has torch")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=8.0, help="of each workload")
    parser.add_argument("--limit", type=float, default=350.0, help="seconds for everything")
    parser.add_argument("--only", default="", help="workloads, separated by commas; no costs then")
    args = parser.parse_args()
    args.out = args.out.resolve()
    args.out.mkdir(parents=True, exist_ok=True)
    over = time.monotonic() + args.limit
    expected = json.loads((HERE / "workloads" / "expected.json").read_text(encoding="utf-8"))
    names = [each for each in expected if not args.only or each in args.only.split(",")]
    summary: dict[str, Any] = {"expected": expected, "runs": {}, "costs": {}}
    longest = args.seconds + 10.0

    def save() -> None:
        text = json.dumps(summary, indent=1)
        (args.out / "summary.json").write_text(text + "\n", encoding="utf-8")

    def left() -> float:
        return float(over - time.monotonic())

    skipped: set[str] = set()
    for number in range(1, args.rounds + 1):
        if number == 2 and not args.only:
            # After one round of everything, so that there are costs whatever happens later.
            summary["costs"] = costs(args, left())
            save()
        for name in names:
            if name in skipped:
                continue
            if left() < longest + 3.0:
                summary["runs"][f"{name}-{number}"] = {"skipped": "no time was left"}
                continue
            try:
                found = record(name, number, args)
            except Exception as error:  # one run must not end the others
                found = {"problem": f"{type(error).__name__}: {error}", "took": 0.0}
            longest = max(longest, min(found["took"], RUN_LIMIT))
            if "skipped" in found:
                skipped.add(name)
            wanted = expected[name]["verdict"]
            found["right"] = wanted in found.get("verdicts", ())
            summary["runs"][f"{name}-{number}"] = found
            print(
                f"{name}-{number}: {found.get('verdicts', found.get('skipped', found))}", flush=True
            )
            save()
    save()
    judged = [each for each in summary["runs"].values() if "skipped" not in each]
    right = sum(bool(each.get("right")) for each in judged)
    print(f"{right} of {len(judged)} runs got the expected verdict")
    print(json.dumps(summary["costs"]))
    return int(right != len(judged) or "problem" in summary["costs"])


def costs(args: argparse.Namespace, left: float) -> dict[str, Any]:
    """What watching costs, or why it could not be measured."""
    sys.path[:0] = [str(HERE.parent), str(HERE)]
    os.environ.update(environment())
    found: dict[str, Any] = {}
    try:
        costs_of = importlib.import_module("watch")
        # A quarter of the time at the most, so that the rounds keep theirs.
        pairs = max(3, min(10, int(left / 4.0 / (2 * costs_of.TURN))))
        found |= costs_of.sampling_cost(args.python, pairs)
        found |= costs_of.step_cost(args.python, 20)
    except Exception as error:
        found["problem"] = f"{type(error).__name__}: {error}"
        found["trace"] = traceback.format_exc().splitlines()[-8:]
    return found


if __name__ == "__main__":
    sys.exit(main())
