"""Trains a small network and looks at values on the host all the time, as logging code does.

python host_syncs.py --seconds 8
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
    layers = [torch.nn.Linear(256, 256).cuda() for _ in range(8)]
    parameters = [each for layer in layers for each in layer.parameters()]
    optimizer = torch.optim.SGD(parameters, lr=1e-3)
    x = torch.randn(64, 256, device="cuda")
    steps, total = 0, 0.0
    end = time.monotonic() + args.seconds
    while time.monotonic() < end:
        y = x
        for layer in layers:
            y = torch.relu(layer(y))
            total += y.mean().item()
        loss = y.square().mean()
        optimizer.zero_grad()
        loss.backward()
        total += loss.item()
        total += sum(each.grad.norm().item() for each in parameters if each.grad is not None)
        optimizer.step()
        steps += 1
    print(f"{steps} steps, {total:.3f}")


if __name__ == "__main__":
    main()
