"""Keeps the tensor cores busy: one large bf16 matmul after the other.

    python big_matmul.py --seconds 8 [--log FILE]

With `--log`, the time of every few matmuls is written (`moment seconds`, on the monotonic clock),
from which a benchmark reads whether something slowed them down.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import torch

SIZE = 8192
AT_ONCE = 20
"""Matmuls between two looks at the clock: some 30 ms of an H200."""


def main() -> None:
    """Run for a while."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--log")
    args = parser.parse_args()
    a, b = (torch.randn(SIZE, SIZE, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    c = torch.empty_like(a)
    times = []
    end = time.monotonic() + args.seconds
    while (begun := time.monotonic()) < end:
        for _ in range(AT_ONCE):
            torch.matmul(a, b, out=c)
        torch.cuda.synchronize()
        times.append((begun, time.monotonic() - begun))
    if args.log:
        lines = [f"{moment:.6f} {seconds:.6f}\n" for moment, seconds in times]
        Path(args.log).write_text("".join(lines), encoding="utf-8")
    flops = 2.0 * SIZE**3 * AT_ONCE * len(times) / sum(seconds for _, seconds in times)
    print(f"{len(times) * AT_ONCE} matmuls, {flops / 1e12:.0f} TFLOPS")


if __name__ == "__main__":
    main()
