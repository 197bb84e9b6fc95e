"""ptx-newer-than-driver."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from envcheck.model.finding import Evidence, Fix
from envcheck.rules import arch, builds, compat, drivers, facts, install
from envcheck.rules.base import finding, rule

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.model.environment import Framework
    from envcheck.model.finding import Finding
    from envcheck.model.snapshot import Snapshot
    from envcheck.rules.base import Answer

_SAID = re.compile(
    r"provided PTX was compiled with an unsupported toolchain[^\n]*|"
    r"CUDA_ERROR_UNSUPPORTED_PTX_VERSION[^\n]*",
    re.IGNORECASE,
)


@rule("ptx-newer-than-driver", component="cuda", when=facts.needs_gpu)
def ptx_newer_than_driver(snapshot: Snapshot, matrix: Matrix) -> Answer:
    """The driver can compile the PTX that it is asked to.

    Fires on the error itself, or when PTX is the only code that a build has for a GPU and the
    driver's own CUDA is older than the toolkit that made it.

    Why: minor-version compatibility lets an older driver run machine code of a newer toolkit of the
    same major, but the driver's compiler does not read that toolkit's PTX.

    Fix: a newer driver, or a build with machine code for this GPU or from an older toolkit.
    """
    known = compat.driver_facts(snapshot)
    for framework in facts.cuda_frameworks(snapshot):
        said = _SAID.search(framework.error or "")
        if said is not None:
            evidence = Evidence(label="error", value=framework.error or "", via=framework.name)
            yield _finding(snapshot, matrix, framework, said.group().strip(), evidence)
            continue
        if framework.name != "torch":
            continue
        listed = builds.arches(matrix, snapshot, framework)
        for gpu in facts.gpus(snapshot):
            if listed is None or gpu.arch is None:
                continue
            answer = arch.coverage(listed, gpu.arch, tegra=builds.tegra(matrix))
            if answer.verdict != "yes-ptx":
                continue
            if compat.compiles_ptx(matrix, known, framework.cuda or "") is False:
                evidence = Evidence(
                    label="architectures", value=" ".join(listed), via=framework.location or "torch"
                )
                found = (
                    f"{facts.gpu_label(gpu)} needs {answer.target}, made by CUDA {framework.cuda}"
                )
                yield _finding(snapshot, matrix, framework, found, evidence)
                break


def _finding(
    snapshot: Snapshot, matrix: Matrix, framework: Framework, found: str, evidence: Evidence
) -> Finding:
    cuda = snapshot.host.driver.cuda
    have = (
        f"{facts.driver_subject(snapshot)} (CUDA {cuda})"
        if cuda
        else facts.driver_subject(snapshot)
    )
    roads: tuple[Fix, ...] = ()
    if facts.discrete(snapshot) and facts.on_host(snapshot):
        roads = drivers.install_driver(snapshot, matrix, drivers.choose(snapshot, matrix))
    return finding(
        "ptx-newer-than-driver",
        "error",
        "cuda",
        install.label(framework),
        "The driver cannot compile PTX from a toolkit newer than itself",
        found=f"{found}; {have}",
        needed=f"a driver whose CUDA is {framework.cuda} or newer",
        why="Minor-version compatibility covers machine code, not PTX that the driver compiles.",
        fix=(
            *roads,
            Fix(
                title="Or use a build that has machine code for this GPU, or one from a toolkit "
                "not newer than the driver"
            ),
        ),
        evidence=(evidence,),
    )
