"""The smoke test as a whole: which children run, in which order, and what came of it."""

from __future__ import annotations

import dataclasses
import json
import time
from typing import TYPE_CHECKING, Any, Literal

from envcheck.model.base import model
from envcheck.model.smoke import Smoke, Stage
from envcheck.paths import payload
from envcheck.smoke.child import Child
from envcheck.smoke.tracker import Ranks, Tracker

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Progress = Callable[[str], None]

FRAMEWORKS = ("torch", "jax", "tensorflow", "cuda")
"""What can be run; `cuda` is the driver's library alone."""

STAGE_TIMEOUT = 120.0
"""Seconds that a stage may take before it counts as hanging: loading a framework from a cold
network disk is slow, and so is a first start of CUDA on a machine with many GPUs."""

_MOST_PROCESSES = 64
_CPU_RANKS = 2
"""Processes of the distributed part where there is no GPU to give to each."""

_CHANGES = {
    # None of them takes all of the GPU's memory at once, as two do otherwise.
    "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
    "TF_FORCE_GPU_ALLOW_GROWTH": "true",
    # Nothing is changed in the environment that is tried.
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONUNBUFFERED": "1",
}
_DEFAULTS = {
    "TF_CPP_MIN_LOG_LEVEL": "1",
    "NCCL_DEBUG": "INFO",
    # torchrun sets it, with a warning, where it is not set.
    "OMP_NUM_THREADS": "1",
}
"""For the distributed part, unless the user set them."""


@model
class Request:
    """What to run.

    Attributes:
        device: `cuda` or `cpu`.
        frameworks: names out of `FRAMEWORKS`, in order.
        gpus: indices as the frameworks count them, None for all.
        interpreter: Python of the environment, None when it has none that starts.
        own: envcheck's own Python, for what needs no environment.
        reason: why there is no interpreter.
        timeout: seconds that a stage may take.
        compile: try `torch.compile` too.
        distributed: run over several processes where there are several GPUs.
        processes: processes on this machine, None for one per GPU.
        launcher: arguments for torchrun; with any, the distributed part runs even with one process.
    """

    device: Literal["cuda", "cpu"] = "cuda"
    frameworks: tuple[str, ...]
    gpus: tuple[int, ...] | None = None
    interpreter: str | None = None
    own: str
    reason: str = ""
    timeout: float = STAGE_TIMEOUT
    compile: bool = False
    distributed: bool = True
    processes: int | None = None
    launcher: tuple[str, ...] = ()


@model
class Said:
    """What a framework said about itself on the way."""

    framework: str
    gpu_available: bool | None = None
    arches: tuple[str, ...] | None = None
    error: str | None = None
    """Why importing it failed."""


@model
class Outcome:
    """What came of a run."""

    smoke: Smoke
    said: tuple[Said, ...] = ()


def run_smoke(
    request: Request,
    variables: Mapping[str, str],
    progress: Progress = lambda _text: None,
    early: Child | None = None,
) -> Outcome:
    """Run the smoke test.

    Args:
        request: what to run.
        variables: environment of the user's programs; children see what those would see.
        progress: told what begins.
        early: what `start_early` gave; it is closed here if it is not what is to run first.

    Returns:
        All stages, in order. Whatever happens to a child is a stage's outcome, never an exception.
    """
    started = time.monotonic()
    if early is not None:
        first = request.frameworks[:1]
        if first and early.argv == _argv(first[0], request, request.gpus, held=True):
            started = early.started
        else:
            early.close()
            early = None
    stages: list[Stage] = []
    said: list[Said] = []
    for name in request.frameworks:
        found, facts, devices = _framework(name, request, variables, progress, early)
        early = None
        stages += found
        said.append(facts)
        if name == "torch":
            stages += _distributed(request, variables, found, devices, progress)
    smoke = Smoke(device=request.device, stages=tuple(stages), seconds=time.monotonic() - started)
    return Outcome(smoke=smoke, said=tuple(said))


def start_early(request: Request, variables: Mapping[str, str]) -> Child | None:
    """Start the child of the first framework, which loads it and then waits for `run_smoke`.

    Loading a framework takes seconds and touches no GPU; meanwhile the machine can be looked at.

    Args:
        request: what will be run; more about it may turn out until then.
        variables: as for `run_smoke`.

    Returns:
        The child, for the caller to close in the end; None where nothing is gained.
    """
    name = next(iter(request.frameworks), "cuda")
    if name == "cuda" or request.interpreter is None:
        return None
    argv = _argv(name, request, request.gpus, held=True)
    child = Child(argv, {**variables, **_CHANGES}, silence=request.timeout, held=True)
    child.start()
    return child


def _argv(
    name: str,
    request: Request,
    gpus: tuple[int, ...] | None,
    *,
    peers: bool = True,
    held: bool = False,
) -> list[str]:
    """The command that runs one framework's stages on some GPUs, in one process."""
    settings = {
        "device": request.device,
        "gpus": gpus,
        "compile": request.compile,
        "timeout": request.timeout,
        "peers": peers,
        "held": held,
    }
    interpreter = request.own if name == "cuda" else str(request.interpreter)
    return [interpreter, str(payload(f"smoke_{name}")), json.dumps(settings)]


def _framework(
    name: str,
    request: Request,
    variables: Mapping[str, str],
    progress: Progress,
    early: Child | None,
) -> tuple[list[Stage], Said, list[int]]:
    """All devices with one framework: in one process, as long as that lives."""
    if name != "cuda" and request.interpreter is None:
        stage = Stage(
            framework=name,
            device=request.device,
            name="start",
            outcome="error",
            detail=request.reason or "the environment has no interpreter",
        )
        return [stage], Said(framework=name), []
    stages: list[Stage] = []
    facts: dict[str, Any] = {}
    devices: list[int] = []
    gpus = request.gpus
    for attempt in range(_MOST_PROCESSES):
        tracker = Tracker(name, request.device)
        argv = _argv(name, request, gpus, peers=attempt == 0)
        started = early or Child(argv, {**variables, **_CHANGES}, silence=request.timeout)
        early = None
        with started as child:
            child.release()
            for event in child.events():
                begun = tracker.take(event, child)
                if begun is not None:
                    progress(begun)
            tracker.finish(child, request.timeout)
        # A further process starts as the first one did; only what is new is worth saying.
        seen = {(each.device, each.name) for each in stages if each.outcome == "ok"}
        stages += [each for each in tracker.stages if (each.device, each.name) not in seen]
        facts.update(tracker.facts)
        devices = devices or tracker.devices or []
        left = tracker.left_over()
        if not left:
            break
        gpus = tuple(left)
    return stages, _said(name, stages, facts), devices


def _said(name: str, stages: list[Stage], facts: Mapping[str, Any]) -> Said:
    failed = [each for each in stages if each.name == "import" and each.outcome == "error"]
    available, arches = facts.get("gpu_available"), facts.get("arches")
    return Said(
        framework=name,
        gpu_available=available if isinstance(available, bool) else None,
        arches=tuple(map(str, arches)) if isinstance(arches, list) else None,
        error=failed[0].detail if failed else None,
    )


def _distributed(
    request: Request,
    variables: Mapping[str, str],
    alone: list[Stage],
    devices: list[int],
    progress: Progress,
) -> list[Stage]:
    """Several processes, one per GPU, started by torchrun."""
    if not request.distributed or request.interpreter is None:
        return []
    if not any(each.name == "import" and each.outcome == "ok" for each in alone):
        return []
    count = request.processes or (len(devices) if request.device == "cuda" else _CPU_RANKS)
    if count < 1 or (count < 2 and not request.launcher):
        return []
    device = "cpu"
    if request.device == "cuda":
        device = ",".join(f"cuda:{at}" for at in devices[:count])
        reason = _unfit(alone, devices, count)
        if reason:
            return [_skipped(device, reason)]
    stages = _launch(request, variables, device, devices, count, progress)
    if request.device == "cuda" and count > 1 and _collective_failed(stages):
        # An experiment that tells: does it work when GPUs do not reach into each other's memory?
        changed = {**variables, "NCCL_P2P_DISABLE": "1"}
        if variables.get("NCCL_P2P_DISABLE") != "1":
            again = _launch(request, changed, device, devices, count, progress)
            stages += [
                dataclasses.replace(
                    each,
                    name="all-reduce-without-p2p",
                    detail="; ".join(filter(None, ("NCCL_P2P_DISABLE=1", each.detail))),
                )
                for each in again
                if each.name == "all-reduce"
            ]
    return stages


def _unfit(alone: list[Stage], devices: list[int], count: int) -> str:
    """Why several GPUs cannot work together, as far as it is known."""
    if count > len(devices):
        return f"{count} processes need as many GPUs, and there are {len(devices)}"
    bad = sorted(
        {
            each.device
            for each in alone
            if each.outcome in {"error", "crash", "timeout"} and "," not in each.device
        }
    )
    return f"{', '.join(bad)} failed alone" if bad else ""


def _collective_failed(stages: list[Stage]) -> bool:
    return any(
        each.name in {"all-reduce", "ddp-init", "ddp-step"}
        and each.outcome not in {"ok", "skipped"}
        for each in stages
    )


def _skipped(device: str, reason: str) -> Stage:
    return Stage(
        framework="torch", device=device, name="all-reduce", outcome="skipped", detail=reason
    )


def _launch(
    request: Request,
    variables: Mapping[str, str],
    device: str,
    devices: list[int],
    count: int,
    progress: Progress,
) -> list[Stage]:
    settings = {
        "device": request.device,
        "gpus": devices[:count] if request.device == "cuda" else None,
        "timeout": request.timeout,
    }
    launcher = request.launcher or ("--standalone",)
    argv = [
        str(request.interpreter),
        *("-m", "torch.distributed.run"),
        *launcher,
        f"--nproc-per-node={count}",
        str(payload("smoke_ddp")),
        json.dumps(settings),
    ]
    ranks = Ranks(device, count)
    progress(f"torch {device} torchrun")
    with Child(argv, {**_DEFAULTS, **variables, **_CHANGES}, silence=request.timeout) as child:
        for event in child.events():
            begun = ranks.take(event, child)
            if begun is not None:
                progress(begun)
        return ranks.finish(child, request.timeout)
