"""What a small network computes, written out in NumPy and float64: the answer to compare with.

For the frameworks that bring NumPy along. Two dense layers and a cross-entropy loss, with the
backward pass by hand, and a convolution; images are (batch, height, width, channels).
"""

import numpy

RATE = 0.1
"""Learning rate of the one step."""


def weights():
    """Weights of the two layers, in float64, the same ones every time."""
    draw = numpy.random.RandomState(0)
    return {
        "w1": draw.randn(64, 32) / 8.0,
        "b1": draw.randn(32) / 8.0,
        "w2": draw.randn(32, 10) / 6.0,
        "b2": draw.randn(10) / 6.0,
    }


def batch():
    """Inputs and labels, the same ones every time."""
    draw = numpy.random.RandomState(1)
    return draw.randn(32, 64), draw.randint(0, 10, 32)


def step(w, inputs, labels):
    """Loss, gradients and updated weights of one step of gradient descent."""
    count = len(labels)
    before = inputs @ w["w1"] + w["b1"]
    hidden = numpy.maximum(before, 0.0)
    scores = hidden @ w["w2"] + w["b2"]
    scores = scores - scores.max(axis=1, keepdims=True)
    logs = scores - numpy.log(numpy.exp(scores).sum(axis=1, keepdims=True))
    loss = -logs[numpy.arange(count), labels].mean()
    # Backwards: the loss's derivative by the scores is what was predicted minus what is true.
    slope = numpy.exp(logs)
    slope[numpy.arange(count), labels] -= 1.0
    slope /= count
    below = (slope @ w["w2"].T) * (before > 0.0)
    gradients = {
        "w1": inputs.T @ below,
        "b1": below.sum(axis=0),
        "w2": hidden.T @ slope,
        "b2": slope.sum(axis=0),
    }
    return loss, gradients, {name: w[name] - RATE * gradients[name] for name in w}


def images():
    """Images and the kernel of a convolution."""
    draw = numpy.random.RandomState(2)
    return draw.randn(4, 16, 16, 8), draw.randn(3, 3, 8, 16)


def convolution(pictures, kernel):
    """Convolution with the same size out as in, borders padded with zeros."""
    batch_size, height, width, _ = pictures.shape
    padded = numpy.pad(pictures, ((0, 0), (1, 1), (1, 1), (0, 0)))
    out = numpy.zeros((batch_size, height, width, kernel.shape[3]))
    for row in range(3):
        for column in range(3):
            window = padded[:, row : row + height, column : column + width, :]
            out += window @ kernel[row, column]
    return out


def matrices(size, inner):
    """Two matrices whose product is square; each of its elements is a sum of `inner` terms."""
    draw = numpy.random.RandomState(3)
    return draw.randn(size, inner), draw.randn(inner, size)


def largest_error(got, wanted):
    """Largest difference, relative to the largest element; infinite when not all are finite."""
    got = numpy.asarray(got).astype(numpy.float64)
    if not numpy.isfinite(got).all():
        return float("inf")
    return float(numpy.abs(got - wanted).max() / numpy.abs(wanted).max())


def distance(got, wanted):
    """Norm of the difference, relative to that of the reference; infinite when not all finite."""
    got = numpy.asarray(got).astype(numpy.float64)
    if not numpy.isfinite(got).all():
        return float("inf")
    return float(numpy.linalg.norm(got - wanted) / numpy.linalg.norm(wanted))
