"""library-path-shadows-cuda, -cudnn, -nccl: a foreign copy wins over the framework's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.matrix import query
from envcheck.model.finding import Evidence, Fix
from envcheck.rules import facts, install, pins
from envcheck.rules.base import cite, finding, rule, unknown
from envcheck.versions import Release

if TYPE_CHECKING:
    from collections.abc import Iterable

    from envcheck.matrix.loader import Matrix
    from envcheck.model.environment import Framework, Library
    from envcheck.model.finding import Finding
    from envcheck.model.snapshot import Snapshot
    from envcheck.rules.base import Answer

CUDA_LIBRARIES = (
    "cudart",
    "cublas",
    "cublasLt",
    "cufft",
    "curand",
    "cusolver",
    "cusparse",
    "nvrtc",
    "nvjitlink",
)
STRICT = frozenset({"cublas", "cublasLt", "cusparse", "cusolver", "nvjitlink"})
"""Libraries of which a release needs symbols that earlier ones of the same major do not have."""

CUDNN_PARTS = (
    "cudnn",
    "cudnn_graph",
    "cudnn_ops",
    "cudnn_cnn",
    "cudnn_adv",
    "cudnn_heuristic",
    "cudnn_engines_precompiled",
    "cudnn_engines_runtime_compiled",
    "cudnn_ops_infer",
    "cudnn_ops_train",
    "cudnn_cnn_infer",
    "cudnn_cnn_train",
    "cudnn_adv_infer",
    "cudnn_adv_train",
)


_KNOWN_BAD = ("library-path-older", "older-on-path")
"""Rows about a copy in front of the framework's own."""


@rule(
    "library-path-shadows-cuda",
    component="cuda",
    when=facts.needs_gpu,
    explains=("cuda-runtime-mismatch",),
)
def library_path_shadows_cuda(snapshot: Snapshot, matrix: Matrix) -> Answer:
    """No older CUDA library from outside wins over the framework's own copy.

    Fires only when the copy that the loader takes is of an older minor release, or another major,
    than the framework's own copy, which is on disk too: an error for cuBLAS, cuSPARSE, cuSOLVER and
    nvJitLink, which gain symbols with every release, a warning for the rest. A toolkit on
    LD_LIBRARY_PATH that wins nothing, or that is as new, is healthy.

    Why: LD_LIBRARY_PATH, conda or the loader's cache come before the place where the framework
    keeps its libraries, unless it was built with an rpath that comes first.

    Fix: take the directory out of LD_LIBRARY_PATH, or let the framework's own directory come first.
    """
    yield from _shadows(snapshot, matrix, "library-path-shadows-cuda", "cuda", CUDA_LIBRARIES)


@rule(
    "library-path-shadows-cudnn",
    component="cudnn",
    when=facts.needs_gpu,
    explains=("cudnn-version-mismatch",),
)
def library_path_shadows_cudnn(snapshot: Snapshot, matrix: Matrix) -> Answer:
    """No incompatible cuDNN from outside wins over the framework's own copy.

    An error only when the copy that wins is of another major version than the framework was built
    for, of an older minor version, or when the parts of cuDNN that win are of different versions. A
    newer minor version is compatible, and a copy that merely lies there is no finding.

    Why: cuDNN opens its parts (graph, ops, engines) by name when they are first used. If the loader
    takes one part from elsewhere, they refuse to work together.

    Fix: take the directory out of LD_LIBRARY_PATH, or remove the other copy.
    """
    yield from _shadows(snapshot, matrix, "library-path-shadows-cudnn", "cudnn", CUDNN_PARTS)


@rule(
    "library-path-shadows-nccl",
    component="nccl",
    when=facts.needs_gpu,
    explains=("nccl-version-mismatch",),
)
def library_path_shadows_nccl(snapshot: Snapshot, matrix: Matrix) -> Answer:
    """No older NCCL from outside wins over the framework's own copy.

    Why: an NCCL older than the one that the framework was built with misses functions, and the
    framework fails to import with an undefined symbol. A newer one works.

    Fix: take the directory out of LD_LIBRARY_PATH, or remove the other copy.
    """
    yield from _shadows(snapshot, matrix, "library-path-shadows-nccl", "nccl", ("nccl",))


def _shadows(
    snapshot: Snapshot, matrix: Matrix, id: str, component: str, names: tuple[str, ...]
) -> Answer:
    """Judge the copies of one family of libraries for every framework."""
    copies = [each for each in snapshot.env.libraries or () if each.name in names]
    for framework in facts.cuda_frameworks(snapshot):
        if framework.origin in pins.FOREIGN_ORIGINS:
            continue
        winning = [each for each in copies if framework.name in each.wins_for]
        foreign = [each for each in winning if not pins.own(each)]
        if not winning:
            reason = _unresolved(snapshot, framework, copies, component)
            if reason is not None:
                yield unknown(id, reason)
            continue
        bad = [
            (each, why)
            for each in foreign
            if (why := _incompatible(snapshot, framework, each, winning, copies)) is not None
        ]
        if bad:
            yield _finding(snapshot, matrix, id, component, framework, bad)


def _incompatible(
    snapshot: Snapshot,
    framework: Framework,
    copy: Library,
    winning: list[Library],
    copies: list[Library],
) -> str | None:
    """What is wrong with a foreign copy that wins; None when nothing is known to be."""
    wins = Release.maybe(copy.version)
    if wins is None:
        return None
    if copy.name in CUDNN_PARTS:
        others = {
            release.series
            for each in winning
            if (release := Release.maybe(each.version)) is not None and len(release.parts) > 1
        }
        if len(others) > 1 and len(wins.parts) > 1:
            return f"parts of cuDNN {' and '.join(sorted(others))} would be loaded together"
    wanted = _wanted(snapshot, framework, copy, copies)
    if wanted is None:
        return None
    if wins.major != wanted.major:
        return f"{framework.name} needs {wanted}, another major version"
    if len(wins.parts) < 2 or len(wanted.parts) < 2:
        return None
    if wins.parts[:2] < wanted.parts[:2]:
        return f"{framework.name} needs at least {wanted}"
    return None


def _wanted(
    snapshot: Snapshot, framework: Framework, copy: Library, copies: list[Library]
) -> Release | None:
    """Version that the framework needs: what it was built for or pins, else its own copy's."""
    own = [
        release
        for each in copies
        if each.name == copy.name
        and pins.own(each)
        and each.soname == copy.soname
        and (release := Release.maybe(each.version)) is not None
    ]
    if copy.name in CUDA_LIBRARIES:
        return max(own, default=None)
    stem = "nccl" if copy.name == "nccl" else "cudnn"
    built_for = framework.nccl if stem == "nccl" else framework.cudnn
    pin = pins.pin(snapshot, framework, stem)
    pinned = pin.requirement.exact if pin is not None else None
    return Release.maybe(built_for) or Release.maybe(pinned) or max(own, default=None)


def _unresolved(
    snapshot: Snapshot, framework: Framework, copies: Iterable[Library], component: str
) -> str | None:
    """Why it matters that nobody worked out which copy wins; None when it does not."""
    listed = _directories(snapshot)
    named = [
        each
        for each in copies
        if not pins.own(each) and any(each.path.startswith(f"{folder}/") for folder in listed)
    ]
    bundled = any(pins.own(each) for each in copies)
    doubtful = [
        each
        for each in named
        if bundled and _incompatible(snapshot, framework, each, [], list(copies)) is not None
    ]
    if not doubtful:
        return None
    first = doubtful[0]
    return (
        f"LD_LIBRARY_PATH holds {first.name} {first.version} ({first.path}); whether "
        f"{framework.name} takes it or its own {component} copy could not be worked out"
    )


def _directories(snapshot: Snapshot) -> tuple[str, ...]:
    value = snapshot.env.variable("LD_LIBRARY_PATH") or ""
    return tuple(part.rstrip("/") for part in value.split(":") if part)


def _finding(
    snapshot: Snapshot,
    matrix: Matrix,
    id: str,
    component: str,
    framework: Framework,
    bad: list[tuple[Library, str]],
) -> Finding:
    bad = sorted(bad, key=lambda each: each[0].name not in STRICT)
    copy, why = bad[0]
    severe = component != "cuda" or copy.name in STRICT or "another major" in why
    variable = any(each.via == "LD_LIBRARY_PATH" for each, _why in bad)
    evidence = [pins.copy_evidence(each) for each, _why in bad]
    value = snapshot.env.variable("LD_LIBRARY_PATH")
    if variable and value:
        evidence.append(Evidence(label="LD_LIBRARY_PATH", value=value, via="environment"))
    return finding(
        id,
        "error" if severe else "warning",
        component,
        f"{copy.name} {copy.version}",
        f"{framework.name} loads a {component} library from outside that does not fit",
        found=f"{copy.name} {copy.version} at {copy.path} wins"
        + (f" by {copy.via}" if copy.via else ""),
        needed=why,
        why="The loader finds this copy before the one that came with the framework, and it is not "
        "compatible with it.",
        fix=_fix(snapshot, framework, [each for each, _why in bad], variable=variable),
        evidence=evidence,
        sources=cite(matrix, *query.known_bad(matrix, component, *_KNOWN_BAD)),
    )


def _fix(
    snapshot: Snapshot, framework: Framework, copies: list[Library], *, variable: bool
) -> tuple[Fix, ...]:
    if variable:
        folders = _directories(snapshot)
        rest = [
            folder
            for folder in folders
            if not any(each.path.startswith(f"{folder}/") for each in copies)
        ]
        command = (
            f"export LD_LIBRARY_PATH={':'.join(install.word(each) for each in rest)}"
            if rest
            else "unset LD_LIBRARY_PATH"
        )
        return (
            Fix(
                title="Take the directory out of LD_LIBRARY_PATH (here, and where it is set: shell "
                "profile, module file, service)",
                commands=(command,),
            ),
        )
    own = [
        each
        for each in snapshot.env.libraries or ()
        if pins.own(each) and each.name == copies[0].name
    ]
    folder = own[0].path.rpartition("/")[0] if own else None
    road: tuple[Fix, ...] = ()
    if folder is not None:
        road = (
            Fix(
                title=f"Let the copy that came with {framework.name} come first",
                commands=(f"export LD_LIBRARY_PATH={install.word(folder)}:$LD_LIBRARY_PATH",),
            ),
        )
    return (
        *road,
        Fix(title=f"Or remove or upgrade the other copy: {copies[0].path}"),
    )
