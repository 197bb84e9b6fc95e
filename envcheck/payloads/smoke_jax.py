"""A first training step with JAX, checked at every turn: `python smoke_jax.py`.

Is there a GPU, does data get there and back, are products and convolutions right, and then a
training step on it - forward, loss, gradients, update - against the same step in float64.
"""

import functools
import os
import sys
import time
import warnings
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
# Last, and the working directory not at all: nothing here may hide what other programs import.
sys.path[:] = [each for each in sys.path if each not in ("", HERE)] + [HERE]
from smoke_stages import Stages, Wrong, close, leave, libcuda, read_settings, wait_if_held  # noqa: E402

# JAX would take three quarters of each GPU's memory at once.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

SIZE, INNER = 64, 512
"""Rows and columns of the product, and terms of each sum. XLA tries many kernels on a product and
compiles each of them; it picks smaller and simpler ones for a small product."""
COPIED = 64 << 20
"""Bytes that are copied each way for the bandwidth."""
TOLERANCES = {
    # Largest error of a product, relative to its largest element.
    "matmul-fp32": 1e-5,
    "matmul-tf32": 3e-3,
    "matmul-bf16": 1e-2,
    "matmul-fp16": 5e-3,
    "convolution": 1e-5,
    # Error of loss, gradients and updated weights, each relative to its own norm.
    "training-step-fp32": 1e-4,
    "training-step-bf16": 5e-2,
    "checkpointing": 1e-4,
    "accumulation": 1e-4,
}
GPU_PLATFORMS = ("gpu", "cuda", "rocm")
jax: "Any" = None
reference: "Any" = None


# --- the training step ----------------------------------------------------------------------------


def loss_of(weights, inputs, labels):
    """Forward pass of two dense layers, and the cross-entropy loss."""
    import jax.numpy as np

    hidden = jax.nn.relu(inputs @ weights["w1"] + weights["b1"])
    scores = (hidden @ weights["w2"] + weights["b2"]).astype(np.float32)
    picked = jax.nn.log_softmax(scores)[np.arange(len(labels)), labels]
    return -picked.mean()


def put(device, values, dtype):
    """Numbers on the device, in a type; a dictionary of them stays one."""
    import numpy

    if isinstance(values, dict):
        return {name: put(device, each, dtype) for name, each in values.items()}
    # Converted before they go: on the device it would be one more kernel to compile.
    return jax.device_put(numpy.asarray(values).astype(jax.numpy.dtype(dtype)), device)


def step(weights, inputs, labels):
    """A training step: loss, gradients, and the weights that it leads to."""
    loss, gradients = jax.value_and_grad(loss_of)(weights, inputs, labels)
    return loss, gradients, {key: weights[key] - reference.RATE * gradients[key] for key in weights}


def training_step(device, name, dtype):
    """One step on the device against the same step in float64."""
    weights, (inputs, labels) = reference.weights(), reference.batch()
    expected, slopes, updated = reference.step(weights, inputs, labels)
    there = put(device, weights, dtype), put(device, inputs, dtype), put(device, labels, "int32")
    with jax.default_matmul_precision("highest"):
        loss, gradients, after = compiled(step)(*there)
    everything_on(device, loss, *gradients.values(), *after.values())
    tolerance = TOLERANCES[name]
    metrics = {"loss": (float(loss), ""), "reference_loss": (expected, "")}
    metrics.update(close(abs(float(loss) / expected - 1.0), tolerance, "the loss"))
    for part in weights:
        # Gradients add up rounding errors of many terms.
        error = reference.distance(gradients[part], slopes[part])
        close(error, 3 * tolerance, "the gradient of %s" % part)
        error = reference.distance(after[part], updated[part])
        close(error, tolerance, "the updated %s" % part)
    return metrics


def everything_on(device, *arrays):
    """Nothing may have been computed elsewhere: it would be slow and never say so."""
    for array in arrays:
        if array.devices() != {device}:
            raise RuntimeError("part of the step ran on %s, not on %s" % (array.devices(), device))


def same_gradients(device, name, gradients_of):
    """A gradient computed in another way is the same gradient."""
    weights = put(device, reference.weights(), "float32")
    inputs, labels = reference.batch()
    inputs, labels = put(device, inputs, "float32"), put(device, labels, "int32")
    with jax.default_matmul_precision("highest"):
        _loss, plain, _after = compiled(step)(weights, inputs, labels)
        other = compiled(gradients_of)(weights, inputs, labels)
    worst = max(reference.distance(other[part], plain[part]) for part in plain)
    return close(worst, TOLERANCES[name], "the gradient")


def computed_again(weights, inputs, labels):
    """Gradients with activations that are not kept but computed again."""
    return jax.grad(jax.checkpoint(loss_of))(weights, inputs, labels)


def added_up(weights, inputs, labels, parts=4):
    """Gradients of a batch in parts that add up."""

    def add(total, batch):
        gradients = jax.grad(loss_of)(weights, *batch)
        return {part: total[part] + gradients[part] / parts for part in total}, None

    nothing = {part: jax.numpy.zeros_like(each) for part, each in weights.items()}
    batches = [each.reshape(parts, -1, *each.shape[1:]) for each in (inputs, labels)]
    return jax.lax.scan(add, nothing, batches)[0]


@functools.lru_cache(maxsize=None)
def compiled(function):
    """A function for the device; what was compiled before, for the same shapes, is not again."""
    return jax.jit(function)


# --- what it is made of ---------------------------------------------------------------------------


def import_jax():
    """Load JAX, and NumPy which it brings along."""
    global jax, reference  # noqa: PLW0603 - the stage is the import
    import jax
    import smoke_reference as reference


def find_devices(kind, wanted):
    """Devices that JAX computes on, and of those the ones that were asked for."""
    if kind == "cpu":
        return jax.devices("cpu")[:1]
    found = [each for each in jax.devices() if each.platform in GPU_PLATFORMS]
    if not found:
        names = ", ".join(sorted({each.platform for each in jax.devices()}))
        raise RuntimeError("JAX computes on the %s: it found no GPU that it can use" % names)
    missing = [each for each in wanted or () if each >= len(found)]
    if missing:
        raise RuntimeError(
            "GPU %s was asked for, and JAX sees %d" % (", ".join(map(str, missing)), len(found))
        )
    return found if wanted is None else [found[at] for at in wanted]


def context(device):
    """The first allocation and the first kernel on a device."""
    import jax.numpy as np

    if float(put(device, [1.0] * 256, np.float32).sum()) != 256.0:
        raise Wrong("the sum of 256 ones is not 256")


def copies(device):
    """To the device and back: what comes back is what went, and how fast each way is."""
    import numpy

    data = numpy.arange(COPIED // 4, dtype=numpy.int32)
    jax.device_put(data, device).block_until_ready()  # the first one sets things up
    started = time.perf_counter()
    there = jax.device_put(data, device).block_until_ready()
    to_gpu = COPIED / (time.perf_counter() - started) / 1e9
    started = time.perf_counter()
    back = numpy.asarray(there)
    from_gpu = COPIED / (time.perf_counter() - started) / 1e9
    if not (back == data).all():
        raise Wrong("data came back from the device changed")
    return {"pageable_to_gpu": (to_gpu, "GB/s"), "pageable_from_gpu": (from_gpu, "GB/s")}


def matmul(device, name, dtype):
    """A product of two matrices in one type, against the product in float64."""
    left, right = (put(device, each, dtype) for each in reference.matrices(SIZE, INNER))
    wanted = as_double(left) @ as_double(right)
    with jax.default_matmul_precision("default" if name == "matmul-tf32" else "highest"):
        got = as_double(left @ right)
    return close(reference.largest_error(got, wanted), TOLERANCES[name], "the product")


def as_double(array):
    """The numbers of an array on the host, in float64."""
    import numpy

    return numpy.asarray(array).astype(numpy.float64)


def convolution(device):
    """A convolution, which cuDNN does on the GPU."""
    pictures, kernel = reference.images()
    wanted = reference.convolution(pictures, kernel)
    got = jax.lax.conv_general_dilated(
        put(device, pictures, "float32"),
        put(device, kernel, "float32"),
        window_strides=(1, 1),
        padding="SAME",
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
        precision="highest",
    )
    return close(reference.largest_error(got, wanted), TOLERANCES["convolution"], "it")


def memory(device):
    """Most memory that was in use at a time, and what still is."""
    import gc

    gc.collect()
    found = device.memory_stats() or {}
    names = {"peak_bytes_in_use": "peak_allocated", "bytes_in_use": "allocated_after"}
    return {short: (found[name], "B") for name, short in names.items() if name in found}


# --- in order -------------------------------------------------------------------------------------


def one_device(stages, device, on_gpu):
    """Everything that concerns one device."""
    if not stages.run("context", context, device):
        return
    if on_gpu:
        stages.still_there = lambda: context(device)
        stages.run("copy", copies, device)
    types = [("fp32", "float32"), ("bf16", "bfloat16"), ("fp16", "float16")]
    if on_gpu:
        types.insert(1, ("tf32", "float32"))
    capability = float(getattr(device, "compute_capability", 0) or 0)
    for short, dtype in types:
        name = "matmul-" + short
        if on_gpu and short in ("tf32", "bf16") and capability < 8.0:
            stages.skip(name, "compute capability %s has none" % capability)
        else:
            stages.run(name, matmul, device, name, dtype)
    stages.run("convolution", convolution, device)
    stages.run("training-step-fp32", training_step, device, "training-step-fp32", "float32")
    if on_gpu and capability < 8.0:
        stages.skip("training-step-bf16", "compute capability %s has none" % capability)
    else:
        stages.run("training-step-bf16", training_step, device, "training-step-bf16", "bfloat16")
    stages.run("checkpointing", same_gradients, device, "checkpointing", computed_again)
    stages.run("accumulation", same_gradients, device, "accumulation", added_up)
    if on_gpu:
        stages.run("memory", memory, device)


def main(argv):
    """Run the stages that were asked for."""
    warnings.simplefilter("ignore")
    settings = read_settings(argv)
    on_gpu = settings["device"] == "cuda"
    if not on_gpu:
        # Or it would start CUDA too, which here is nobody's wish.
        os.environ["JAX_PLATFORMS"] = "cpu"
    stages = Stages("jax", settings)
    if not stages.run("import", import_jax):
        return 1
    wait_if_held(settings)
    stages.say("facts", version=str(jax.__version__))
    if on_gpu and not stages.run("libcuda", lambda: libcuda() and None):
        return 1
    found = []
    wanted = settings["gpus"]
    if not stages.run(
        "find-devices", lambda: found.extend(find_devices(settings["device"], wanted))
    ):
        stages.say("facts", gpu_available=False)
        return 1
    indices = wanted if wanted is not None else list(range(len(found)))
    if on_gpu:
        stages.say("facts", gpu_available=True)
        stages.say("devices", indices=indices)
    for at, device in zip(indices, found):
        stages.start("cuda:%d" % at if on_gpu else "cpu")
        one_device(stages, device, on_gpu)
        stages.say("done", index=at)
        if stages.lost:
            return 1
    return 0


if __name__ == "__main__":
    leave(main(sys.argv))
