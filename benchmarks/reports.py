"""How fast pasted reports are judged, and what a very long log costs.

    python benchmarks/reports.py [--reports 1000] [--megabytes 20]

Both run `envcheck doctor --report` as a process. The reports are of the size of a collect_env, made
from the public ones under tests/intake/cases; the log is training output with one message at its
end. Targets: 200 reports a second on one core; 20 MB in 2 s and 200 MB of memory.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
CASES = HERE.parent / "tests" / "intake" / "cases"
WORDS = ("loss", "step", "epoch", "lr", "grad", "norm", "samples", "shard", "tokens", "accuracy")
MESSAGE = "RuntimeError: CUDA error: no kernel image is available for execution on the device\n"


def run(*args: str) -> tuple[float, int, str]:
    """CPU seconds, peak bytes of memory and output of one run; other programs do not count."""
    child = subprocess.Popen(
        [sys.executable, "-m", "envcheck", "doctor", "--report", *args],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    output = child.stdout.read() if child.stdout else ""
    _pid, _status, usage = os.wait4(child.pid, 0)
    child.returncode = 0
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, output


def reports(folder: Path, count: int) -> None:
    """Judge many texts of the size of a collect_env in one call."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(CASES.glob("*.txt"))]
    texts = [text for text in texts if len(text) > 700]
    for at in range(count):
        (folder / f"{at:05}.txt").write_text(f"{texts[at % len(texts)]}\n# {at}\n", "utf-8")
    size = sum(path.stat().st_size for path in folder.iterdir()) / count
    seconds, memory, output = run(str(folder), "--format", "jsonl")
    lines = [json.loads(line) for line in output.splitlines()]
    print(f"reports          {len(lines)} of {size:.0f} bytes on average, one JSON line each")
    print(f"CPU seconds      {seconds:.2f}, the start of envcheck included")
    print(f"reports a second {len(lines) / seconds:.0f}")
    print(f"peak memory      {memory >> 20} MiB")


def log(path: Path, megabytes: int) -> None:
    """Judge one very long log."""
    source = random.Random(1)  # noqa: S311 - reproducible, not secret
    with path.open("w", encoding="utf-8") as file:
        size = 0
        while size < megabytes << 20:
            words = " ".join(f"{source.choice(WORDS)}={source.random():.5f}" for _ in range(9))
            line = f"[rank{source.randrange(8)}] INFO {words}\n"
            size += file.write(line)
        file.write(MESSAGE)
    seconds, memory, output = run(str(path), "--json")
    found = json.loads(output)
    print(f"log              {megabytes} MB, verdict {found['verdict']}")
    print(f"CPU seconds      {seconds:.2f}")
    print(f"peak memory      {memory >> 20} MiB")


def main() -> None:
    """Run both."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--reports", type=int, default=1000)
    parser.add_argument("--megabytes", type=int, default=20)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "reports"
        folder.mkdir()
        reports(folder, args.reports)
        print()
        log(Path(place) / "training.log", args.megabytes)


if __name__ == "__main__":
    main()
