"""Sums large tensors over two GPUs, with hardly any computing in between.

    python all_reduce.py --seconds 8

Ends with status 77, which test harnesses read as skipped, where there are not two GPUs.
"""

from __future__ import annotations

import argparse
import os
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

SKIPPED = 77
MIB = 1 << 20


def work(rank: int, seconds: float) -> None:
    """One rank."""
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", init_method="tcp://127.0.0.1:29517", rank=rank, world_size=2)
    gradients = torch.zeros(256 * MIB, device="cuda", dtype=torch.bfloat16)
    weights = torch.zeros(1024, 1024, device="cuda", dtype=torch.bfloat16)
    # The ranks agree on when to end, or one would wait for the other.
    go_on = torch.ones(1, device="cuda")
    count, end = 0, time.monotonic() + seconds
    while go_on.item():
        for _ in range(20):
            weights @= weights
            dist.all_reduce(gradients)
            count += 1
        go_on.fill_(float(time.monotonic() < end))
        dist.all_reduce(go_on, op=dist.ReduceOp.MIN)
    if rank == 0:
        print(f"{count} sums of {gradients.nbytes // MIB} MiB")
    dist.destroy_process_group()


def main() -> int:
    """Run for a while."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=8.0)
    args = parser.parse_args()
    if torch.cuda.device_count() < 2:
        print("needs two GPUs")
        return SKIPPED
    os.environ.setdefault("NCCL_SOCKET_IFNAME", "lo")
    mp.spawn(work, args=(args.seconds,), nprocs=2)
    return 0


if __name__ == "__main__":
    sys.exit(main())
