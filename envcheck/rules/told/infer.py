"""Findings that no message names, and that circumstances in a text show together."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from envcheck.matrix.schema import SymptomRow
    from envcheck.model.symptom import Symptom
    from envcheck.rules.told.heard import Heard

    Pairs = tuple[tuple[Symptom, SymptomRow], ...]


def jetson_without_cuda(heard: Heard) -> Pairs:
    """torch on a Jetson that sees no GPU: a build that is not for its GPU."""
    torch = heard.snapshot.env.framework("torch")
    decided = torch is not None and (torch.cpu_only is not None or torch.gpu_available)
    unseen = _pairs(heard, "cuda-not-available")
    return unseen + _pairs(heard, "on-jetson") if heard.jetson() and unseen and not decided else ()


def hidden(heard: Heard) -> Pairs:
    """CUDA_VISIBLE_DEVICES hides every GPU, and no GPU is seen."""
    unseen = _pairs(heard, "cuda-not-available", "tensorflow-sees-no-gpu")
    return unseen + _pairs(heard, "visible-devices-set") if heard.hides_gpus() and unseen else ()


def unreachable_gpus(heard: Heard) -> Pairs:
    """A container was started without GPUs, and no GPU is seen."""
    unseen = _pairs(heard, "cuda-not-available", "tensorflow-sees-no-gpu")
    started = _pairs(heard, "docker-run-without-gpus")
    return unseen + started if heard.container_without_gpus() and unseen else ()


def _pairs(heard: Heard, *names: str) -> Pairs:
    return tuple((symptom, row) for symptom, row in heard.messages if row.name in names)


INFERRED: dict[str, Callable[[Heard], Pairs]] = {
    "framework-cpu-build": jetson_without_cuda,
    "cuda-visible-devices-invalid": hidden,
    "container-without-gpu": unreachable_gpus,
}
"""What circumstances show, by finding."""
