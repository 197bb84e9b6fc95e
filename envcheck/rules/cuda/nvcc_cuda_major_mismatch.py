"""nvcc-cuda-major-mismatch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.model.finding import Evidence, Fix
from envcheck.rules import facts, install
from envcheck.rules.base import finding, rule
from envcheck.rules.cuda import building
from envcheck.versions import Release

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.model.environment import Framework, Toolkit
    from envcheck.model.finding import Finding
    from envcheck.model.snapshot import Snapshot
    from envcheck.rules.base import Answer


def _has_torch(snapshot: Snapshot) -> bool:
    return any(each.name == "torch" for each in facts.cuda_frameworks(snapshot))


@rule("nvcc-cuda-major-mismatch", component="cuda", when=_has_torch)
def nvcc_cuda_major_mismatch(snapshot: Snapshot, _matrix: Matrix) -> Answer:
    """Extensions would be built with a toolkit of torch's CUDA major.

    A warning when something here builds extensions and the nvcc in use is of another CUDA major;
    silent otherwise, because wheels bring their own CUDA and an old toolkit on disk harms nothing.

    Why: torch's extension builder refuses an nvcc of another major, and code that was built with
    one does not load.

    Fix: point CUDA_HOME to a toolkit of the same major.
    """
    torch = snapshot.env.framework("torch")
    built = Release.maybe(torch.cuda) if torch else None
    toolkit = building.toolkit_in_use(snapshot)
    if torch is None or built is None or toolkit is None:
        return
    have = Release.maybe(toolkit.version)
    need = building.evidence(snapshot)
    if have is None or have.major == built.major or not need:
        return
    yield _finding(snapshot, torch, toolkit, need)


def _finding(
    snapshot: Snapshot, torch: Framework, toolkit: Toolkit, need: tuple[Evidence, ...]
) -> Finding:
    built = Release.parse(torch.cuda or "")
    fitting = next(
        (
            each
            for each in snapshot.env.toolkits or ()
            if each.nvcc
            and (r := Release.maybe(each.version)) is not None
            and r.major == built.major
        ),
        None,
    )
    if fitting is not None:
        root = install.word(fitting.root)
        fix = Fix(
            title=f"Use the CUDA {fitting.version} toolkit that is installed",
            commands=(f"export CUDA_HOME={root}", f"export PATH={root}/bin:$PATH"),
        )
    else:
        fix = Fix(
            title=f"Install a CUDA {built.series} toolkit and set CUDA_HOME to it before you build",
        )
    return finding(
        "nvcc-cuda-major-mismatch",
        "warning",
        "cuda",
        f"nvcc {toolkit.version}",
        "Extensions would be built with another CUDA major than torch's",
        found=f"nvcc {toolkit.version} in {toolkit.root}",
        needed=f"a CUDA {built.major} toolkit, as torch was built with CUDA {torch.cuda}",
        why="Running torch does not use this toolkit, but building an extension does, and torch "
        "refuses an nvcc of another CUDA major.",
        fix=(fix,),
        evidence=(
            Evidence(
                label="nvcc", value=f"{toolkit.version} at {toolkit.root}", via=toolkit.via or ""
            ),
            Evidence(label="torch", value=torch.version, via=torch.location or "torch/version.py"),
            *need,
        ),
    )
