"""library-path-shadows-cuda, -cudnn, -nccl: only a copy that wins and does not fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from envcheck.model.environment import Library, Variable
from tests.rules.stack import (
    SITE,
    commands,
    library,
    only,
    said,
    torch_28_wheels,
    unknowns,
)
from tests.support import evolve, machine, torch

if TYPE_CHECKING:
    from envcheck.model.snapshot import Snapshot

CUDNN_WHEEL = library(
    "cudnn", "9.10.2", f"{SITE}/nvidia/cudnn/lib/libcudnn.so.9", origin="wheel", wins_for=()
)


def with_copies(*copies: Library, path: str | None = None) -> Snapshot:
    """torch 2.8.0 with all its wheels, and copies of libraries."""
    changes: dict[str, object] = {"env.libraries": copies}
    if path is not None:
        changes["env.variables"] = (Variable(name="LD_LIBRARY_PATH", value=path),)
    return evolve(machine(frameworks=(torch("2.8.0+cu128"),), packages=torch_28_wheels()), changes)


def foreign(name: str, version: str | None, soname: str, **facts: object) -> Library:
    """A copy that LD_LIBRARY_PATH puts first."""
    path = f"/opt/old/lib/{soname}"
    wins = {"origin": "variable", "via": "LD_LIBRARY_PATH", **facts}
    return Library(
        name=name,
        soname=soname,
        version=version,
        path=path,
        **{"wins_for": ("torch",), **wins},  # type: ignore[arg-type]
    )


def test_an_older_cudnn_that_wins() -> None:
    """torch 2.8.0 pins cuDNN 9.10.2; LD_LIBRARY_PATH puts 9.1.0 first."""
    found = only(
        with_copies(
            CUDNN_WHEEL,
            foreign("cudnn", "9.1.0", "libcudnn.so.9"),
            path="/opt/old/lib:/usr/local/cuda/lib64",
        )
    )
    assert (found.id, found.severity, found.component) == (
        "library-path-shadows-cudnn",
        "error",
        "cudnn",
    )
    assert found.found == "cudnn 9.1.0 at /opt/old/lib/libcudnn.so.9 wins by LD_LIBRARY_PATH"
    assert found.needed == "torch needs at least 9.10.2.21"
    assert commands(found) == ["export LD_LIBRARY_PATH=/usr/local/cuda/lib64"]


@pytest.mark.parametrize(
    ("copy", "expected"),
    [
        (foreign("cudnn", "8.9.7", "libcudnn.so.9"), [("library-path-shadows-cudnn", "error")]),
        (foreign("cudnn", "9.14.0", "libcudnn.so.9"), []),
        (foreign("cudnn", "9.10.1", "libcudnn.so.9"), []),
        (foreign("cudnn", "9", "libcudnn.so.9"), []),
        (foreign("cudnn", None, "libcudnn.so.9"), []),
        (foreign("cudnn", "9.1.0", "libcudnn.so.9", wins_for=()), []),
        (foreign("cudnn", "9.1.0", "libcudnn.so.9", wins_for=("jax",)), []),
        (foreign("nccl", "2.18.3", "libnccl.so.2"), [("library-path-shadows-nccl", "error")]),
        (foreign("nccl", "2.28.9", "libnccl.so.2"), []),
    ],
)
def test_which_copies_matter(copy: Library, expected: list[tuple[str, str]]) -> None:
    """Another major, or an older minor, that wins for this framework; nothing else."""
    assert said(with_copies(CUDNN_WHEEL, copy)) == expected


def test_parts_of_two_versions() -> None:
    """A newer part from the system beside the wheel's own main library do not go together."""
    own = library("cudnn", "9.10.2", f"{SITE}/nvidia/cudnn/lib/libcudnn.so.9", origin="wheel")
    part = foreign("cudnn_graph", "9.14.0", "libcudnn_graph.so.9", origin="system", via="cache")
    found = only(with_copies(own, part))
    assert found.id == "library-path-shadows-cudnn"
    assert found.needed == "parts of cuDNN 9.10 and 9.14 would be loaded together"
    assert commands(found) == []


@pytest.mark.parametrize(
    ("name", "soname", "own", "other", "expected"),
    [
        ("nvjitlink", "libnvJitLink.so.12", "12.8.93", "12.4.127", "error"),
        ("cublas", "libcublas.so.12", "12.8.4", "12.2.5", "error"),
        ("cudart", "libcudart.so.12", "12.8.90", "12.4.127", "warning"),
        ("cudart", "libcudart.so.12", "12.8.90", "12.9.79", None),
        ("cublas", "libcublas.so.12", "12.8.4", "12.8.3", None),
    ],
)
def test_cuda_libraries(name: str, soname: str, own: str, other: str, expected: str | None) -> None:
    """An older minor release wins over the framework's own copy."""
    wheel = library(name, own, f"{SITE}/nvidia/x/lib/{soname}", origin="wheel", wins_for=())
    expect = [("library-path-shadows-cuda", expected)] if expected else []
    assert said(with_copies(wheel, foreign(name, other, soname))) == expect


def test_a_toolkit_that_is_merely_named() -> None:
    """LD_LIBRARY_PATH names a toolkit, and the rpath wins: healthy."""
    wheel = library(
        "cublas", "12.8.4", f"{SITE}/nvidia/cublas/lib/libcublas.so.12", origin="wheel", via="rpath"
    )
    toolkit = library(
        "cublas",
        "11.8.89",
        "/usr/local/cuda/lib64/libcublas.so.11",
        origin="toolkit",
        wins_for=(),
    )
    snapshot = with_copies(wheel, toolkit, path="/usr/local/cuda/lib64")
    assert (said(snapshot), unknowns(snapshot)) == ([], [])


def test_not_resolved_is_unknown_only_when_it_could_matter() -> None:
    """An old cuDNN in LD_LIBRARY_PATH, and nobody worked out which one wins."""
    own = CUDNN_WHEEL
    old = foreign("cudnn", "9.1.0", "libcudnn.so.9", wins_for=(), via=None)
    new = foreign("cudnn", "9.14.0", "libcudnn.so.9", wins_for=(), via=None)
    assert unknowns(with_copies(own, old, path="/opt/old/lib")) == [
        ("library-path-shadows-cudnn", "missing")
    ]
    assert unknowns(with_copies(own, new, path="/opt/old/lib")) == []
    assert unknowns(with_copies(own, old)) == []


def test_conda_builds_use_condas_libraries() -> None:
    """What wins for a conda-forge build is conda's business."""
    snapshot = evolve(
        with_copies(foreign("cudnn", "8.9.7", "libcudnn.so.9")),
        {"env.frameworks.0.origin": "conda-forge", "env.frameworks.0.arches": ("sm_90",)},
    )
    assert said(snapshot) == []
