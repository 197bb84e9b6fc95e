"""The messages in what a probe read itself: the kernel log, imports, the smoke test's output."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.model.symptom import KERNEL_LOG

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from envcheck.matrix.loader import Matrix
    from envcheck.model.snapshot import Snapshot
    from envcheck.model.symptom import Symptom


def from_snapshot(snapshot: Snapshot, matrix: Matrix) -> tuple[Symptom, ...]:
    """Recognise known messages in the texts of a snapshot.

    What NVML, libcuda and nvidia-smi answer is left out: rules read it with its error number, and a
    library that is absent is no trouble on a machine without a GPU.

    Args:
        snapshot: facts of a live or recorded machine.
        matrix: the tables; they are not read when there is no text.

    Returns:
        Symptoms, each with the place it was read at; those of the kernel log may be of long ago.
    """
    found: list[Symptom] = []
    for via, lines in _texts(snapshot):
        from envcheck.symptoms.scan import scan

        found += scan(lines, matrix, via=via)
    return tuple(found)


def _texts(snapshot: Snapshot) -> Iterator[tuple[str, Iterable[str]]]:
    log = snapshot.host.driver.kernel_log
    if log:
        yield KERNEL_LOG, log
    for framework in snapshot.env.frameworks or ():
        if framework.error:
            yield f"import {framework.name}", framework.error.splitlines()
    for stage in snapshot.smoke.stages if snapshot.smoke is not None else ():
        lines = (*stage.detail.splitlines(), *stage.output)
        if stage.outcome not in {"ok", "skipped"} and lines:
            yield f"smoke {stage.name}", lines
