"""The doctor beside other programs that describe or judge a GPU environment, in one run.

    python benchmarks/peers.py --torch-python ~/venv/bin/python [--cache DIR] [--rounds 7]

Each program gets a virtual environment of its own in the cache folder, into which pip installs it
from the configured index and which sees the torch of `--torch-python`; one that cannot be installed
is named. envcheck is installed from this checkout in the same way, and judges that interpreter.

All are run in turns, so that a busy moment meets every one of them. The first turn counts as cold:
each program's files are dropped from the page cache before it, as far as the system allows that.
The rest give the median of the warm times, shown as multiples of the doctor's. Memory is that of
the largest process of a run.
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

ROOT = Path(__file__).resolve().parents[1]

PEERS: dict[str, tuple[str, ...]] = {
    "deepspeed": ("ds_report",),
    "accelerate": ("accelerate", "env"),
    "env-doctor": ("env-doctor", "check", "--json"),
    "cuda-doctor": ("cuda-doctor", "diagnose", "--format", "json"),
    "rigsolve": ("rigsolve", "check"),
    "rapids-cli": ("rapids", "doctor"),
}
"""Package -> its program with arguments."""
SHARE = 1 / 8
"""What the doctor may take of collect_env's time."""


def main() -> int:
    """Run the benchmark; 1 when the doctor takes more than its share of collect_env's time."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--torch-python", required=True, metavar="PATH")
    default = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "envcheck-peers"
    parser.add_argument("--cache", type=Path, default=default, metavar="DIR")
    parser.add_argument("--rounds", type=int, default=7, metavar="N")
    parser.add_argument("--json", action="store_true", help="print the numbers as JSON")
    args = parser.parse_args()
    torch = Path(args.torch_python).absolute()

    programs, refused = _programs(torch, args.cache)
    os.chdir("/")
    cold = {name: _run(argv, cold=folder) for name, (argv, folder) in programs.items()}
    warm: dict[str, list[Run]] = {name: [] for name in programs}
    for _ in range(args.rounds):
        for name, (argv, _folder) in programs.items():
            warm[name].append(_run(argv))
    rows = {
        name: {
            "cold_ms": round(cold[name][0] * 1000),
            "warm_ms": round(statistics.median(each[0] for each in runs) * 1000),
            "fastest_ms": round(min(each[0] for each in runs) * 1000),
            "cpu_ms": round(statistics.median(each[1] for each in runs) * 1000),
            "peak_mib": round(max(each[2] for each in runs)),
            "exit": runs[-1][3],
        }
        for name, runs in warm.items()
    }
    if args.json:
        print(json.dumps({"programs": rows, "not installed": refused}))
    else:
        _print(rows, refused)
    share = rows["envcheck doctor"]["warm_ms"] / rows["collect_env"]["warm_ms"]
    return int(share > SHARE)


Run = tuple[float, float, float, int]
"""Seconds, seconds of all processors, MiB, and exit status."""


def _programs(torch: Path, cache: Path) -> tuple[dict[str, tuple[list[str], Path]], dict[str, str]]:
    """Command line and folder of each program, and why some are not there."""
    refused = {}
    own = _installed(cache / "envcheck", str(ROOT), None, anew=True)
    if own is not None:
        raise SystemExit(own)
    doctor = [str(cache / "envcheck/bin/envcheck"), "doctor", "--json", "--python", str(torch)]
    programs = {
        "envcheck doctor": (doctor, cache / "envcheck"),
        "collect_env": ([str(torch), "-m", "torch.utils.collect_env"], torch.parents[1]),
    }
    for package, (program, *arguments) in PEERS.items():
        problem = _installed(cache / package, package, torch)
        path = cache / package / "bin" / program
        if problem is None and not path.exists():
            problem = f"installs no program {program}"
        if problem is not None:
            refused[package] = problem
            continue
        name = program if package == "deepspeed" else " ".join((program, *arguments[:1]))
        programs[name] = ([str(path), *arguments], cache / package)
    return programs, refused


def _installed(folder: Path, package: str, torch: Path | None, *, anew: bool = False) -> str | None:
    """Install a package in an environment of its own; None, or why that failed."""
    mark = folder / "installed"
    if mark.exists() and not anew:
        return None
    python = torch or Path(sys.executable)
    subprocess.run([str(python), "-m", "venv", "--clear", str(folder)], check=True)
    if torch is not None:
        ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
        where = subprocess.run(
            [str(torch), "-c", ask], check=True, capture_output=True, text=True
        ).stdout
        (site,) = (folder / "lib").glob("python3*/site-packages")
        (site / "torch.pth").write_text(where)
    pip = [str(folder / "bin/python"), "-m", "pip", "install", "--quiet", package]
    done = subprocess.run(pip, capture_output=True, text=True, check=False)
    if done.returncode:
        return (done.stderr.strip().splitlines() or ["pip failed"])[-1]
    mark.touch()
    return None


def _run(argv: list[str], cold: Path | None = None) -> Run:
    if cold is not None:
        _forget(cold)
    with tempfile.TemporaryFile() as output:
        before = os.times()
        started = time.perf_counter()
        child = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=_variables()
        )
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - started
        after = os.times()
    child.returncode = os.waitstatus_to_exitcode(status)
    used = after.children_user - before.children_user
    used += after.children_system - before.children_system
    return seconds, used, usage.ru_maxrss / 1024, child.returncode


def _variables() -> dict[str, str]:
    return {**os.environ, "NO_COLOR": "1", "COLUMNS": "80"}


def _forget(folder: Path) -> None:
    """Ask the system to drop a folder's files from the page cache; it need not."""
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _print(rows: dict[str, dict[str, int]], refused: dict[str, str]) -> None:
    base = rows["envcheck doctor"]
    print("program                 cold ms  warm ms  of doctor's  fastest  CPU ms  MiB  exit")
    for name, row in sorted(rows.items(), key=lambda item: item[1]["warm_ms"]):
        ratio = row["warm_ms"] / base["warm_ms"]
        print(
            f"{name:<22} {row['cold_ms']:>8} {row['warm_ms']:>8} {ratio:>11.2f}x"
            f" {row['fastest_ms']:>8} {row['cpu_ms']:>7} {row['peak_mib']:>4} {row['exit']:>5}"
        )
    for package, why in refused.items():
        print(f"not installed: {package}: {why}")
    times = rows["collect_env"]["warm_ms"] / base["warm_ms"]
    print(f"doctor / collect_env: 1/{times:.1f} (limit 1/{1 / SHARE:.0f})")


if __name__ == "__main__":
    sys.exit(main())
