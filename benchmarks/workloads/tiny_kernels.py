"""Launches kernels that are done before the next one is launched: an addition to 1024 numbers.

python tiny_kernels.py --seconds 8
"""

from __future__ import annotations

import argparse
import time

import torch


def main() -> None:
    """Run for a while."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=8.0)
    args = parser.parse_args()
    x = torch.zeros(1024, device="cuda")
    count = 0
    end = time.monotonic() + args.seconds
    while time.monotonic() < end:
        for _ in range(1000):
            x.add_(1.0)
        torch.cuda.synchronize()
        count += 1000
    print(f"{count} kernels")


if __name__ == "__main__":
    main()
