"""A lock in words: what its files are called, and what their heads and labels say."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from envcheck.model.plan import Lock, PlannedFramework, Stack


def framework_name(framework: PlannedFramework) -> str:
    """`torch 2.8.0+cu128`, `jax 0.7.1`."""
    tag = f"+{framework.variant}" if framework.variant else ""
    return f"{framework.name} {framework.version}{tag}"


def frameworks(stack: Stack) -> str:
    """All frameworks of a stack in one line."""
    return ", ".join(map(framework_name, stack.frameworks))


def slug(stack: Stack) -> str:
    """A name for images and environments: `torch-2.8.0-cu128`."""
    return "-".join(
        word
        for each in stack.frameworks
        for word in (each.name, each.version.replace("+", "-"), each.variant)
        if word
    )


def has_cuda(stack: Stack) -> bool:
    """Whether the stack computes on GPUs."""
    return any(each.cuda for each in stack.frameworks)


def has_torch(stack: Stack) -> bool:
    """Whether extensions of torch may be compiled for the stack."""
    return any(each.name == "torch" for each in stack.frameworks)


def cuda(stack: Stack) -> str | None:
    """CUDA release of the framework that extensions are compiled for: torch, else the first."""
    found = sorted(stack.frameworks, key=lambda each: each.name != "torch")
    return next((each.cuda for each in found if each.cuda), None)


def machine(lock: Lock) -> str:
    """Which machines a stack was planned for: `NVIDIA GeForce RTX 5090, driver 570.26 or newer`."""
    target, stack = lock.target, lock.stack
    if not has_cuda(stack):
        return "any machine, on its CPU"
    counted = {name: target.gpus.count(name) for name in target.gpus}
    gpus = [f"{count} x {name}" if count > 1 else name for name, count in counted.items()]
    if not gpus:
        gpus = [f"compute capability {arch}" for arch in target.arches]
    where = ", ".join(gpus) or "an NVIDIA GPU"
    return f"{where}, driver {stack.min_driver} or newer" if stack.min_driver else where


def labels(lock: Lock) -> tuple[tuple[str, str], ...]:
    """What an image says of the plan it was made from."""
    stack = lock.stack
    first = stack.frameworks[0]
    found = {
        "title": slug(stack),
        "description": f"{frameworks(stack)} for Python {stack.python}",
    }
    own = {
        "plan.frameworks": frameworks(stack),
        "plan.python": stack.python,
        "plan.platform": stack.platform,
        "plan.cuda": cuda(stack),
        "plan.cudnn": first.cudnn,
        "plan.nccl": first.nccl,
        "plan.min-driver": stack.min_driver,
        "plan.target": machine(lock),
        "tables": " ".join(f"{name}={date}" for name, date in sorted(lock.tables)),
    }
    return tuple(
        [(f"org.opencontainers.image.{name}", value) for name, value in found.items()]
        + [(f"io.envcheck.{name}", value) for name, value in own.items() if value]
    )
