"""Several processes train one model: `torchrun --nproc-per-node 2 smoke_ddp.py`.

Every process (rank) has a GPU of its own and a part of the batch. Are sums over all of them right,
how fast are they, and is a step of DistributedDataParallel the same step as with the whole batch?
"""

import copy
import datetime
import os
import sys
import time
import warnings
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
# Last, and the working directory not at all: nothing here may hide what other programs import.
sys.path[:] = [each for each in sys.path if each not in ("", HERE)] + [HERE]
from smoke_links import link_bandwidth  # noqa: E402
from smoke_stages import Stages, Wrong, close, leave, read_settings  # noqa: E402

sys.path[:] = [each for each in sys.path if each not in ("", HERE)]

SUMMED = 64 << 20
"""Bytes that are summed over all ranks for the bandwidth."""
TIMES = 5
PER_RANK = 8
"""Items of the batch that each rank gets."""
TOLERANCE = 1e-4
HINDMOST = 2.0
"""Seconds that a rank waits before it ends with an error, which may be that it lost another one."""
torch: "Any" = None
dist: "Any" = None


def import_torch():
    """Load PyTorch."""
    global torch, dist  # noqa: PLW0603 - the stage is the import
    import torch
    import torch.distributed as dist


def place(settings):
    """This rank's device, and the library that its group talks through."""
    local = int(os.environ["LOCAL_RANK"])
    if settings["device"] == "cpu":
        return "cpu", "gloo"
    gpus = settings["gpus"]
    device = "cuda:%d" % (gpus[local] if gpus is not None else local)
    torch.cuda.set_device(device)
    return device, "nccl"


def join(backend, settings):
    """All ranks find each other. torchrun tells each of them by variables where."""
    # Whoever watches from outside is quicker, and sees which ranks did not arrive.
    patience = datetime.timedelta(seconds=10 * (settings["timeout"] or 60))
    dist.init_process_group(backend, timeout=patience)
    if dist.get_rank() != int(os.environ["RANK"]):
        raise RuntimeError("rank %d was told to be %s" % (dist.get_rank(), os.environ["RANK"]))
    return {"ranks": (dist.get_world_size(), "")}


def all_reduce(device):
    """The sum over all ranks is right everywhere, and how fast it is."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    count = SUMMED // 4 if device != "cpu" else 1 << 16
    # Small whole numbers: their sum is exact in float32 in whatever order.
    data = (torch.arange(count, device=device) % 1000 + rank).float()
    wanted = (torch.arange(count, device=device) % 1000 * ranks + ranks * (ranks - 1) // 2).float()
    total = data.clone()
    dist.all_reduce(total)
    if not torch.equal(total, wanted):
        wrong = int((total != wanted).sum())
        raise Wrong("%d of %d sums over %d ranks are wrong" % (wrong, count, ranks))
    finish(device)
    started = time.perf_counter()
    for _ in range(TIMES):
        dist.all_reduce(total)
    finish(device)
    seconds = (time.perf_counter() - started) / TIMES
    # What each link carries, however many ranks there are: each byte goes out and comes in once,
    # but for a rank's own share.
    share = 2.0 * (ranks - 1) / ranks
    metrics = {"bus_bandwidth": (4 * count * share / seconds / 1e9, "GB/s")}
    if device != "cpu":
        metrics.update(link_bandwidth(torch.device(device).index))
    return metrics


def finish(device):
    """Wait for the device, then for the other ranks."""
    if device != "cpu":
        torch.cuda.synchronize(device)
    dist.barrier()


def ddp_step(device):
    """One step of DistributedDataParallel against the step with the whole batch in float64."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10))
    inputs = torch.randn(PER_RANK * ranks, 64)
    labels = torch.randint(0, 10, (PER_RANK * ranks,))
    reference = copy.deepcopy(model).double()
    expected = step(reference, inputs.double(), labels)

    model.to(device)
    parallel = torch.nn.parallel.DistributedDataParallel(
        model, device_ids=None if device == "cpu" else [torch.device(device).index]
    )
    mine = slice(rank * PER_RANK, (rank + 1) * PER_RANK)
    loss = step(parallel, inputs[mine].to(device), labels[mine].to(device))
    dist.all_reduce(loss)
    error = abs(loss.item() / ranks / expected.item() - 1.0)
    metrics = close(error, TOLERANCE, "the loss over all ranks")
    for part, wanted in zip(model.parameters(), reference.parameters()):
        got = part.detach().double().cpu()
        error = float((got - wanted.detach()).norm() / wanted.detach().norm())
        close(error, TOLERANCE, "a weight after the step")
    return metrics


def step(model, inputs, labels):
    """Forward pass, loss, backward pass, optimizer step; the loss."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loss = torch.nn.functional.cross_entropy(model(inputs), labels)
    loss.backward()
    optimizer.step()
    return loss.detach()


def disband(device):
    """All ranks are done."""
    finish(device)
    dist.destroy_process_group()


def main(argv):
    """Run the stages; a rank that fails ends, and torchrun then ends the others."""
    warnings.simplefilter("ignore")
    settings = read_settings(argv)
    stages = Stages("torch", settings, rank=int(os.environ.get("RANK", "0")))
    if not stages.run("ddp-import", import_torch):
        return 1
    device, backend = place(settings)
    stages.say("rank", local=int(os.environ["LOCAL_RANK"]), ranks=int(os.environ["WORLD_SIZE"]))
    stages.device = device
    if device != "cpu":
        torch.set_float32_matmul_precision("highest")
    for name, function, arguments in (
        ("ddp-init", join, (backend, settings)),
        ("all-reduce", all_reduce, (device,)),
        ("ddp-step", ddp_step, (device,)),
        ("ddp-end", disband, (device,)),
    ):
        if not stages.run(name, function, *arguments):
            # The rank that failed first is the cause: torchrun should see its end before this one.
            time.sleep(HINDMOST)
            return 1
    return 0


if __name__ == "__main__":
    leave(main(sys.argv))
