"""A first training step with PyTorch, checked at every turn: `python smoke_torch.py`.

Is there a GPU, does data get there and back, are products and convolutions right, and then what
matters: model and batch to the device, forward pass, loss, backward pass, optimizer step, compared
with the same step on the CPU in float64. Seconds, and a few hundred megabytes.
"""

import copy
import os
import sys
import warnings
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
# Last, and the working directory not at all: nothing here may hide what other programs import.
sys.path[:] = [each for each in sys.path if each not in ("", HERE)] + [HERE]
from smoke_stages import Stages, close, leave, libcuda, read_settings, wait_if_held  # noqa: E402

torch: "Any" = None
checks: "Any" = None


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
    allowed = checks.tolerance(name)
    metrics = {"loss": (loss.item(), ""), "reference_loss": (expected.item(), "")}
    metrics.update(close(checks.distance(loss, expected), allowed, "the loss"))
    for (part, got), wanted in zip(model.named_parameters(), reference.parameters()):
        # Gradients add up rounding errors of many terms.
        close(checks.distance(got.grad, wanted.grad), 3 * allowed, "the gradient of %s" % part)
        close(checks.distance(got.detach(), wanted.detach()), allowed, "the updated %s" % part)
    return metrics


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
    worst = max(checks.distance(one, two) for one, two in zip(other, plain))
    return close(worst, checks.tolerance(name), "the gradient")


# --- what it is made of ---------------------------------------------------------------------------


def import_torch():
    """Load PyTorch, and what is written with it."""
    global torch, checks  # noqa: PLW0603 - the stage is the import
    import smoke_torch_checks as checks
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


# --- in order -------------------------------------------------------------------------------------


def one_device(stages, device, settings):
    """Everything that concerns one device."""
    on_gpu = device != "cpu"
    stages.start(device)
    stages.still_there = (lambda: torch.cuda.synchronize(device)) if on_gpu else None
    if on_gpu:
        if not stages.run("context", checks.context, device):
            return
        before = torch.cuda.memory_allocated(device)
        stages.run("copy", checks.copies, device)
    checks.use_tf32(False)
    types = checks.dtypes(device)
    for short, dtype, reason in types:
        name = "matmul-" + short
        if reason:
            stages.skip(name, reason)
        else:
            stages.run(name, checks.matmul, device, name, dtype)
    stages.run("convolution", checks.convolution, device)
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
    stages.run("data-loader", checks.data_loader, device)
    if settings["compile"]:
        stages.run("compile", checks.compiled, device)
    if on_gpu:
        stages.run("memory", checks.memory, device, before)


def main(argv):
    """Run the stages that were asked for."""
    # A stage's own words are what counts; a library's advice would only drown them.
    warnings.simplefilter("ignore")
    settings = read_settings(argv)
    stages = Stages("torch", settings)
    if not stages.run("import", import_torch):
        return 1
    wait_if_held(settings)
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
                stages.run("peer-copy", checks.peer_copy, *pair)
    return 0


if __name__ == "__main__":
    leave(main(sys.argv))
