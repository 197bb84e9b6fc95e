"""Which copy wins, against the system's own dynamic loader."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.environment import sites

if TYPE_CHECKING:
    from collections.abc import Mapping

    from envcheck.model.environment import Library

RPATH = "-Wl,--disable-new-dtags"
RUNPATH = "-Wl,--enable-new-dtags"
TORCH_FOLDERS = (
    "$ORIGIN/../../nvidia/cu13/lib:$ORIGIN/../../nvidia/cudnn/lib"
    ":$ORIGIN/../../nvidia/nccl/lib:$ORIGIN"
)
PARENT = "libcudnn.so.9"
PART = "libcudnn_graph.so.9"
NAMES = ("libcudart.so.13", "libcublasLt.so.13", "libcublas.so.13", PARENT, PART, "libnccl.so.2")

# Loads what torch loads, in its order, lets cuDNN open its part, and prints what is mapped.
PROCESS = """
import ctypes, json, os, sys
lib = sys.argv[1]
ctypes.CDLL(lib + "/libtorch_global_deps.so", mode=ctypes.RTLD_GLOBAL)
ctypes.CDLL(lib + "/libtorch_cuda.so")
handle = ctypes.CDLL(None)
opened = handle.open_part
opened.restype = ctypes.c_int
assert opened() == 1, "no part"
paths = {l.split()[-1] for l in open("/proc/self/maps") if "/lib" in l and ".so" in l}
print(json.dumps(sorted(os.path.realpath(p) for p in paths)))
"""


def build(path: Path, *needed: Path, flags: tuple[str, ...] = (), source: str = "") -> Path:
    """Compile a shared object with a SONAME of its own that needs others."""
    path.parent.mkdir(parents=True, exist_ok=True)
    arguments = ["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(path)]
    arguments += [f"-Wl,-soname,{path.name}", "-Wl,--no-as-needed", "-Wl,--allow-shlib-undefined"]
    arguments += ["-x", "none", *map(str, needed), *flags, "-ldl"]
    text = source or f"int at_{abs(hash(str(path)))} = 1;"
    subprocess.run(arguments, input=text, text=True, check=True)
    return path


def cudnn(folder: Path, flags: tuple[str, ...]) -> Path:
    """A cuDNN whose front opens its part by dlopen."""
    build(folder / PART)
    front = (
        f'#include <dlfcn.h>\nint open_part(void) {{ return dlopen("{PART}", RTLD_NOW) != 0; }}\n'
    )
    return build(folder / PARENT, flags=flags, source=front)


class Tree(NamedTuple):
    """A fake environment with a fake torch, and a folder with second copies of everything."""

    prefix: Path
    site: Path
    other: Path


def tree(root: Path, torch_tag: str, cudnn_flags: tuple[str, ...], folders: str) -> Tree:
    """Build an environment in the layout of CUDA wheels."""
    prefix = root / "venv"
    site = sites.venv(prefix)
    cuda = site / "nvidia" / "cu13" / "lib"
    cudart = build(cuda / "libcudart.so.13")
    lt = build(cuda / "libcublasLt.so.13")
    # The wheel's cuBLAS finds its other half by DT_RUNPATH.
    cublas = build(cuda / "libcublas.so.13", lt, flags=(RUNPATH, "-Wl,-rpath,$ORIGIN"))
    front = cudnn(site / "nvidia" / "cudnn" / "lib", cudnn_flags)
    nccl = build(site / "nvidia" / "nccl" / "lib" / "libnccl.so.2")
    lib = site / "torch" / "lib"
    flags = (torch_tag, f"-Wl,-rpath,{folders}", f"-Wl,-rpath-link,{cuda}")
    build(lib / "libtorch_global_deps.so", cudart, cublas, front, flags=flags)
    c10 = build(lib / "libc10_cuda.so", cudart, flags=flags)
    build(lib / "libtorch_cuda.so", c10, cublas, front, nccl, flags=flags)
    other = root / "other"
    for name in ("libcudart.so.13", "libcublasLt.so.13", "libcublas.so.13", "libnccl.so.2"):
        build(other / name)
    cudnn(other, (RUNPATH, "-Wl,-rpath,$ORIGIN"))
    sites.torch_version(site, "2.11.0+cu130", cuda="13.0")
    sites.dist(site, "torch", "2.11.0")
    return Tree(prefix, site, other)


def loaded(prefix: Path, site: Path, variables: Mapping[str, str]) -> set[str]:
    """Real paths of CUDA libraries that a process loads."""
    output = subprocess.run(
        [str(prefix / "bin" / "python"), "-c", PROCESS, str(site / "torch" / "lib")],
        env={"PATH": "/usr/bin:/bin", **variables},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout
    return {each for each in json.loads(output) if Path(each).name in NAMES}


def predicted(prefix: Path, variables: Mapping[str, str]) -> tuple[Library, ...]:
    """Copies that the probe says win for torch."""
    found = sites.described({"VIRTUAL_ENV": str(prefix), **variables}).libraries
    assert found is not None
    return tuple(each for each in found if "torch" in each.wins_for)


@pytest.fixture(scope="module", params=["rpath", "runpath", "cudnn-without", "torch-without"])
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Tree:
    """Trees that differ in how torch and cuDNN say where they look."""
    root = tmp_path_factory.mktemp(request.param)
    tag = RUNPATH if request.param == "runpath" else RPATH
    own = () if request.param == "cudnn-without" else (RUNPATH, "-Wl,-rpath,$ORIGIN")
    folders = "$ORIGIN" if request.param == "torch-without" else TORCH_FOLDERS
    return tree(root, tag, own, folders)


def complete(where: Tree) -> bool:
    """Whether torch finds its libraries without help."""
    return "torch-without" not in str(where.prefix)


@pytest.mark.parametrize("case", ["none", "other", "cudnn-only", "dangling", "bits32", "preload"])
def test_winners_are_those_of_the_dynamic_loader(built: Tree, case: str, tmp_path: Path) -> None:
    """The memory map of a real process holds exactly the copies that are said to win."""
    variables: dict[str, str] = {}
    if case == "other":
        variables["LD_LIBRARY_PATH"] = f"/nonexistent:{built.other}/"
    elif case == "cudnn-only":
        for name in (PARENT, PART):
            (tmp_path / name).symlink_to(built.other / name)
        variables["LD_LIBRARY_PATH"] = str(tmp_path)
    elif case == "dangling":
        for name in NAMES:
            (tmp_path / name).symlink_to("/nonexistent/gone")
        variables["LD_LIBRARY_PATH"] = f"{tmp_path}:{built.other}"
    elif case == "bits32":
        for name in NAMES:
            data = bytearray((built.other / name).read_bytes())
            data[4] = 1
            (tmp_path / name).write_bytes(data)
        variables["LD_LIBRARY_PATH"] = f"{tmp_path}:{built.other}"
    elif case == "preload":
        variables["LD_PRELOAD"] = str(built.other / "libnccl.so.2")
    if not complete(built) and "LD_LIBRARY_PATH" not in variables:
        pytest.skip("torch would not start")
    if not complete(built) and case == "cudnn-only":
        pytest.skip("torch would not start")
    wins = {os.path.realpath(each.path) for each in predicted(built.prefix, variables)}
    assert wins == loaded(built.prefix, built.site, variables)
    assert {PARENT, PART} <= {Path(each).name for each in wins}


def test_another_cudnn_wins_for_the_parts_only(tmp_path: Path) -> None:
    """torch's DT_RPATH comes before LD_LIBRARY_PATH, cuDNN's DT_RUNPATH after it."""
    where = tree(tmp_path, RPATH, (RUNPATH, "-Wl,-rpath,$ORIGIN"), TORCH_FOLDERS)
    variables = {"LD_LIBRARY_PATH": str(where.other)}
    wins = {each.name: each for each in predicted(where.prefix, variables)}
    own = where.site / "nvidia"
    assert wins["cudnn"].path == str(own / "cudnn" / "lib" / PARENT)
    assert (wins["cudnn"].origin, wins["cudnn"].via) == ("wheel", "rpath")
    assert wins["cudnn_graph"].path == str(where.other / PART)
    assert (wins["cudnn_graph"].origin, wins["cudnn_graph"].via) == ("variable", "LD_LIBRARY_PATH")
    assert wins["nccl"].path == str(own / "nccl" / "lib" / "libnccl.so.2")
    assert wins["cudart"].cuda_major == 13


def test_the_interpreters_own_rpath_counts(tmp_path: Path) -> None:
    """Conda's interpreter has a DT_RPATH of `../lib`: it serves torch before LD_LIBRARY_PATH."""
    where = tree(tmp_path, RPATH, (RUNPATH, "-Wl,-rpath,$ORIGIN"), "$ORIGIN")
    folder = where.prefix / "lib"
    for name in NAMES:
        (folder / name).write_bytes((where.other / name).read_bytes())
    real = Path(sys.base_prefix) / "bin" / sites.TAG
    config = f"{sites.TAG}-config"
    flags = subprocess.run(
        [str(real.parent / config), "--includes", "--ldflags", "--embed"],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout.split()
    program = where.prefix / "bin" / "python"
    program.unlink()
    source = "#include <Python.h>\nint main(int n, char **v) { return Py_BytesMain(n, v); }\n"
    done = subprocess.run(
        ["gcc", "-x", "c", "-", "-o", str(program), RPATH, f"-Wl,-rpath,{folder}", *flags,
         f"-Wl,-rpath,{Path(sys.base_prefix) / 'lib'}", "-rdynamic"],
        input=source, text=True, check=False, capture_output=True,
    )  # fmt: skip
    if done.returncode:
        pytest.skip("this interpreter cannot be embedded")
    variables = {"LD_LIBRARY_PATH": str(where.other)}
    wins = {os.path.realpath(each.path) for each in predicted(where.prefix, variables)}
    assert wins == loaded(where.prefix, where.site, variables)
    assert str(folder / "libcudart.so.13") in wins


def test_toolkit_on_library_path_changes_nothing(tmp_path: Path) -> None:
    """`LD_LIBRARY_PATH=<toolkit>/lib64` alone leaves torch with the wheels' copies."""
    where = tree(tmp_path, RPATH, (RUNPATH, "-Wl,-rpath,$ORIGIN"), TORCH_FOLDERS)
    folder = tmp_path / "cuda-13.0" / "lib64"
    build(folder / "libcudart.so.13")
    found = sites.described(
        {"VIRTUAL_ENV": str(where.prefix), "LD_LIBRARY_PATH": str(folder)}
    ).libraries
    assert found is not None
    toolkit = next(each for each in found if each.path.startswith(str(folder)))
    assert (toolkit.origin, toolkit.wins_for, toolkit.cuda_major) == ("toolkit", (), 13)
    winner = next(each for each in found if each.name == "cudart" and each.wins_for)
    assert winner.path == str(where.site / "nvidia" / "cu13" / "lib" / "libcudart.so.13")


def test_libraries_of_old_wheels_with_hashed_names(tmp_path: Path) -> None:
    """torch 1.x bundles CUDA as `libcudart-80664282.so.10.2` beside its own libraries."""
    site = sites.venv(tmp_path / "venv")
    lib = site / "torch" / "lib"
    cudart = build(lib / "libcudart-80664282.so.10.2")
    build(lib / "libtorch_cuda.so", cudart, flags=(RPATH, "-Wl,-rpath,$ORIGIN"))
    sites.torch_version(site, "1.12.1", cuda="10.2")
    sites.dist(site, "torch", "1.12.1")
    found = predicted(tmp_path / "venv", {})
    assert [(e.name, e.version, e.cuda_major, e.origin, e.soname) for e in found] == [
        ("cudart", "10.2", 10, "bundled", "libcudart-80664282.so.10.2")
    ]


def test_torch_whose_headers_cannot_be_read_is_unresolved(tmp_path: Path) -> None:
    """No guess about winners when torch's own library is damaged."""
    from envcheck.probe.notes import Notes

    site = sites.venv(tmp_path / "venv")
    sites.write(site / "torch" / "lib" / "libtorch_cuda.so", "\x7fELF damaged")
    sites.torch_version(site, "2.11.0+cu130", cuda="13.0")
    notes = Notes()
    env = sites.described({"VIRTUAL_ENV": str(tmp_path / "venv")}, notes=notes)
    assert env.libraries is None
    assert [gap.path for gap in notes.gaps] == ["env.libraries"]
