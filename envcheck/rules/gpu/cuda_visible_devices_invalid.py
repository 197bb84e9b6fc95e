"""cuda-visible-devices-invalid, mig-instance-limit: which GPUs a process is allowed to see."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from envcheck.model.base import model
from envcheck.model.finding import Evidence, Fix
from envcheck.rules import facts
from envcheck.rules.base import finding, rule, unknown

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.model.finding import Severity
    from envcheck.model.snapshot import Snapshot
    from envcheck.rules.base import Answer

NAME = "CUDA_VISIBLE_DEVICES"

_INDEX = re.compile(r"\+?[0-9]{1,9}")
_UUID = re.compile(r"(GPU|MIG)-?\S*", re.IGNORECASE)


def shown(value: str) -> str:
    """The variable's value with UUIDs masked, since reports name no device identifiers."""
    return re.sub(r"\b(GPU|MIG)-[0-9a-fA-F][0-9a-fA-F/-]{4,}", r"\1-…", value)


@model
class Selection:
    """How CUDA reads the variable: entries up to the first that it does not understand.

    Attributes:
        accepted: entries that name a GPU.
        refused: the first entry that names none, with everything behind it unread; None when all
        do. repeated: indices that stand there twice (UUIDs may be masked, so they are not
        compared).
    """

    accepted: tuple[str, ...]
    refused: str | None
    repeated: tuple[str, ...]


def read(value: str, count: int | None) -> Selection:
    """Read a value of CUDA_VISIBLE_DEVICES.

    Args:
        value: the variable's text.
        count: how many GPUs the driver reports; None leaves indices unjudged.
    """
    accepted: list[str] = []
    refused = None
    for entry in (part.strip() for part in value.split(",")):
        named = bool(_UUID.fullmatch(entry)) or (
            bool(_INDEX.fullmatch(entry)) and (count is None or int(entry) < count)
        )
        if not named:
            refused = entry
            break
        accepted.append(entry)
    numbers = [each for each in accepted if _INDEX.fullmatch(each)]
    repeated = tuple(dict.fromkeys(each for each in numbers if numbers.count(each) > 1))
    return Selection(accepted=tuple(accepted), refused=refused, repeated=repeated)


UNSEEN = frozenset(
    {
        "torch-no-gpus",
        "cuinit-no-device",
        "cuda-not-available",
        "tensorflow-sees-no-gpu",
        "invalid-device-ordinal",
        "device-count-assert",
        "jax-falls-back",
    }
)
"""Messages of programs that see no GPU, or not the one that they were told to use."""


def _is_set(snapshot: Snapshot) -> bool:
    if snapshot.env.variable(NAME) is None or not facts.has_gpu(snapshot):
        return False
    return snapshot.source != "report" or _misses_one(snapshot)


def _misses_one(snapshot: Snapshot) -> bool:
    """Whether a text says that a GPU is not seen: it may show one GPU of many, or one command."""
    frameworks = snapshot.env.frameworks or ()
    if any(each.gpu_available for each in frameworks):
        return any(each.name == "invalid-device-ordinal" for each in snapshot.symptoms)
    return (
        snapshot.host.driver.libcuda.outcome == "error"
        or any(each.gpu_available is False for each in frameworks)
        or any(each.name in UNSEEN for each in snapshot.symptoms)
    )


@rule("cuda-visible-devices-invalid", component="gpu", when=_is_set)
def cuda_visible_devices_invalid(snapshot: Snapshot, _matrix: Matrix) -> Answer:
    """CUDA_VISIBLE_DEVICES, when it is set, names GPUs that exist.

    CUDA reads the list up to the first entry that it cannot use; GPUs behind it are hidden. An
    empty value hides all, as does -1. UUIDs are judged by what CUDA itself answers.

    Why: a hidden GPU looks to a framework as if there were none, and work runs on the CPU.

    Fix: unset the variable, or name existing GPUs.
    """
    value = snapshot.env.variable(NAME) or ""
    count: int | None = len(facts.gpus(snapshot))
    unread = snapshot.host.gpus is None or not count or facts.on_jetson(snapshot)
    if unread or any(gpu.mig for gpu in facts.gpus(snapshot)):
        count = None
    selection = read(value, count)
    text = shown(value)
    cuda = snapshot.host.driver.libcuda
    none_left = cuda.outcome == "error" and cuda.code == facts.CUDA_NO_DEVICE
    by_uuid = [each for each in selection.accepted if _UUID.fullmatch(each)]
    severity: Severity
    if not selection.accepted:
        severity, found = "error", f"{NAME}={text!r} hides every GPU"
        why = "CUDA stops at the first entry that names no GPU, so programs see none at all."
    elif none_left and (by_uuid or selection.repeated):
        severity, found = "error", f"{NAME}={text!r}, with which CUDA finds no GPU"
        why = (
            "The same GPU is named twice."
            if selection.repeated
            else "No GPU here has such a UUID (it changes with the card, and for MIG with each "
            "instance)."
        )
    elif selection.refused is not None:
        severity = "warning"
        found = f"{NAME}={text!r}: {selection.refused or 'an empty entry'!r} names no GPU"
        why = "CUDA ignores this entry and everything behind it, so fewer GPUs are seen than named."
    elif selection.repeated:
        severity, found = "warning", f"{NAME}={text!r} names a GPU twice"
        why = "CUDA does not accept one GPU twice, and programs may see none."
    elif unread and count is None and not by_uuid and facts.driver_works(snapshot):
        if snapshot.host.gpus is None:
            yield unknown(
                "cuda-visible-devices-invalid",
                snapshot.gap("host.gpus") or "which GPUs exist could not be read",
            )
        return
    else:
        return
    seen = facts.gpus(snapshot)
    every = ",".join(str(gpu.index) for gpu in seen) or "0"
    yield finding(
        "cuda-visible-devices-invalid",
        severity,
        "gpu",
        f"{NAME}={text}",
        f"{NAME} hides GPUs from programs",
        found=found,
        needed=f"unset, or existing GPUs such as {every}",
        why=why,
        fix=(
            Fix(title="Let programs see every GPU", commands=(f"unset {NAME}",)),
            Fix(title="Or name the ones to use", commands=(f"export {NAME}={every}",)),
        ),
        evidence=(
            Evidence(label=NAME, value=text or "(empty)", via="environment variable"),
            *(
                (Evidence(label="GPUs", value=", ".join(map(facts.gpu_label, seen)), via="NVML"),)
                if seen
                else ()
            ),
            *(e for e in facts.answers(snapshot) if e.label == "cuInit"),
        ),
    )


def _mig_in_use(snapshot: Snapshot) -> bool:
    return any(gpu.mig for gpu in facts.gpus(snapshot))


@rule(
    "mig-instance-limit",
    component="gpu",
    when=_mig_in_use,
    explains=("cuda-visible-devices-invalid", "driver-state-stale"),
)
def mig_instance_limit(snapshot: Snapshot, _matrix: Matrix) -> Answer:
    """With MIG, a process selects exactly one instance, and there is one.

    Several selected instances are a warning: CUDA uses the first only. A host whose GPUs are all in
    MIG mode without an instance has no device for CUDA (error).

    Why: a CUDA process can use one MIG instance and cannot reach a second, nor talk to one by
    peer access.

    Fix: one process an instance, each with its own UUID in CUDA_VISIBLE_DEVICES.
    """
    value = snapshot.env.variable(NAME) or ""
    chosen = [each.strip() for each in value.split(",") if each.strip().upper().startswith("MIG")]
    listing = Fix(title="List the instances and their UUIDs", commands=("nvidia-smi -L",))
    if len(chosen) > 1:
        yield finding(
            "mig-instance-limit",
            "warning",
            "gpu",
            f"{NAME} with {len(chosen)} MIG instances",
            "Several MIG instances are selected, but a process can use only one",
            found=f"{len(chosen)} instances in {NAME}",
            needed="one instance a process",
            why="CUDA gives a process the first MIG instance only; code that expects more devices "
            "fails when it counts them.",
            fix=(
                listing,
                Fix(
                    title="Give each process one of them",
                    commands=(f"export {NAME}=<one MIG UUID>",),
                ),
            ),
            evidence=(Evidence(label=NAME, value=shown(value), via="environment variable"),),
        )
    partitioned = [gpu for gpu in facts.gpus(snapshot) if gpu.mig]
    empty = [gpu for gpu in partitioned if gpu.mig_instances == 0]
    if not empty or facts.in_container(snapshot):
        return
    all_empty = len(empty) == len(facts.gpus(snapshot))
    yield finding(
        "mig-instance-limit",
        "error" if all_empty else "warning",
        "gpu",
        ", ".join(facts.gpu_label(gpu) for gpu in empty),
        "MIG mode is on, but no instance exists",
        found="MIG mode without an instance",
        needed="an instance, or MIG mode off",
        why="In MIG mode CUDA sees instances only; without one the GPU cannot be used.",
        fix=(
            Fix(
                title="Create an instance of a profile that the GPU offers",
                commands=(
                    f"sudo nvidia-smi mig -i {empty[0].index} -lgip",
                    f"sudo nvidia-smi mig -i {empty[0].index} -cgi <profile> -C",
                ),
            ),
            Fix(
                title="Or switch MIG mode off (with nothing using the GPU)",
                commands=(f"sudo nvidia-smi -i {empty[0].index} -mig 0",),
            ),
        ),
        evidence=tuple(
            Evidence(label=facts.gpu_label(gpu), value="MIG on, 0 instances", via="NVML")
            for gpu in empty
        ),
    )
