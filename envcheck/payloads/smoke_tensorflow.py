"""A first training step with TensorFlow, checked at every turn: `python smoke_tensorflow.py`.

Is there a GPU, does data get there and back, are products and convolutions right, and then a
training step on it - forward, loss, gradients, update - against the same step in float64.
"""

import os
import sys
import time
import warnings
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
# Last, and the working directory not at all: nothing here may hide what other programs import.
sys.path[:] = [each for each in sys.path if each not in ("", HERE)] + [HERE]
from smoke_stages import Stages, Wrong, close, leave, libcuda, read_settings, wait_if_held  # noqa: E402

# TensorFlow would take all of each GPU's memory at once.
os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")

SIZE = 512
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
}
tf: "Any" = None
reference: "Any" = None


# --- the training step ----------------------------------------------------------------------------


def loss_of(weights, inputs, labels):
    """Forward pass of two dense layers, and the cross-entropy loss."""
    hidden = tf.nn.relu(inputs @ weights["w1"] + weights["b1"])
    scores = tf.cast(hidden @ weights["w2"] + weights["b2"], tf.float32)
    return tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=scores)
    )


def training_step(device, name, dtype):
    """One step on the device against the same step in float64."""
    start, (inputs, labels) = reference.weights(), reference.batch()
    expected, slopes, updated = reference.step(start, inputs, labels)
    with tf.device(device):
        weights = {key: tf.Variable(tf.cast(each, dtype)) for key, each in start.items()}
        with tf.GradientTape() as tape:
            loss = loss_of(weights, tf.cast(inputs, dtype), tf.constant(labels))
        gradients = tape.gradient(loss, weights)
        everything_on(device, loss, *gradients.values(), *weights.values())
        for part, variable in weights.items():
            variable.assign_sub(tf.cast(reference.RATE, dtype) * gradients[part])
    tolerance = TOLERANCES[name]
    metrics = {"loss": (float(loss), ""), "reference_loss": (expected, "")}
    metrics.update(close(abs(float(loss) / expected - 1.0), tolerance, "the loss"))
    for part, variable in weights.items():
        # Gradients add up rounding errors of many terms.
        error = reference.distance(as_double(gradients[part]), slopes[part])
        close(error, 3 * tolerance, "the gradient of %s" % part)
        error = reference.distance(as_double(variable), updated[part])
        close(error, tolerance, "the updated %s" % part)
    return metrics


def everything_on(device, *tensors):
    """Nothing may have been computed elsewhere: it would be slow and never say so."""
    wanted = device.lower().lstrip("/")
    for tensor in tensors:
        if not tensor.device.lower().endswith(wanted):
            raise RuntimeError("part of the step ran on %s, not on %s" % (tensor.device, device))


# --- what it is made of ---------------------------------------------------------------------------


def import_tensorflow():
    """Load TensorFlow, and NumPy which it brings along."""
    global tf, reference  # noqa: PLW0603 - the stage is the import
    import smoke_reference as reference
    import tensorflow as tf


def find_devices(kind, wanted):
    """Indices of the GPUs that TensorFlow sees, and of those the ones that were asked for."""
    if kind == "cpu":
        return [0]
    found = tf.config.list_physical_devices("GPU")
    if not found:
        built = "" if tf.test.is_built_with_cuda() else ": this build has no CUDA"
        raise RuntimeError("TensorFlow computes on the CPU" + built)
    missing = [each for each in wanted or () if each >= len(found)]
    if missing:
        raise RuntimeError(
            "GPU %s was asked for, and TensorFlow sees %d"
            % (", ".join(map(str, missing)), len(found))
        )
    return list(range(len(found))) if wanted is None else list(wanted)


def context(device):
    """The first allocation and the first kernel on a device."""
    with tf.device(device):
        if float(tf.reduce_sum(tf.ones(256))) != 256.0:
            raise Wrong("the sum of 256 ones is not 256")


def copies(device):
    """To the GPU and back: what comes back is what went, and how fast each way is."""
    import numpy

    data = numpy.arange(COPIED // 4, dtype=numpy.float32) % 1000
    with tf.device(device):
        tf.identity(tf.constant(data)).numpy()  # the first one sets things up
        started = time.perf_counter()
        there = tf.identity(tf.constant(data))
        float(there[-1])
        to_gpu = COPIED / (time.perf_counter() - started) / 1e9
        started = time.perf_counter()
        back = there.numpy()
        from_gpu = COPIED / (time.perf_counter() - started) / 1e9
    if not (back == data).all():
        raise Wrong("data came back from the GPU changed")
    return {"pageable_to_gpu": (to_gpu, "GB/s"), "pageable_from_gpu": (from_gpu, "GB/s")}


def matmul(device, name, dtype):
    """A product of two matrices in one type, against the product in float64."""
    use_tf32(name == "matmul-tf32")
    try:
        with tf.device(device):
            left, right = (tf.cast(each, dtype) for each in reference.matrices(SIZE, SIZE))
            got = as_double(left @ right)
    finally:
        use_tf32(False)
    wanted = as_double(left) @ as_double(right)
    return close(reference.largest_error(got, wanted), TOLERANCES[name], "the product")


def use_tf32(on):
    """Let products and convolutions in float32 round their operands to TF32, or not."""
    tf.config.experimental.enable_tensor_float_32_execution(on)


def as_double(tensor):
    """The numbers of a tensor on the host, in float64."""
    return tf.cast(tensor, tf.float64).numpy()


def convolution(device):
    """A convolution, which cuDNN does on the GPU."""
    pictures, kernel = reference.images()
    wanted = reference.convolution(pictures, kernel)
    with tf.device(device):
        got = tf.nn.conv2d(
            tf.cast(pictures, tf.float32), tf.cast(kernel, tf.float32), strides=1, padding="SAME"
        )
    error = reference.largest_error(as_double(got), wanted)
    return close(error, TOLERANCES["convolution"], "the convolution")


def memory(at):
    """Most memory that was in use at a time, and what still is."""
    import gc

    gc.collect()
    info = tf.config.experimental.get_memory_info("GPU:%d" % at)
    return {"peak_allocated": (info["peak"], "B"), "allocated_after": (info["current"], "B")}


# --- in order -------------------------------------------------------------------------------------


def capability_of(at):
    """Compute capability of a GPU; the highest where TensorFlow does not say."""
    details = tf.config.experimental.get_device_details(tf.config.list_physical_devices("GPU")[at])
    return tuple(details.get("compute_capability") or (99, 0))


def one_device(stages, at, on_gpu):
    """Everything that concerns one device."""
    device = "/GPU:%d" % at if on_gpu else "/CPU:0"
    if not stages.run("context", context, device):
        return
    if on_gpu:
        stages.still_there = lambda: context(device)
        stages.run("copy", copies, device)
    use_tf32(False)
    old = on_gpu and capability_of(at) < (8, 0)
    for name, dtype in (
        ("matmul-fp32", "float32"),
        ("matmul-tf32", "float32"),
        ("matmul-bf16", "bfloat16"),
        ("matmul-fp16", "float16"),
    ):
        if name == "matmul-tf32" and not on_gpu:
            stages.skip(name, "for GPUs")
        elif old and name in ("matmul-tf32", "matmul-bf16"):
            stages.skip(name, "compute capability %d.%d has none" % capability_of(at))
        else:
            stages.run(name, matmul, device, name, dtype)
    stages.run("convolution", convolution, device)
    stages.run("training-step-fp32", training_step, device, "training-step-fp32", "float32")
    if old:
        stages.skip("training-step-bf16", "compute capability %d.%d has none" % capability_of(at))
    else:
        stages.run("training-step-bf16", training_step, device, "training-step-bf16", "bfloat16")
    if on_gpu:
        stages.run("memory", memory, at)


def main(argv):
    """Run the stages that were asked for."""
    warnings.simplefilter("ignore")
    settings = read_settings(argv)
    on_gpu = settings["device"] == "cuda"
    if not on_gpu:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    stages = Stages("tensorflow", settings)
    if not stages.run("import", import_tensorflow):
        return 1
    wait_if_held(settings)
    stages.say("facts", version=str(tf.__version__))
    if on_gpu and not stages.run("libcuda", lambda: libcuda() and None):
        return 1
    found: "list[int]" = []
    wanted = settings["gpus"]
    if not stages.run(
        "find-devices", lambda: found.extend(find_devices(settings["device"], wanted))
    ):
        stages.say("facts", gpu_available=False)
        return 1
    if on_gpu:
        stages.say("facts", gpu_available=True)
        stages.say("devices", indices=found)
    for at in found:
        stages.start("cuda:%d" % at if on_gpu else "cpu")
        one_device(stages, at, on_gpu)
        stages.say("done", index=at)
        if stages.lost:
            return 1
    return 0


if __name__ == "__main__":
    leave(main(sys.argv))
