"""The payload that reads an environment, in every Python that a user may have."""

from __future__ import annotations

import importlib.util
import json
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from envcheck.paths import payload
from tests.environment import sites

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType

PYTHONS = tuple(
    str(path)
    for minor in (6, 7, 8, 9, 10, 11, 12, 13)
    for path in sorted((Path.home() / ".pyenv/versions").glob(f"3.{minor}.*/bin/python3"))
) or (sys.executable,)
MARKER = "envcheck-json:"


def load() -> ModuleType:
    """The payload as a module of this process."""
    spec = importlib.util.spec_from_file_location("inspect_env", payload("inspect_env"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


INSPECT = load()


def run(
    python: str,
    *arguments: str,
    variables: Mapping[str, str] | None = None,
    folder: Path = Path("/"),
) -> dict[str, Any]:
    """Run the payload and decode what it printed."""
    done = subprocess.run(
        [python, str(payload("inspect_env")), *arguments],
        env={"PATH": "/usr/bin:/bin", **(variables or {})},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stderr == ""
    assert done.returncode == 0
    last = done.stdout.splitlines()[-1]
    assert last.startswith(MARKER)
    data: dict[str, Any] = json.loads(last[len(MARKER) :])
    return data


@pytest.mark.parametrize("python", PYTHONS, ids=lambda each: each.split("/")[-3])
def test_runs_in_every_python(python: str, tmp_path: Path) -> None:
    """The same facts from each, with files of the environment that shadow nothing."""
    site = tmp_path / "site"
    sites.dist(site, "torch", "2.11.0", requires=("numpy", 'nvidia-cudnn-cu13==9.1; "x" == "y"'))
    sites.torch_version(site, "2.11.0+cu130", cuda="13.0")
    data = run(python, variables={"PYTHONPATH": str(site)})
    minor = ".".join(Path(python).parts[-3].split(".")[:2])
    facts = data["python"]
    assert facts["version"].startswith(minor + ".")
    assert facts["tag"] == "cp" + minor.replace(".", "")
    assert facts["platform"].startswith("linux_")
    assert facts["libc"].startswith("glibc 2.")
    assert facts["prefix"] == facts["base_prefix"]
    assert facts["externally_managed"] is False
    torch = next(each for each in data["packages"] if each["name"] == "torch")
    assert torch["requires"] == ["numpy", 'nvidia-cudnn-cu13==9.1; "x" == "y"']
    assert data["versions"]["torch"]["__version__"] == "2.11.0+cu130"
    assert data["versions"]["torch"]["cuda"] == "13.0"
    assert data["versions"]["torch"]["hip"] is None


@pytest.mark.parametrize("python", [PYTHONS[0], PYTHONS[-1]], ids=["oldest", "newest"])
def test_working_directory_is_not_imported(python: str, tmp_path: Path) -> None:
    """A `json.py` where the user stands, and an empty PYTHONPATH, change nothing."""
    for name in ("json", "torch", "re", "struct", "ast"):
        sites.write(tmp_path / f"{name}.py", "raise SystemExit('imported')\n")
    sites.dist(tmp_path, "torch", "9.9.9")
    for variables in ({}, {"PYTHONPATH": ""}, {"PYTHONSAFEPATH": "1"}):
        data = run(python, variables=variables, folder=tmp_path)
        assert "9.9.9" not in [each["version"] for each in data["packages"]]


def test_thousands_of_distributions_are_read_in_a_second(tmp_path: Path) -> None:
    """A shared site folder may hold thousands."""
    for number in range(5000):
        sites.dist(tmp_path, f"package-{number}", f"1.{number}")
    started = time.monotonic()
    found = INSPECT.distributions([str(tmp_path)])
    assert time.monotonic() - started < 1.0
    assert len(found) == 5000
    assert found["package-77"]["version"] == "1.77"


def test_broken_metadata_is_survived(tmp_path: Path) -> None:
    """Name and version come from the folder's name where the file does not tell."""
    shutil.rmtree(sites.dist(tmp_path, "torch", "2.1.0"))
    (tmp_path / "torch-2.1.0.dist-info").mkdir()
    folder = sites.dist(tmp_path, "nvidia-nccl-cu12", "2.21.5")
    (folder / "METADATA").write_bytes(b"\xff\xfe\x00Version\x80: 9\n")
    (folder / "RECORD").unlink()
    sites.dist(tmp_path, "~orch", "2.0.0")
    sites.write(tmp_path / "noversion.dist-info" / "METADATA", "Name: other\n")
    sites.write(tmp_path / "file-1.0.dist-info", "")
    sites.write(tmp_path / "apex-0.1-py3.11.egg-info" / "PKG-INFO", "Name: apex\nVersion: 0.1\n")
    sites.write(tmp_path / "six-1.16.0.egg-info", "Name: six\nVersion: 1.16.0\n")
    sites.write(tmp_path / "mine.egg-link", "/home/me/mine\n.\n")
    found = INSPECT.describe([str(tmp_path)], str(tmp_path), [])
    versions = {each["name"]: each["version"] for each in found["packages"]}
    assert versions == {
        "torch": "2.1.0",
        "nvidia-nccl-cu12": "2.21.5",
        "file": "1.0",
        "apex": "0.1",
        "six": "1.16.0",
    }
    assert found["shared_files"] == {}


def test_first_of_two_sites_wins(tmp_path: Path) -> None:
    """As Python imports it: PYTHONPATH and user site before the environment."""
    for name, version in (("one", "2.2.0"), ("two", "2.1.0")):
        sites.dist(tmp_path / name, "torch", version)
        sites.torch_version(tmp_path / name, f"{version}+cu121", cuda="12.1")
    found = INSPECT.describe([str(tmp_path / "one"), str(tmp_path / "two")], str(tmp_path), [])
    assert [each["version"] for each in found["packages"]] == ["2.2.0"]
    assert found["versions"]["torch"]["__version__"] == "2.2.0+cu121"
    assert found["versions"]["torch"]["location"] == str(tmp_path / "one")


def test_files_that_two_distributions_claim(tmp_path: Path) -> None:
    """`nvidia-nccl-cu12` and `nvidia-nccl-cu13` install the same path."""
    path = "nvidia/nccl/lib/libnccl.so.2"
    for major in (12, 13):
        sites.dist(
            tmp_path, f"nvidia-nccl-cu{major}", "2.27.3", record=(path, "nvidia/__init__.py")
        )
    found = INSPECT.describe([str(tmp_path)], str(tmp_path), [])
    assert found["shared_files"] == {str(tmp_path / path): ["nvidia-nccl-cu12", "nvidia-nccl-cu13"]}


@pytest.mark.parametrize(
    ("data", "kind", "wheel"),
    [
        ({"url": "file:///src/torch", "dir_info": {"editable": True}}, "folder", None),
        ({"url": "https://host/p.git", "vcs_info": {"vcs": "git"}}, "vcs", None),
        (
            {
                "url": "https://user:secret@host/flash_attn-2.8.3%2Bcu12torch2.8-cp312.whl#sha256=1",
                "archive_info": {},
            },
            "archive",
            "flash_attn-2.8.3+cu12torch2.8-cp312.whl",
        ),
        ({"url": "https://host/p-1.tar.gz", "archive_info": {}}, "archive", None),
        ([1], "unknown", None),
        ({"url": None}, "unknown", None),
    ],
)
def test_direct_addresses(tmp_path: Path, data: Any, kind: str, wheel: str | None) -> None:
    """Only the wheel's file name is kept of an address, which may hold secrets."""
    folder = sites.dist(tmp_path, "flash-attn", "2.8.3", direct_url=data)
    facts = INSPECT.dist_info(str(tmp_path), folder.name)
    assert facts["direct_url"] == kind
    assert facts.get("wheel") == wheel
    assert "secret" not in json.dumps(facts)


def test_conda_records(tmp_path: Path) -> None:
    """Name, version and build from the file's name; the channel from the record."""
    meta = tmp_path / "conda-meta"
    channel = "https://conda.anaconda.org/conda-forge/"
    for name, text in {
        "pytorch-2.6.0-cuda126_py312_1.json": json.dumps({"channel": channel + "linux-64"}),
        "cudnn-9.8.0.87-h81d5506_1.json": json.dumps({"channel": channel + "linux-aarch64"}),
        "nccl-2.26.2-ha44e49d_0.json": json.dumps({"channel": channel + "noarch"}),
        "libtorch-2.6.0-x_0.json": json.dumps({"channel": "pytorch"}),
        "cuda-nvcc-12.8.1-0.json": "[]",
        "cuda-cudart-12.8.90-0.json": "{ truncated",
        "zlib-1.3.1-0.json": "not read",
        "history": "",
    }.items():
        sites.write(meta / name, text)
    found = {each["name"]: each for each in INSPECT.conda_packages(str(tmp_path))}
    assert {name: each.get("channel") for name, each in found.items()} == {
        "pytorch": "conda-forge",
        "cudnn": "conda-forge",
        "nccl": "conda-forge",
        "libtorch": "pytorch",
        "cuda-nvcc": None,
        "cuda-cudart": None,
        "zlib": None,
    }
    assert found["pytorch"]["version"] == "2.6.0"
    assert found["pytorch"]["build"] == "cuda126_py312_1"


@pytest.mark.parametrize(
    "text",
    ["def broken(:\n", "x = \0\n", "-" * 200_000 + "1", "__version__ = {[]: 1}\n", "(" * 5000],
    ids=["syntax", "null", "deep", "unhashable", "nested"],
)
def test_version_files_that_are_no_version_files(tmp_path: Path, text: str) -> None:
    """Nothing of them is run, and none raises."""
    path = sites.write(tmp_path / "version.py", text)
    assert not INSPECT.version_file(str(path))


def shared_objects() -> list[Path]:
    """Shared objects of this machine, some hundreds of them."""
    folders = ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/local/cuda/lib64")
    found = [path for folder in folders for path in sorted(Path(folder).glob("*.so*"))]
    files = [path for path in found if path.is_file()]
    return random.Random(1).sample(files, min(300, len(files)))  # noqa: S311 - no secret


def test_elf_headers_as_another_reader_reads_them() -> None:
    """Against pyelftools, on the libraries of this machine."""
    reader = pytest.importorskip("elftools.elf.elffile")
    compared = 0
    for path in shared_objects():
        wanted: dict[str, Any] | None = None
        with path.open("rb") as stream:
            try:
                section = next(
                    each
                    for each in reader.ELFFile(stream).iter_segments()
                    if each.header.p_type == "PT_DYNAMIC"
                )
            except Exception:
                # A linker script, a static library, ...
                assert INSPECT.elf(str(path)) is None
                continue
            wanted = {"needed": [], "soname": None, "rpath": None, "runpath": None}
            for tag in section.iter_tags():
                if tag.entry.d_tag == "DT_NEEDED":
                    wanted["needed"].append(tag.needed)
                for name in ("soname", "rpath", "runpath"):
                    if tag.entry.d_tag == f"DT_{name.upper()}":
                        wanted[name] = getattr(tag, name)
        assert INSPECT.elf(str(path)) == wanted, path
        compared += 1
    assert compared > 50


def test_damaged_elf_files_never_raise(tmp_path: Path) -> None:
    """Truncated, bit-flipped and random files are unreadable or read, no more."""
    source = next(path for path in shared_objects() if 10_000 < path.stat().st_size < 100_000)
    whole = source.read_bytes()
    rng = random.Random(2)  # noqa: S311 - no secret
    path = tmp_path / "libcudart.so.13"
    for number in range(1500):
        data = bytearray(whole[: rng.randrange(len(whole))] if number % 3 == 0 else whole)
        for _ in range(rng.randrange(40)):
            if data:
                place = rng.randrange(min(len(data), 1500 if number % 2 else len(data)))
                data[place] = rng.randrange(256)
        path.write_bytes(bytes(data))
        facts = INSPECT.elf(str(path))
        assert facts is None or set(facts) == {"needed", "soname", "rpath", "runpath"}
    for short in (b"", b"\x7fELF", b"\x7fELF\x02\x01" + b"\xff" * 58, b"\x7fELF\x01" + bytes(60)):
        path.write_bytes(short)
        assert INSPECT.elf(str(path)) is None


def test_what_is_no_file_is_passed_over(tmp_path: Path) -> None:
    """Pipes, folders and links to nothing under a library's name."""
    import os

    os.mkfifo(tmp_path / "libcudart.so.13")
    (tmp_path / "libnccl.so.2").mkdir()
    (tmp_path / "libcudnn.so.9").symlink_to("/nonexistent")
    assert INSPECT.outer_libraries([str(tmp_path)]) == []


def test_an_environment_without_its_interpreter(tmp_path: Path) -> None:
    """Another Python reads the folders of an environment whose own does not start."""
    site = tmp_path / "lib" / "python3.9" / "site-packages"
    sites.dist(site, "torch", "2.1.0")
    sites.write(tmp_path / "pyvenv.cfg", "version = 3.9.1\n")
    data = run(sys.executable, "--prefix", str(tmp_path), "--site", str(site))
    assert "python" not in data
    assert [each["name"] for each in data["packages"]] == ["torch"]
    assert data["files"] == {"pyvenv": "version = 3.9.1\n", "conda": False, "pipx": False}
