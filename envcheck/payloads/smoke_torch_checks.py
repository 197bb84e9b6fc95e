"""What a training step with PyTorch is made of, checked: copies, products, convolutions, data.

Used by `smoke_torch.py`, which loads this when PyTorch itself has been loaded.
"""

import gc
import os
import time

import torch
from smoke_stages import Wrong, close, die_with_parent

SIZE = 512
"""Rows and columns of the matrices: large enough for tensor cores, small enough for a CPU."""
TOLERANCES = {
    # Largest error of a product, relative to its largest element. Operands are rounded to the
    # type first, so what remains is the rounding of the sum and of the result.
    "matmul-fp32": 1e-5,
    "matmul-tf32": 3e-3,
    "matmul-bf16": 1e-2,
    "matmul-fp16": 5e-3,
    "convolution": 1e-5,
    # Error of loss, gradients and updated weights, each relative to its own norm.
    "training-step-fp32": 1e-4,
    "training-step-bf16": 5e-2,
    "training-step-fp16": 1e-2,
    "checkpointing": 1e-4,
    "accumulation": 1e-4,
    "compile": 1e-4,
}
COPIED = 64 << 20
"""Bytes that are copied each way for the bandwidth."""
WORKERS = 2


def distance(got, wanted):
    """Norm of the difference, relative to that of the reference; infinite when not all finite."""
    got, wanted = got.detach().double().cpu(), wanted.detach().double().cpu()
    if not bool(torch.isfinite(got).all()):
        return float("inf")
    return float((got - wanted).norm() / wanted.norm().clamp_min(1e-30))


def dtypes(device):
    """Types to multiply in, with the reason where the GPU has no units for one."""
    on_gpu = device != "cpu"
    capability = torch.cuda.get_device_capability(device) if on_gpu else (99, 0)
    old = "compute capability %d.%d has none" % capability
    before_ampere = old if capability < (8, 0) else ""
    return (
        ("fp32", torch.float32, ""),
        ("tf32", torch.float32, before_ampere if on_gpu else "for GPUs"),
        ("bf16", torch.bfloat16, before_ampere),
        ("fp16", torch.float16, old if capability < (5, 3) else ""),
    )


def context(device):
    """The first allocation and the first kernel on a GPU."""
    torch.cuda.set_device(device)
    if torch.ones(256, device=device).sum().item() != 256.0:
        raise Wrong("the sum of 256 ones is not 256")
    free, total = torch.cuda.mem_get_info(device)
    return {"memory_free": (free, "B"), "memory_total": (total, "B")}


def copies(device):
    """To the GPU and back: what comes back is what went, and how fast each way is."""
    metrics = {}
    for kind in ("pageable", "pinned"):
        data = torch.arange(COPIED // 4, dtype=torch.int32)
        back = torch.zeros_like(data)
        if kind == "pinned":
            data, back = data.pin_memory(), back.pin_memory()
        there = torch.empty_like(data, device=device)
        for way, target, source in (("to_gpu", there, data), ("from_gpu", back, there)):
            target.copy_(source)  # the first one sets things up
            torch.cuda.synchronize(device)
            started = time.perf_counter()
            target.copy_(source, non_blocking=True)
            torch.cuda.synchronize(device)
            rate = COPIED / (time.perf_counter() - started) / 1e9
            metrics["%s_%s" % (kind, way)] = (rate, "GB/s")
        if not torch.equal(data, back):
            raise Wrong("data came back from the GPU changed (%s memory)" % kind)
    return metrics


def matmul(device, name, dtype):
    """A product of two matrices in one type, against the product in float64 on the CPU."""
    torch.manual_seed(2)
    left = torch.randn(SIZE, SIZE).to(dtype)
    right = torch.randn(SIZE, SIZE).to(dtype)
    wanted = left.double() @ right.double()
    use_tf32(name == "matmul-tf32")
    try:
        got = (left.to(device) @ right.to(device)).double().cpu()
    finally:
        use_tf32(False)
    worst = float((got - wanted).abs().max() / wanted.abs().max())
    return close(worst, tolerance(name), "the product")


def use_tf32(on):
    """Let matrix products and convolutions in float32 round their operands to TF32, or not."""
    torch.set_float32_matmul_precision("high" if on else "highest")
    torch.backends.cudnn.allow_tf32 = on


def tolerance(name):
    """Of a stage. Some images force TF32 on: what cannot be switched off is not wrong."""
    forced = os.environ.get("TORCH_ALLOW_TF32_CUBLAS_OVERRIDE") == "1"
    return max(TOLERANCES[name], TOLERANCES["matmul-tf32"] if forced else 0.0)


def convolution(device):
    """A convolution, which cuDNN does on the GPU."""
    torch.manual_seed(3)
    images, kernel = torch.randn(8, 16, 32, 32), torch.randn(32, 16, 3, 3)
    conv = torch.nn.functional.conv2d
    wanted = conv(images.double(), kernel.double(), padding=1)
    got = conv(images.to(device), kernel.to(device), padding=1).double().cpu()
    worst = float((got - wanted).abs().max() / wanted.abs().max())
    return close(worst, TOLERANCES["convolution"], "the convolution")


class Squares:
    """A data set: item `n` holds the square of `n`."""

    def __len__(self):
        """How many items there are."""
        return 64

    def __getitem__(self, at):
        """One of them."""
        return torch.full((256,), float(at * at))


def data_loader(device):
    """Batches made by worker processes, through pinned memory, arrive whole."""
    from torch.utils.data import DataLoader

    on_gpu = device != "cpu"
    loader = DataLoader(
        Squares(),
        batch_size=8,
        num_workers=WORKERS,
        pin_memory=on_gpu,
        worker_init_fn=die_with_parent,
    )
    total = sum(batch.to(device, non_blocking=on_gpu).sum().item() for batch in loader)
    if total != 256.0 * sum(at * at for at in range(64)):
        raise Wrong("the batches do not add up: %r" % total)
    return {"workers": (WORKERS, "")}


def memory(device, before):
    """What was allocated is given back."""
    if hasattr(torch._C, "_cuda_clearCublasWorkspaces"):
        torch._C._cuda_clearCublasWorkspaces()
    if torch.cuda.memory_allocated(device) > before:
        gc.collect()  # slow, with all that a framework loads: only for what refers to itself
    peak = torch.cuda.max_memory_reserved(device)
    torch.cuda.empty_cache()
    after = torch.cuda.memory_allocated(device)
    reserved = torch.cuda.memory_reserved(device)
    # Where the call above does not exist, cuBLAS keeps its workspace.
    if after > before + (64 << 20):
        raise RuntimeError("%d bytes were allocated before and %d after" % (before, after))
    return {
        "allocated_before": (before, "B"),
        "allocated_after": (after, "B"),
        "reserved_after": (reserved, "B"),
        "peak_reserved": (peak, "B"),
    }


def compiled(device):
    """A function compiled by `torch.compile` gives what it gives without."""
    torch.manual_seed(4)
    weights, data = torch.randn(64, 64, device=device), torch.randn(32, 64, device=device)

    def layer(inputs):
        return torch.nn.functional.gelu(inputs @ weights).sum(dim=1)

    worst = distance(torch.compile(layer)(data), layer(data))
    return close(worst, tolerance("compile"), "the compiled function")


def peer_copy(one, other):
    """From one GPU to another and back."""
    data = torch.arange(COPIED // 4, dtype=torch.int32, device=one)
    there = torch.zeros_like(data, device=other)
    there.copy_(data)
    torch.cuda.synchronize(one)
    torch.cuda.synchronize(other)
    started = time.perf_counter()
    there.copy_(data)
    torch.cuda.synchronize(one)
    torch.cuda.synchronize(other)
    rate = COPIED / (time.perf_counter() - started) / 1e9
    if not torch.equal(there.cpu(), data.cpu()):
        raise Wrong("data arrived changed")
    direct = torch.cuda.can_device_access_peer(torch.device(one), torch.device(other))
    return {"bandwidth": (rate, "GB/s"), "peer_access": (int(direct), "")}
