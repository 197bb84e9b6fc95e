"""A first training step with PyTorch, checked at every turn: `python smoke_torch.py`.

Is there a GPU, does data get there and back, are products and convolutions right, and then what
matters: model and batch to the device, forward pass, loss, backward pass, optimizer step, compared
with the same step on the CPU in float64. Seconds, and a few hundred megabytes.
"""

import copy
import gc
import os
import sys
import time
import warnings
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from smoke_stages import Stages, Wrong, close, die_with_parent, libcuda, read_settings  # noqa: E402

# Not the script's folder nor the working directory: only what every program would import.
sys.path[:] = [each for each in sys.path if each not in ("", HERE)]

SIZE = 1024
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
torch: "Any" = None


# --- the training step ----------------------------------------------------------------------------


def tiny_model():
    """Two convolutions and a linear layer, with the same weights every time."""
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.Conv2d(8, 16, 3, stride=2, padding=1),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(16 * 8 * 8, 10),
    )


def tiny_batch(count=32):
    """Images and labels, the same ones every time."""
    torch.manual_seed(1)
    return torch.randn(count, 3, 16, 16), torch.randint(0, 10, (count,))


def train_once(model, images, labels, device, dtype=None):
    """One training step: what every training loop does, once.

    Args:
        model: moved to the device here.
        images: batch, moved to the device here.
        labels: its classes.
        device: where it happens.
        dtype: type to compute in under autocast; None for that of the model.

    Returns:
        The loss; gradients and the updated weights are in the model.
    """
    model.to(device)
    images, labels = images.to(device), labels.to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    # fp16 has few exponents: the loss is scaled up so that small gradients do not vanish. bf16 has
    # as many as fp32 and needs no scaling.
    scaler = grad_scaler(device) if dtype == torch.float16 else None
    with torch.autocast(torch.device(device).type, dtype=dtype, enabled=dtype is not None):
        loss = torch.nn.functional.cross_entropy(model(images), labels)
    if scaler is None:
        loss.backward()
    else:
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
    everything_on(device, model, images, labels, loss)
    if scaler is None:
        optimizer.step()
    else:
        scaler.step(optimizer)
        scaler.update()
    return loss.detach()


def grad_scaler(device):
    """A scaler that starts low enough for this model's gradients to fit into fp16."""
    kind = torch.device(device).type
    if hasattr(torch.amp, "GradScaler"):
        return torch.amp.GradScaler(kind, init_scale=1024.0)
    return torch.cuda.amp.GradScaler(init_scale=1024.0)


def everything_on(device, model, *tensors):
    """Nothing may be left on the CPU: training would be slow there and never say so."""
    wanted = torch.device(device)
    for name, parameter in model.named_parameters():
        for what, tensor in ((name, parameter), (name + ".grad", parameter.grad)):
            if tensor is None or tensor.device != wanted:
                place = "missing" if tensor is None else "on %s" % tensor.device
                raise RuntimeError("%s is %s, not on %s" % (what, place, wanted))
    for tensor in tensors:
        if tensor.device != wanted:
            raise RuntimeError("part of the step ran on %s, not on %s" % (tensor.device, wanted))


def training_step(device, name, dtype=None):
    """The step on the device against the same step on the CPU in float64."""
    model, (images, labels) = tiny_model(), tiny_batch()
    reference = copy.deepcopy(model).double()
    expected = train_once(reference, images.double(), labels, "cpu")
    loss = train_once(model, images, labels, device, dtype)
    allowed = tolerance(name)
    metrics = {"loss": (loss.item(), ""), "reference_loss": (expected.item(), "")}
    metrics.update(close(distance(loss, expected), allowed, "the loss"))
    for (part, got), wanted in zip(model.named_parameters(), reference.parameters()):
        # Gradients add up rounding errors of many terms.
        close(distance(got.grad, wanted.grad), 3 * allowed, "the gradient of %s" % part)
        close(distance(got.detach(), wanted.detach()), allowed, "the updated %s" % part)
    return metrics


def distance(got, wanted):
    """Norm of the difference, relative to that of the reference; infinite when not all finite."""
    got, wanted = got.detach().double().cpu(), wanted.detach().double().cpu()
    if not bool(torch.isfinite(got).all()):
        return float("inf")
    return float((got - wanted).norm() / wanted.norm().clamp_min(1e-30))


def gradients(model, images, labels, device, parts=1, checkpoint=False):
    """Gradients of a batch, in parts that add up, or with activations computed twice."""
    from torch.utils.checkpoint import checkpoint as computed_again

    model.to(device)
    for some, their in zip(images.to(device).chunk(parts), labels.to(device).chunk(parts)):
        hidden = some
        if checkpoint:
            # Kept are the inputs of this half only; what it computed is computed again.
            hidden = computed_again(model[:4], hidden, use_reentrant=False)
            outputs = model[4:](hidden)
        else:
            outputs = model(hidden)
        (torch.nn.functional.cross_entropy(outputs, their) / parts).backward()
    return [parameter.grad for parameter in model.parameters()]


def same_gradients(device, name, **changes):
    """A gradient computed in another way is the same gradient."""
    images, labels = tiny_batch()
    plain = gradients(tiny_model(), images, labels, device)
    other = gradients(tiny_model(), images, labels, device, **changes)
    worst = max(distance(one, two) for one, two in zip(other, plain))
    return close(worst, tolerance(name), "the gradient")


# --- what it is made of ---------------------------------------------------------------------------


def import_torch():
    """Load PyTorch."""
    global torch  # noqa: PLW0603 - the stage is the import
    import torch


def build_facts():
    """What this build says of itself, for the rules to judge."""
    facts = {"version": str(torch.__version__), "cuda": torch.version.cuda}
    if torch.version.cuda:
        facts["gpu_available"] = bool(torch.cuda.is_available())
        try:
            facts["arches"] = list(torch.cuda.get_arch_list()) or None
        except Exception:
            facts["arches"] = None
    return facts


def find_gpus(wanted):
    """Indices of the GPUs that PyTorch sees, and of those that were asked for."""
    if not torch.cuda.is_available():
        torch.zeros(1).cuda()  # says why
        raise RuntimeError("torch.cuda.is_available() is False")
    count = torch.cuda.device_count()
    missing = [each for each in wanted or () if each >= count]
    if missing:
        raise RuntimeError(
            "GPU %s was asked for, and PyTorch sees %d" % (", ".join(map(str, missing)), count)
        )
    return list(range(count)) if wanted is None else wanted


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
        import torch

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
    gc.collect()
    if hasattr(torch._C, "_cuda_clearCublasWorkspaces"):
        torch._C._cuda_clearCublasWorkspaces()
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


# --- in order -------------------------------------------------------------------------------------


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


def one_device(stages, device, settings):
    """Everything that concerns one device."""
    on_gpu = device != "cpu"
    stages.start(device)
    stages.still_there = (lambda: torch.cuda.synchronize(device)) if on_gpu else None
    if on_gpu:
        if not stages.run("context", context, device):
            return
        before = torch.cuda.memory_allocated(device)
        stages.run("copy", copies, device)
    use_tf32(False)
    types = dtypes(device)
    for short, dtype, reason in types:
        name = "matmul-" + short
        if reason:
            stages.skip(name, reason)
        else:
            stages.run(name, matmul, device, name, dtype)
    stages.run("convolution", convolution, device)
    for short, dtype, reason in types:
        name = "training-step-" + short
        if short == "tf32":
            continue
        if reason or (short == "fp16" and not on_gpu):
            stages.skip(name, reason or "a grad scaler is for GPUs")
        else:
            stages.run(name, training_step, device, name, None if short == "fp32" else dtype)
    stages.run("checkpointing", lambda: same_gradients(device, "checkpointing", checkpoint=True))
    stages.run("accumulation", lambda: same_gradients(device, "accumulation", parts=4))
    stages.run("data-loader", data_loader, device)
    if settings["compile"]:
        stages.run("compile", compiled, device)
    if on_gpu:
        stages.run("memory", memory, device, before)


def main(argv):
    """Run the stages that were asked for."""
    # A stage's own words are what counts; a library's advice would only drown them.
    warnings.simplefilter("ignore")
    settings = read_settings(argv)
    stages = Stages("torch", settings)
    if not stages.run("import", import_torch):
        return 1
    stages.say("facts", **build_facts())
    if settings["device"] == "cpu":
        one_device(stages, "cpu", settings)
        return int(bool(stages.failed))
    if not torch.version.hip and not stages.run("libcuda", lambda: libcuda() and None):
        return 1
    found = []
    if not stages.run("find-devices", lambda: found.extend(find_gpus(settings["gpus"]))):
        return 1
    stages.say("devices", indices=found)
    for at in found:
        one_device(stages, "cuda:%d" % at, settings)
        stages.say("done", index=at)
        if stages.lost:
            return 1  # CUDA in this process is beyond repair; the next GPU gets a new process
    if settings.get("peers", True):
        for one, other in zip(found, found[1:] + found[:1]):
            if one != other:
                pair = "cuda:%d" % one, "cuda:%d" % other
                stages.start(",".join(pair))
                stages.run("peer-copy", peer_copy, *pair)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
