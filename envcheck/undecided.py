"""What a pasted text leaves open, and what to run to settle it.

A text says a little about a machine. That a fact is missing from it is no news; what matters is
whether it speaks of trouble that nothing in it explains.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.model.finding import Fix, Unknown

if TYPE_CHECKING:
    from collections.abc import Iterable

    from envcheck.matrix.loader import Matrix
    from envcheck.model.finding import Finding
    from envcheck.model.snapshot import Snapshot

_UNSEEN = frozenset({"cuda-not-available", "tensorflow-sees-no-gpu"})
"""Messages by which frameworks say that they see no GPU."""

UNEXPLAINED = "cause"
"""Name under which a text's unexplained trouble is listed among the open questions."""


def open_questions(
    snapshot: Snapshot, matrix: Matrix, findings: Iterable[Finding], unknowns: Iterable[Unknown]
) -> tuple[Unknown, ...]:
    """The questions that a text itself raises.

    Args:
        snapshot: facts of a text.
        matrix: knows which finding each message hints at.
        findings: what was found.
        unknowns: every question that rules left open.

    Returns:
        Checks that crashed, releases beyond the tables, what a message of the text hints at without
        deciding it, and trouble that nothing explains.
    """
    present = {each.name for each in snapshot.symptoms}
    hints = {
        row.finding
        for row in (matrix.symptoms if present else ())
        if row.name in present and row.strength == "hint"
    }
    kept = [each for each in unknowns if each.kind != "missing" or each.check in hints]
    serious = any(each.severity in {"error", "warning"} for each in findings)
    trouble = _trouble(snapshot)
    if trouble and not serious and not any(each.kind == "missing" for each in kept):
        kept.append(Unknown(check=UNEXPLAINED, reason=trouble))
    return tuple(kept)


def _trouble(snapshot: Snapshot) -> str:
    """What the text says does not work; empty when it says of nothing that it does not."""
    env_says = any(each.gpu_available for each in snapshot.env.frameworks or ())
    for framework in snapshot.env.frameworks or ():
        if framework.gpu_available is False and not framework.hip and not framework.xpu:
            return f"{framework.name} says that no GPU is available, and this text does not say why"
    if not env_says and _UNSEEN & {each.name for each in snapshot.symptoms}:
        return "a framework sees no GPU, and this text does not say why"
    for name, answer in (
        ("the CUDA driver library", snapshot.host.driver.libcuda),
        ("NVML", snapshot.host.driver.nvml),
        ("nvidia-smi", snapshot.host.driver.smi),
    ):
        if answer.outcome == "error":
            said = answer.message or f"error {answer.code}"
            return f"{name} answered '{said}', and this text does not say why"
    return ""


def _says_anything(snapshot: Snapshot) -> bool:
    driver, env = snapshot.host.driver, snapshot.env
    return bool(
        snapshot.symptoms
        or driver.version
        or snapshot.host.gpus
        or snapshot.host.pci
        or env.packages
        or env.frameworks
    )


def asks(snapshot: Snapshot, unknowns: Iterable[Unknown]) -> tuple[Fix, ...]:
    """What to run next, when a text does not decide, or says nothing that is known here."""
    if _says_anything(snapshot) and not any(each.kind == "missing" for each in unknowns):
        return ()
    host, env = snapshot.host, snapshot.env
    found = [
        Fix(
            title="On that machine, in the environment that fails: this reads all that is needed",
            commands=("envcheck doctor",),
        )
    ]
    if host.driver.smi.outcome == "not-asked" or not host.driver.version:
        found.append(Fix(title="Driver and GPUs", commands=("nvidia-smi",)))
    elif host.driver.smi.outcome == "error" and host.driver.kernel_log is None:
        found.append(
            Fix(title="What the kernel says of the driver", commands=("sudo dmesg | grep -i nvrm",))
        )
    torch = env.framework("torch")
    if torch is None or torch.cpu_only is None:
        found.append(
            Fix(title="The framework's build", commands=("python -m torch.utils.collect_env",))
        )
    return tuple(found[:3])
