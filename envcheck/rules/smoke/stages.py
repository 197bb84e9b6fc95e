"""Stages of the smoke test that failed, grouped and in words."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from envcheck.model.finding import Evidence

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from envcheck.model.smoke import Stage
    from envcheck.model.snapshot import Snapshot

OUT_OF_MEMORY = re.compile(
    r"out of memory|OUT_OF_MEMORY|RESOURCE_EXHAUSTED|ALLOC_FAILED|failed to allocate", re.I
)
"""What drivers and frameworks say when a GPU's memory is used up."""

COLLECTIVE = frozenset({"ddp-init", "all-reduce", "ddp-step", "ddp-end"})
"""Stages that several processes do together."""

WITHOUT_P2P = "all-reduce-without-p2p"

_LINES = 6
"""Lines of output that a finding shows; the snapshot has more."""


def ran(snapshot: Snapshot) -> bool:
    """Whether there was a smoke test."""
    return snapshot.smoke is not None and bool(snapshot.smoke.stages)


def failed(snapshot: Snapshot, *outcomes: str) -> tuple[Stage, ...]:
    """Stages with one of these outcomes; without any, those that neither worked nor were left out.

    What an experiment after a failure came to is no failure of its own.
    """
    if snapshot.smoke is None:
        return ()
    return tuple(
        each
        for each in snapshot.smoke.stages
        if each.name != WITHOUT_P2P
        and (each.outcome in outcomes if outcomes else each.outcome not in {"ok", "skipped"})
    )


def by_framework(stages: Iterable[Stage]) -> dict[str, tuple[Stage, ...]]:
    """Stages of each framework, in order."""
    found: dict[str, tuple[Stage, ...]] = {}
    for each in stages:
        found[each.framework] = (*found.get(each.framework, ()), each)
    return found


def place(stages: Collection[Stage]) -> str:
    """The devices of stages: `cuda:0, cuda:1`."""
    return ", ".join(dict.fromkeys(name for each in stages for name in each.device.split(",")))


def title(framework: str) -> str:
    """A framework's name at the beginning of a sentence; the driver alone is CUDA."""
    return "CUDA" if framework == "cuda" else framework


def evidence(stages: Collection[Stage]) -> tuple[Evidence, ...]:
    """What each stage said, and the last lines of the first one's output."""
    first = next(iter(stages))
    return (
        *(
            Evidence(
                label=f"{each.name} on {each.device}",
                value=each.detail or each.outcome,
                via="smoke test",
            )
            for each in list(stages)[:12]
        ),
        *(
            Evidence(label="output", value=line, via=f"smoke test, {first.name}")
            for line in first.output[-_LINES:]
        ),
    )


def again(stage: Stage, *more: str) -> str:
    """The command that runs the stages of one framework again."""
    words = ["envcheck", "smoke", "--framework", stage.framework]
    if stage.device == "cpu":
        words += ["--device", "cpu"]
    numbers = re.findall(r"cuda:(\d+)", stage.device)
    if numbers:
        words += ["--gpus", ",".join(numbers)]
    return " ".join((*words, *more))
