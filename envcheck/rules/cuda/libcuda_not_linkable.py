"""libcuda-not-linkable."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from envcheck.model.finding import Evidence, Fix
from envcheck.rules import facts, install
from envcheck.rules.base import finding, rule

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.model.snapshot import Snapshot
    from envcheck.rules.base import Answer

_SAID = re.compile(
    r"cannot find -lcuda\b|libcuda\.so cannot found|libcuda\.so.*not found", re.IGNORECASE
)


@rule("libcuda-not-linkable", component="cuda", when=facts.needs_gpu)
def libcuda_not_linkable(snapshot: Snapshot, _matrix: Matrix) -> Answer:
    """A just-in-time compiler can link against libcuda.

    Fires on what a framework said when it was asked, never on a guess: the linker finds libcuda in
    more places than can be listed.

    Why: Triton compiles a small C file that links with -lcuda. The driver installs libcuda.so.1;
    the linker wants libcuda.so, or a loader cache that lists it.

    Fix: refresh the loader's cache, or point Triton to the directory.
    """
    for framework in facts.cuda_frameworks(snapshot):
        said = _SAID.search(framework.error or "")
        if said is None:
            continue
        path = snapshot.host.driver.libcuda.path
        folder = path.rpartition("/")[0] if path and path.startswith("/") else None
        point = (
            (
                Fix(
                    title="Or tell Triton where libcuda lies",
                    commands=(f"export TRITON_LIBCUDA_PATH={install.word(folder)}",),
                ),
            )
            if folder
            else ()
        )
        yield finding(
            "libcuda-not-linkable",
            "error",
            "cuda",
            install.label(framework),
            "The linker does not find libcuda",
            found=said.group(),
            needed="libcuda.so where the linker or ldconfig finds it",
            why="Kernels compiled at run time are linked against the driver's libcuda.",
            fix=(
                Fix(title="Refresh the loader's cache", commands=("sudo ldconfig",)),
                *point,
            ),
            evidence=(
                Evidence(label="error", value=framework.error or "", via=framework.name),
                *((Evidence(label="libcuda", value=path, via="loader"),) if path else ()),
            ),
        )
