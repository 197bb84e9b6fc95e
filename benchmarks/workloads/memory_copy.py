"""Keeps the memory of the GPU busy: copies of some gigabytes within it.

python memory_copy.py --seconds 8
"""

from __future__ import annotations

import argparse
import time

import torch

GIB = 1 << 30


def main() -> None:
    """Run for a while."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=8.0)
    args = parser.parse_args()
    free, _ = torch.cuda.mem_get_info()
    size = min(4 * GIB, free // 4)
    a = torch.zeros(size, device="cuda", dtype=torch.uint8)
    b = torch.empty_like(a)
    copies = 0
    begun = time.monotonic()
    while time.monotonic() < begun + args.seconds:
        for _ in range(10):
            b.copy_(a)
        torch.cuda.synchronize()
        copies += 10
    rate = 2.0 * copies * size / (time.monotonic() - begun)
    print(f"{copies} copies, {rate / 1e12:.2f} TB/s read and written")


if __name__ == "__main__":
    main()
