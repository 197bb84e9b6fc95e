"""host-compiler-unsupported."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.matrix import query
from envcheck.model.finding import Evidence, Fix
from envcheck.rules import fixes, install
from envcheck.rules.base import cite, finding, rule
from envcheck.rules.cuda import building
from envcheck.versions import Release

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.model.environment import Compiler
    from envcheck.model.snapshot import Snapshot
    from envcheck.rules.base import Answer

_CHOSEN = ("CC", "CXX", "CUDAHOSTCXX", "NVCC_CCBIN", "NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS")
"""Variables with which somebody has already chosen a compiler."""


def _builds(snapshot: Snapshot) -> bool:
    return building.toolkit_in_use(snapshot) is not None


@rule("host-compiler-unsupported", component="cuda", when=_builds)
def host_compiler_unsupported(snapshot: Snapshot, matrix: Matrix) -> Answer:
    """The nvcc in use accepts the default host compiler.

    A warning when something here builds extensions, else information: running a framework needs no
    compiler. Silent when a variable chooses another compiler.

    Why: each nvcc knows GCC up to a certain major and stops with "unsupported GNU version" above
    it.

    Fix: install an accepted compiler beside the default one and name it for the build.
    """
    toolkit = building.toolkit_in_use(snapshot)
    release = Release.maybe(toolkit.version) if toolkit else None
    compiler = _default(snapshot)
    have = Release.maybe(compiler.version) if compiler else None
    if toolkit is None or release is None or compiler is None or have is None:
        return
    if any(snapshot.env.variable(name) for name in _CHOSEN):
        return
    row = query.host_compiler(matrix, release.text)
    if row is None or have.major <= int(row.gcc_max):
        return
    need = building.evidence(snapshot)
    newest = row.gcc_max
    packages = {
        "debian": (f"gcc-{newest}", f"g++-{newest}"),
        "rhel": (f"gcc-toolset-{newest}",),
        "suse": (f"gcc{newest}", f"gcc{newest}-c++"),
    }.get(fixes.family(snapshot.host.os), ())
    yield finding(
        "host-compiler-unsupported",
        "warning" if need else "info",
        "cuda",
        f"{compiler.name} {compiler.version}",
        f"nvcc {release.series} does not accept this compiler",
        found=f"{compiler.name} {compiler.version} with nvcc {toolkit.version}",
        needed=f"GCC {newest} or older",
        why="nvcc checks the host compiler's version. It matters when CUDA code is compiled here; "
        "installed frameworks run without it.",
        fix=(
            Fix(
                title=f"Install GCC {newest} and name it for the build",
                commands=(
                    *fixes.install(snapshot, *packages),
                    f"export CC=gcc-{newest} CXX=g++-{newest} "
                    f"NVCC_PREPEND_FLAGS='-ccbin g++-{newest}'",
                ),
            ),
        ),
        evidence=(
            Evidence(
                label=compiler.name,
                value=compiler.version or "",
                via=compiler.path or compiler.name,
            ),
            Evidence(label="nvcc", value=toolkit.version or "", via=install.word(toolkit.root)),
            *need,
        ),
        sources=cite(matrix, row),
    )


def _default(snapshot: Snapshot) -> Compiler | None:
    """The compiler that nvcc takes when nobody says otherwise."""
    named = {each.name: each for each in reversed(snapshot.env.compilers or ())}
    return next((named[name] for name in ("g++", "gcc", "c++", "cc") if name in named), None)
