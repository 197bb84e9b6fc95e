"""nvcc-cuda-major-mismatch, host-compiler-unsupported, libcuda-not-linkable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from envcheck.model.environment import Compiler, Toolkit, Variable
from tests.rules.stack import commands, only, said
from tests.support import evolve, machine, torch

if TYPE_CHECKING:
    from envcheck.model.snapshot import Snapshot

ARCH_LIST = Variable(name="TORCH_CUDA_ARCH_LIST", value="9.0")


def builds(
    *toolkits: Toolkit, gcc: str = "13.3.0", variables: tuple[Variable, ...] = ()
) -> Snapshot:
    """torch for CUDA 12.8, toolkits on disk, a compiler."""
    changes: dict[str, Any] = {
        "env.toolkits": toolkits,
        "env.compilers": (Compiler(name="gcc", version=gcc, path="/usr/bin/gcc"),),
        "env.variables": variables,
    }
    return evolve(machine(frameworks=(torch("2.8.0+cu128"),)), changes)


def toolkit(version: str, *, on_path: bool = True) -> Toolkit:
    """A toolkit with nvcc."""
    return Toolkit(
        version=version, root=f"/usr/local/cuda-{version}", nvcc=True, on_path=on_path, via="PATH"
    )


def test_nvcc_of_another_major_where_extensions_are_built() -> None:
    """A warning, and the fitting toolkit that is there is named."""
    found = only(
        builds(
            toolkit("11.8"), toolkit("12.6", on_path=False), gcc="11.4.0", variables=(ARCH_LIST,)
        )
    )
    assert (found.id, found.severity) == ("nvcc-cuda-major-mismatch", "warning")
    assert commands(found) == [
        "export CUDA_HOME=/usr/local/cuda-12.6",
        "export PATH=/usr/local/cuda-12.6/bin:$PATH",
    ]


def test_an_old_toolkit_harms_no_wheel() -> None:
    """Nothing is built here."""
    assert said(builds(toolkit("11.8"), gcc="11.4.0")) == []


def test_another_minor_is_accepted() -> None:
    """torch accepts an nvcc of the same major."""
    assert said(builds(toolkit("12.4"), variables=(ARCH_LIST,))) == []


def test_compiler_too_new() -> None:
    """nvcc 12.4 ends at GCC 13: a warning where extensions are built, else information."""
    found = only(builds(toolkit("12.4"), gcc="14.2.0", variables=(ARCH_LIST,)))
    assert (found.id, found.severity, found.needed) == (
        "host-compiler-unsupported",
        "warning",
        "GCC 13 or older",
    )
    assert commands(found) == [
        "sudo apt-get install -y gcc-13 g++-13",
        "export CC=gcc-13 CXX=g++-13 NVCC_PREPEND_FLAGS='-ccbin g++-13'",
    ]
    assert said(builds(toolkit("12.4"), gcc="14.2.0")) == [("host-compiler-unsupported", "info")]


def test_compiler_accepted_chosen_or_unused() -> None:
    """Within the range, another one chosen by a variable, or no nvcc on PATH."""
    assert said(builds(toolkit("12.4"), gcc="13.3.0", variables=(ARCH_LIST,))) == []
    chosen = (ARCH_LIST, Variable(name="CXX", value="g++-13"))
    assert said(builds(toolkit("12.4"), gcc="14.2.0", variables=chosen)) == []
    assert said(builds(toolkit("12.4", on_path=False), gcc="14.2.0", variables=(ARCH_LIST,))) == []


def test_libcuda_that_the_linker_does_not_find() -> None:
    """Only on the linker's own words."""
    error = "/usr/bin/ld: cannot find -lcuda: No such file or directory"
    path = "/usr/lib/x86_64-linux-gnu/libcuda.so.1"
    snapshot = evolve(
        machine(frameworks=(torch("2.8.0+cu128", error=error),)),
        {"host.driver.libcuda.path": path},
    )
    found = only(snapshot)
    assert (found.id, found.found) == ("libcuda-not-linkable", "cannot find -lcuda")
    assert commands(found) == [
        "sudo ldconfig",
        "export TRITON_LIBCUDA_PATH=/usr/lib/x86_64-linux-gnu",
    ]
