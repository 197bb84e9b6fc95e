"""Libraries that frameworks open by path, and cuDNN's parts, against the system's own loader."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from envcheck.probe.driver_files import LDCONFIG
from envcheck.probe.live import Live
from tests.environment import sites
from tests.environment.test_loader import RPATH, RUNPATH, build
from tests.environment.test_payload import run

if TYPE_CHECKING:
    from collections.abc import Mapping

CUDA = (
    "libcublasLt.so.13",
    "libcublas.so.13",
    "libnvrtc.so.13",
    "libcudart.so.13",
    "libcupti.so.13",
    "libnvJitLink.so.13",
    "libcusparse.so.12",
)
ORIGIN = (RUNPATH, "-Wl,-rpath,$ORIGIN")
FOLDERS = "-Wl,-rpath,$ORIGIN/../../nvidia/cu13/lib:$ORIGIN/../../nvidia/cudnn/lib:$ORIGIN"

# Forms of the same function in torch's releases: what is opened, and when, differs.
EVERYTHING = """
def _preload_cuda_lib(folder, name, required=True):
    for path in sys.path:
        here = os.path.join(path, "nvidia")
        found = glob.glob(os.path.join(here, folder, "lib", name))
        found += glob.glob(os.path.join(here, "cu13", "lib", name))
        if found:
            ctypes.CDLL(found[0])
            return
    if required:
        raise ValueError(name)


def _preload_cuda_deps(err=None):
    cuda_libs: list[tuple[str, str]] = [
        ("cublas", "libcublasLt.so.*[0-9]"),
        ("cublas", "libcublas.so.*[0-9]"),
        ("cudnn", "libcudnn.so.*[0-9]"),
        ("cuda_nvrtc", "libnvrtc.so.*[0-9]"),
        ("cuda_runtime", "libcudart.so.*[0-9]"),
        ("cuda_cupti", "libcupti.so.*[0-9]"),
        ("nvjitlink", "libnvJitLink.so.*[0-9]"),
        ("cusparse", "libcusparse.so.*[0-9]"),
    ]
    for folder, name in cuda_libs:
        _preload_cuda_lib(folder, name)


def _load_global_deps():
    path = os.path.join(os.path.dirname(__file__), "lib", "libtorch_global_deps.so")
    try:
        ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
        try:
            with open("/proc/self/maps") as f:
                _maps = f.read()
            if "libcudart.so" not in _maps:
                return
            _preload_cuda_deps()
        except Exception:
            pass
    except OSError as err:
        _preload_cuda_deps(err)
        ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)


after = True
"""
SOME = """
def _preload_cuda_deps(lib_folder, lib_name):
    for path in sys.path:
        found = glob.glob(os.path.join(path, "nvidia", "cu13", "lib", lib_name))
        found += glob.glob(os.path.join(path, "nvidia", lib_folder, "lib", lib_name))
        if found:
            ctypes.CDLL(found[0])
            return
    raise ValueError(lib_name)


def _load_global_deps() -> None:
    path = os.path.join(os.path.dirname(__file__), "lib", "libtorch_global_deps.so")
    try:
        ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
        try:
            if "RELEASE" not in ["12.4", "13.0"]: return
            with open("/proc/self/maps") as f:
                _maps = f.read()
            if "nvidia/cu13/lib/libcudart.so" not in _maps:
                return
            _preload_cuda_deps("nvjitlink", "libnvJitLink.so.*[0-9]")
        except Exception:
            pass
    except OSError as err:
        cuda_libs: Dict[str, str] = {
            "cublas": "libcublas.so.*[0-9]",
            "cuda_runtime": "libcudart.so.*[0-9]",
            "nvjitlink": "libnvJitLink.so.*[0-9]",
            "cusparse": "libcusparse.so.*[0-9]",
        }
        for lib_folder, lib_name in cuda_libs.items():
            _preload_cuda_deps(lib_folder, lib_name)
        ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)


after = True
""".replace('"RELEASE"', "version.cuda")
NOTHING = """
def _load_global_deps():
    path = os.path.join(os.path.dirname(__file__), "lib", "libtorch_global_deps.so")
    ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)


after = True
"""
START = "import ctypes, glob, os, sys\nfrom torch import version\n"
# A map may hold two copies of one name. Asked for it, the loader tells which one it stands for.
PROCESS = """
import ctypes, json, os, sys, torch
torch._load_global_deps()
ctypes.CDLL(os.path.dirname(torch.__file__) + "/lib/libtorch_cuda.so")

class LinkMap(ctypes.Structure):
    _fields_ = [("address", ctypes.c_void_p), ("name", ctypes.c_char_p)]

process = ctypes.CDLL(None)
process.dlopen.restype = ctypes.c_void_p
process.dlinfo.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]
found = []
for name in sys.argv[1:]:
    handle = process.dlopen(name.encode(), os.RTLD_NOLOAD | os.RTLD_NOW)
    if handle:
        entry = ctypes.POINTER(LinkMap)()
        assert process.dlinfo(handle, 2, ctypes.byref(entry)) == 0
        found.append(os.path.realpath(os.fsdecode(entry.contents.name)))
print(json.dumps(found))
"""


def environment(
    root: Path, source: str, folders: str, without: tuple[str, ...] = ()
) -> tuple[Path, Path]:
    """An environment whose torch is a few libraries and one function; and its other copies."""
    prefix = root / "venv"
    site = sites.venv(prefix)
    cuda = site / "nvidia" / "cu13" / "lib"
    made: dict[str, Path] = {}
    for name in CUDA:
        needs = {"libcublas.so.13": "libcublasLt.so.13", "libcusparse.so.12": "libnvJitLink.so.13"}
        needed = (made[needs[name]],) if name in needs else ()
        made[name] = build(cuda / name, *needed, flags=ORIGIN)
    front = build(site / "nvidia" / "cudnn" / "lib" / "libcudnn.so.9")
    lib = site / "torch" / "lib"
    flags = (RPATH, folders, f"-Wl,-rpath-link,{cuda}")
    first = [made[name] for name in ("libcudart.so.13", "libcublas.so.13")]
    build(lib / "libtorch_global_deps.so", *first, flags=flags)
    # cuBLAS before its other half: which copy of that wins hangs on who asks first.
    build(
        lib / "libtorch_cuda.so", made["libcusparse.so.12"], made["libcublas.so.13"], front,
        flags=flags,
    )  # fmt: skip
    for name in without:
        next((site / "nvidia").glob(f"*/lib/{name}")).unlink()
    other = root / "other"
    for name in CUDA:
        build(other / name)
    sites.torch_version(site, "2.11.0+cu130", cuda="13.0")
    sites.write(site / "torch" / "__init__.py", START + source)
    sites.dist(site, "torch", "2.11.0")
    return prefix, other


def loaded(prefix: Path, variables: Mapping[str, str]) -> set[str]:
    """Real paths of what the names of CUDA's libraries stand for in a process with this torch."""
    done = subprocess.run(
        [str(prefix / "bin" / "python"), "-c", PROCESS, *CUDA, "libcudnn.so.9"],
        env={"PATH": "/usr/bin:/bin", **variables},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return set(json.loads(done.stdout))


def predicted(prefix: Path, variables: Mapping[str, str]) -> set[str]:
    # The processes here see this machine's cache, which may hold a toolkit.
    cache = Live().run(LDCONFIG)
    found = sites.described({"VIRTUAL_ENV": str(prefix), **variables}, cache=cache).libraries
    assert found is not None
    return {os.path.realpath(each.path) for each in found if "torch" in each.wins_for}


@pytest.mark.parametrize("help", [False, True], ids=["alone", "library-path"])
@pytest.mark.parametrize(
    ("source", "folders", "without"),
    [
        (EVERYTHING, FOLDERS, ()),
        (SOME, FOLDERS, ()),
        (NOTHING, FOLDERS, ()),
        # The first library that is not there ends the list.
        (EVERYTHING, FOLDERS, ("libcupti.so.13",)),
        # Without a search path the first attempt fails, and all are opened by path.
        (EVERYTHING, "-Wl,-rpath,$ORIGIN", ()),
    ],
    ids=["everything", "some", "nothing", "one-missing", "no-search-path"],
)
def test_winners_are_those_of_a_process(
    tmp_path: Path, source: str, folders: str, without: tuple[str, ...], help: bool
) -> None:
    """Each name stands for exactly the copy that is said to win."""
    prefix, other = environment(tmp_path, source, folders, without)
    variables = {"LD_LIBRARY_PATH": str(other)} if help else {}
    assert predicted(prefix, variables) == loaded(prefix, variables)


def test_what_torch_opens_by_path_is_no_longer_shadowed(tmp_path: Path) -> None:
    """The toolkit's nvJitLink wins for a torch that opens none by path, and for no other."""
    for name, source, wins in (("old", NOTHING, True), ("new", EVERYTHING, False)):
        prefix, other = environment(tmp_path / name, source, FOLDERS)
        found = sites.described(
            {"VIRTUAL_ENV": str(prefix), "LD_LIBRARY_PATH": str(other)}
        ).libraries
        assert found is not None
        jit = next(each for each in found if each.name == "nvjitlink" and each.wins_for)
        assert jit.path.startswith(str(other)) is wins
        assert jit.via == ("LD_LIBRARY_PATH" if wins else "framework")


def test_search_folders_outside_the_environment_are_read(tmp_path: Path) -> None:
    """A torch that somebody built finds the toolkit by its DT_RUNPATH."""
    prefix, other = environment(tmp_path, NOTHING, FOLDERS)
    lib = next((prefix / "lib").glob("python3*/site-packages/torch/lib"))
    for name in ("libtorch_global_deps.so", "libtorch_cuda.so"):
        (lib / name).unlink()
    cudart, blas = other / "libcudart.so.13", other / "libcublas.so.13"
    build(lib / "libtorch_global_deps.so", cudart, flags=(RUNPATH, f"-Wl,-rpath,{other}"))
    build(lib / "libtorch_cuda.so", blas, flags=(RUNPATH, f"-Wl,-rpath,{other}"))
    assert predicted(prefix, {}) == {str(cudart), str(blas)} == loaded(prefix, {})


def test_how_releases_of_torch_open_libraries(tmp_path: Path) -> None:
    """What is read out of the source of each form."""
    found = {}
    for name, source in (("everything", EVERYTHING), ("some", SOME), ("nothing", NOTHING)):
        site = tmp_path / name
        sites.torch_version(site, "2.11.0+cu130", cuda="13.0")
        sites.write(site / "torch" / "__init__.py", START + source)
        answer = run(sys.executable, "--prefix", str(tmp_path), "--site", str(site))
        found[name] = answer["loading"]["torch"]
    everything = found["everything"]
    assert everything["always"][:2] == [
        ["cublas", "libcublasLt.so.*[0-9]"],
        ["cublas", "libcublas.so.*[0-9]"],
    ]
    assert len(everything["always"]) == 8
    assert everything["after_failure"] == everything["always"]
    assert (everything["releases"], everything["marker"]) == (None, "libcudart.so")
    some = found["some"]
    assert some["always"] == [["nvjitlink", "libnvJitLink.so.*[0-9]"]]
    assert [each[0] for each in some["after_failure"]] == [
        "cublas",
        "cuda_runtime",
        "nvjitlink",
        "cusparse",
    ]
    assert some["releases"] == ["12.4", "13.0"]
    assert some["marker"] == "nvidia/cu13/lib/libcudart.so"
    assert found["nothing"] == {
        "always": [],
        "after_failure": [],
        "releases": None,
        "marker": "",
    }


def test_how_jax_opens_libraries(tmp_path: Path) -> None:
    """Folder and name, in the order of its plugin."""
    text = (
        "def _load(module, libraries):\n  pass\n\n\ndef _load_nvidia_libraries():\n"
        '  _load("cublas", ["libcublas.so.12", "libcublasLt.so.12"])\n'
        "  _load('cu13', ['libcudart.so.13'])\n"
    )
    sites.write(tmp_path / "jax_plugins" / "xla_cuda13" / "__init__.py", text)
    answer = run(sys.executable, "--prefix", str(tmp_path), "--site", str(tmp_path))
    assert answer["loading"] == {
        "torch": None,
        "jax": [
            ["cublas", "libcublas.so.12"],
            ["cublas", "libcublasLt.so.12"],
            ["cu13", "libcudart.so.13"],
        ],
    }


def test_search_paths_of_any_length_are_read_whole(tmp_path: Path) -> None:
    """TensorFlow's has twenty thousand characters."""
    folders = ":".join(f"$ORIGIN/../nvidia/part{number}/lib" for number in range(900))
    library = build(tmp_path / "lib" / "libcudart.so.13", flags=(RUNPATH, f"-Wl,-rpath,{folders}"))
    answer = run(sys.executable, "--prefix", str(tmp_path), "--site", str(tmp_path / "none"))
    assert [each["path"] for each in answer["libraries"]] == [str(library)]
    assert answer["libraries"][0]["runpath"] == folders
    assert len(folders) > 20_000


def test_code_for_another_processor_is_passed_over(tmp_path: Path) -> None:
    """As the loader does, which goes on searching."""
    library = build(tmp_path / "lib" / "libcudart.so.13")
    data = bytearray(library.read_bytes())
    data[18:20] = b"\x16\x00"
    library.write_bytes(data)
    answer = run(sys.executable, "--prefix", str(tmp_path), "--site", str(tmp_path / "none"))
    assert answer["libraries"] == []


def test_names_that_are_no_text(tmp_path: Path) -> None:
    """A folder's name may be any bytes."""
    site = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9"))
    sites.dist(site, "torch", "2.1.0")
    answer = run(sys.executable, "--prefix", str(tmp_path), "--site", str(site))
    assert [each["location"] for each in answer["packages"]] == [f"{tmp_path}/caf?"]
