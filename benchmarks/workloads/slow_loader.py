"""Trains on samples that take much longer to prepare than to compute on: two busy loaders.

    python slow_loader.py --seconds 8

The steps are timed by `envcheck.watch.step`.
"""

from __future__ import annotations

import argparse
import time
import zlib
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset

from envcheck.watch import step

WIDTH = 4096
SECONDS_PER_SAMPLE = 0.04


class SlowSamples(Dataset):  # type: ignore[type-arg,misc,unused-ignore]
    """Samples that take a while of the CPU, as decoding and augmenting pictures does."""

    def __len__(self) -> int:
        """More than anybody asks for."""
        return 1 << 20

    def __getitem__(self, at: int) -> Any:
        """One sample."""
        data = bytes(range(256)) * 64
        end = time.process_time() + SECONDS_PER_SAMPLE
        while time.process_time() < end:
            data = zlib.compress(zlib.decompress(zlib.compress(data)))[:64] * 256
        return torch.full((WIDTH,), float(at % 7))


def main() -> None:
    """Run for a while."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=8.0)
    args = parser.parse_args()
    layers = [torch.nn.Linear(WIDTH, WIDTH) for _ in range(12)]
    model = torch.nn.Sequential(*layers).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    loader = DataLoader(SlowSamples(), batch_size=4, num_workers=2, pin_memory=True)
    steps = 0
    end = time.monotonic() + args.seconds
    for batch in loader:
        with step() as now:
            with now.to_device():
                x = batch.to("cuda", non_blocking=True).repeat(512, 1)
            loss = model(x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        steps += 1
        if time.monotonic() > end:
            break
    torch.cuda.synchronize()
    print(f"{steps} steps")


if __name__ == "__main__":
    main()
