"""What `envcheck smoke --framework torch --gpus 0` does, as a plain script: nothing is watched.

The yardstick of `benchmarks/smoke.py`. It imports torch, does the same operations with the same
sizes and the same comparisons, and prints the largest error. With `cpu` as its argument it does
what `--device cpu --distributed off` does.
"""

from __future__ import annotations

import copy
import ctypes
import sys
import time
from typing import Any

import torch
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader

COPIED = 64 << 20
SIZE = 512


class Squares:
    """A data set: item `n` holds the square of `n`."""

    def __len__(self) -> int:
        """How many items there are."""
        return 64

    def __getitem__(self, at: int) -> Any:
        """One of them."""
        return torch.full((256,), float(at * at))


def net() -> Any:
    """The model."""
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.Conv2d(8, 16, 3, stride=2, padding=1),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(16 * 8 * 8, 10),
    )


def data() -> tuple[Any, Any]:
    """The batch."""
    torch.manual_seed(1)
    return torch.randn(32, 3, 16, 16), torch.randint(0, 10, (32,))


def error(got: Any, wanted: Any) -> float:
    """Relative difference of norms."""
    got, wanted = got.detach().double().cpu(), wanted.detach().double().cpu()
    return float((got - wanted).norm() / wanted.norm())


def step(model: Any, images: Any, labels: Any, device: str, dtype: Any = None) -> Any:
    """One training step."""
    model.to(device)
    images, labels = images.to(device), labels.to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scaler = torch.amp.GradScaler("cuda", init_scale=1024.0) if dtype == torch.float16 else None
    kind = "cuda" if device.startswith("cuda") else "cpu"
    with torch.autocast(kind, dtype=dtype, enabled=dtype is not None):
        loss = torch.nn.functional.cross_entropy(model(images), labels)
    if scaler is None:
        loss.backward()
        optimizer.step()
    else:
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
    return loss.detach()


def gradients(model: Any, device: str, parts: int = 1, again: bool = False) -> list[Any]:
    """Gradients, in parts or with activations computed again."""
    images, labels = data()
    model.to(device)
    for some, their in zip(
        images.to(device).chunk(parts), labels.to(device).chunk(parts), strict=True
    ):
        hidden = checkpoint(model[:4], some, use_reentrant=False) if again else model[:4](some)
        out = model[4:](hidden)
        (torch.nn.functional.cross_entropy(out, their) / parts).backward()
    return [each.grad for each in model.parameters()]


def main(device: str = "cuda:0") -> int:
    """Do everything once."""
    on_gpu = device != "cpu"
    worst = 0.0
    if on_gpu:
        ctypes.CDLL("libcuda.so.1").cuInit(0)
        torch.cuda.set_device(device)
        torch.ones(256, device=device).sum().item()
        for pinned in (False, True):
            there_and_back(device, pinned=pinned)
    torch.backends.cudnn.allow_tf32 = False
    for precision, dtype in (
        ("highest", torch.float32),
        ("high", torch.float32),
        ("highest", torch.bfloat16),
        ("highest", torch.float16),
    ):
        if precision == "high" and not on_gpu:
            continue
        torch.set_float32_matmul_precision(precision)
        torch.manual_seed(2)
        left, right = torch.randn(SIZE, SIZE).to(dtype), torch.randn(SIZE, SIZE).to(dtype)
        wanted = left.double() @ right.double()
        got = (left.to(device) @ right.to(device)).double().cpu()
        worst = max(worst, float((got - wanted).abs().max() / wanted.abs().max()))
    torch.set_float32_matmul_precision("highest")
    torch.manual_seed(3)
    images, kernel = torch.randn(8, 16, 32, 32), torch.randn(32, 16, 3, 3)
    conv = torch.nn.functional.conv2d
    wanted = conv(images.double(), kernel.double(), padding=1)
    worst = max(worst, error(conv(images.to(device), kernel.to(device), padding=1), wanted))
    for dtype in (None, torch.bfloat16, torch.float16) if on_gpu else (None, torch.bfloat16):
        model, (images, labels) = net(), data()
        reference = copy.deepcopy(model).double()
        expected = step(reference, images.double(), labels, "cpu")
        worst = max(worst, error(step(model, images, labels, device, dtype), expected))
        for one, two in zip(model.parameters(), reference.parameters(), strict=True):
            worst = max(worst, error(one.grad, two.grad), error(one, two))
    for parts, again in ((1, True), (4, False)):
        plain = gradients(net(), device)
        for one, two in zip(gradients(net(), device, parts, again), plain, strict=True):
            worst = max(worst, error(one, two))
    loader: Any = DataLoader(Squares(), batch_size=8, num_workers=2, pin_memory=on_gpu)  # type: ignore[arg-type,unused-ignore]
    total = sum(batch.to(device, non_blocking=on_gpu).sum().item() for batch in loader)
    if on_gpu:
        torch.cuda.empty_cache()
    print(f"largest error {worst:.3g}, data set {total:g}")
    return 0


def there_and_back(device: str, *, pinned: bool) -> None:
    """Copies each way, timed."""
    numbers = torch.arange(COPIED // 4, dtype=torch.int32)
    back = torch.zeros_like(numbers)
    if pinned:
        numbers, back = numbers.pin_memory(), back.pin_memory()
    there = torch.empty_like(numbers, device=device)
    for target, source in ((there, numbers), (back, there)):
        target.copy_(source)
        torch.cuda.synchronize()
        started = time.perf_counter()
        target.copy_(source, non_blocking=True)
        torch.cuda.synchronize()
        time.perf_counter() - started
    if not torch.equal(numbers, back):
        raise SystemExit("copies differ")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
