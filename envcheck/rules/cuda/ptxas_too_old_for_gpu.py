"""ptxas-too-old-for-gpu."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from envcheck.matrix import query
from envcheck.model.finding import Evidence, Fix
from envcheck.rules import facts, install
from envcheck.rules.base import cite, finding, rule
from envcheck.versions import Release

if TYPE_CHECKING:
    from collections.abc import Iterator

    from envcheck.matrix.loader import Matrix
    from envcheck.model.finding import Citation, Finding
    from envcheck.model.snapshot import Snapshot
    from envcheck.rules.base import Answer

_SAID = re.compile(r"Value '(sm_\w+)' is not defined for option 'gpu-name'")
_VARIABLES = ("TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH")


@rule("ptxas-too-old-for-gpu", component="cuda", when=facts.needs_gpu)
def ptxas_too_old_for_gpu(snapshot: Snapshot, matrix: Matrix) -> Answer:
    """The assembler that Triton uses knows each GPU.

    Fires on the assembler's own message, or when TRITON_PTXAS_PATH names a toolkit whose ptxas has
    no target for the GPU.

    Why: Triton compiles kernels when they are first used, with a ptxas of its own or the one that
    TRITON_PTXAS_PATH names; one that is older than the GPU refuses its architecture.

    Fix: point TRITON_PTXAS_PATH to a newer toolkit's ptxas, or update triton with its torch.
    """
    for framework in snapshot.env.frameworks or ():
        said = _SAID.search(framework.error or "")
        if said is not None:
            yield _finding(
                snapshot,
                f"its ptxas does not know {said.group(1)}",
                (Evidence(label="error", value=framework.error or "", via=framework.name),),
            )
            return
    yield from _by_variable(snapshot, matrix)


def _by_variable(snapshot: Snapshot, matrix: Matrix) -> Iterator[Finding]:
    for name in _VARIABLES:
        path = snapshot.env.variable(name)
        toolkit = next(
            (t for t in snapshot.env.toolkits or () if path and path.startswith(f"{t.root}/")), None
        )
        release = Release.maybe(toolkit.version) if toolkit else None
        if path is None or release is None:
            continue
        row = query.ptxas(matrix, release.text)
        if row is None:
            continue
        targets = {re.sub(r"\D", "", each) for each in row.arches}
        for gpu in facts.gpus(snapshot):
            if gpu.arch is not None and gpu.arch.replace(".", "") not in targets:
                yield _finding(
                    snapshot,
                    f"the ptxas of CUDA {release.series} has no target for {gpu.arch}",
                    (
                        Evidence(label=name, value=path, via="environment"),
                        Evidence(label="GPU", value=facts.gpu_label(gpu), via="NVML"),
                    ),
                    cite(matrix, row),
                )
                return


def _finding(
    snapshot: Snapshot,
    found: str,
    evidence: tuple[Evidence, ...],
    sources: tuple[Citation, ...] = (),
) -> Finding:
    return finding(
        "ptxas-too-old-for-gpu",
        "error",
        "cuda",
        "ptxas",
        "The assembler in use does not know this GPU",
        found=found,
        needed="a ptxas from a CUDA release that knows this GPU",
        why="Kernels that are compiled at run time (torch.compile, Triton) cannot be assembled.",
        fix=(
            Fix(
                title="Update triton, together with its torch",
                commands=install.install(snapshot, ("torch", "triton"), upgrade=True),
            ),
            Fix(
                title="Or point Triton to the ptxas of a newer toolkit",
                commands=("export TRITON_PTXAS_PATH=/usr/local/cuda/bin/ptxas",),
            ),
        ),
        evidence=evidence,
        sources=sources,
    )
