"""Frameworks as their own files describe them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from envcheck.model.environment import Python
from envcheck.probe.frameworks import cuda_of_tag, deep_commands, read_frameworks
from envcheck.probe.notes import Notes
from tests.environment import sites

if TYPE_CHECKING:
    from envcheck.model.environment import Framework

WHEEL = "cp311-cp311-manylinux_2_28_x86_64"


def framework(prefix: Path, name: str, **more: Any) -> Framework:
    """One framework of a fake environment."""
    found = sites.described({"VIRTUAL_ENV": str(prefix)}, **more).framework(name)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("metadata", "version", "constants", "tag", "origin", "cpu_only"),
    [
        ("2.8.0+cu128", "2.8.0+cu128", {"cuda": "12.8"}, WHEEL, "framework-index", False),
        ("2.11.0", "2.11.0+cu130", {"cuda": "13.0"}, WHEEL, "index", False),
        ("2.11.0+cpu", "2.11.0+cpu", {}, WHEEL, "framework-index", True),
        ("2.8.0+rocm6.4", "2.8.0+rocm6.4", {"hip": "6.4.43482"}, WHEEL, "framework-index", False),
        ("2.8.0+xpu", "2.8.0+xpu", {"xpu": "20250101"}, WHEEL, "framework-index", False),
        (
            "2.6.0a0+df5bbc09d1.nv24.12",
            "2.6.0a0+df5bbc09d1.nv24.12",
            {"cuda": "12.6"},
            "cp312-cp312-linux_x86_64",
            "ngc",
            False,
        ),
        (
            "2.9.0a0+git1234",
            "2.9.0a0+git1234",
            {"cuda": "12.9"},
            "cp311-cp311-linux_x86_64",
            "source",
            False,
        ),
        ("2.9.0", "2.9.0", {"cuda": "12.9"}, "cp311-cp311-linux_ppc64le", "source", False),
        (
            "2.10.0.dev20251101+cu130",
            "2.10.0.dev20251101+cu130",
            {"cuda": "13.0"},
            WHEEL,
            "unknown",
            False,
        ),
    ],
)  # fmt: skip
def test_whose_build_torch_is(
    tmp_path: Path,
    metadata: str,
    version: str,
    constants: dict[str, str],
    tag: str,
    origin: str,
    cpu_only: bool,
) -> None:
    """Metadata, version file and wheel tag together tell who built it."""
    site = sites.venv(tmp_path)
    sites.dist(site, "torch", metadata, tag=tag)
    sites.torch_version(site, version, **constants)
    found = framework(tmp_path, "torch")
    assert (found.version, found.origin, found.cpu_only) == (version, origin, cpu_only)
    assert found.cuda == constants.get("cuda")
    assert found.hip == constants.get("hip")
    assert found.xpu == constants.get("xpu")
    assert found.git_version == "abc123"
    assert found.location == str(site)


def data(**facts: Any) -> dict[str, Any]:
    """What the payload says of an environment, with the parts that matter changed."""
    empty: dict[str, Any] = {"packages": [], "conda_packages": [], "versions": {}, "python": {}}
    return {**empty, **facts}


def torch_of(**facts: Any) -> Framework:
    """torch out of such facts."""
    return read_frameworks(data(**facts), Python(platform="linux_aarch64"), {}, Notes())[0]


def test_jetson_wheel() -> None:
    """Versioned as in NVIDIA's containers, but on the kernel of a Jetson."""
    version = "2.1.0a0+41361538.nv23.06"
    package = {"name": "torch", "version": version, "location": "/home/nvidia/venv"}
    versions = {"torch": {"__version__": version, "cuda": "11.4"}}
    found = torch_of(packages=[package], versions=versions, python={"tegra": True})
    assert (found.origin, found.cuda, found.cpu_only) == ("jetson", "11.4", False)
    assert torch_of(packages=[package], versions=versions).origin == "ngc"


def test_distributions_build() -> None:
    """Debian's own package."""
    place = "/usr/lib/python3/dist-packages"
    found = torch_of(
        packages=[{"name": "torch", "version": "2.6.0+dfsg", "location": place}],
        versions={"torch": {"__version__": "2.6.0+debian", "cuda": None, "location": place}},
    )
    assert (found.origin, found.cpu_only) == ("distribution", True)


@pytest.mark.parametrize(
    ("channel", "installer", "origin"),
    [
        ("conda-forge", "conda", "conda-forge"),
        ("pytorch", None, "conda"),
        ("main", "conda", "conda"),
        ("conda-forge", "pip", "index"),
    ],
)
def test_conda_builds(channel: str, installer: str | None, origin: str) -> None:
    """By the channel, unless pip put another over it."""
    found = torch_of(
        packages=[{"name": "torch", "version": "2.6.0", "installer": installer, "build": WHEEL}],
        conda_packages=[{"name": "pytorch", "version": "2.6.0", "channel": channel}],
        versions={"torch": {"__version__": "2.6.0", "cuda": "12.6"}},
    )
    assert (found.origin, found.cuda) == (origin, "12.6")


@pytest.mark.parametrize(
    ("direct", "tag", "origin"),
    [
        ("archive", WHEEL, "framework-index"),
        ("archive", "cp311-cp311-linux_x86_64", "unknown"),
        ("folder", WHEEL, "unknown"),
    ],
)
def test_torch_installed_by_its_address(direct: str, tag: str, origin: str) -> None:
    """A published wheel stays one when it was installed from a file."""
    package = {"name": "torch", "version": "2.8.0+cu128", "direct_url": direct, "build": tag}
    versions = {"torch": {"__version__": "2.8.0+cu128", "cuda": "12.8"}}
    assert torch_of(packages=[package], versions=versions).origin == origin


def test_torch_without_a_version_file() -> None:
    """CUDA from the local tag; whether it is a CPU build is not known."""
    found = torch_of(packages=[{"name": "torch", "version": "2.8.0+cu128", "build": WHEEL}])
    assert (found.version, found.cuda, found.cpu_only) == ("2.8.0+cu128", "12.8", None)


def test_pins_hold_for_the_target(tmp_path: Path) -> None:
    """Markers are evaluated for the target, not for the interpreter that runs envcheck."""
    site = sites.venv(tmp_path)
    requires = (
        'nvidia-cudnn-cu12==8.9.2.26; platform_system == "Windows"',
        'nvidia-cudnn-cu13 (==9.15.1.9) ; platform_system == "Linux"',
        "nvidia-cudnn-frontend==1.0",
        'nvidia-nccl-cu12==2.19.3; python_version < "3.0"',
        'nvidia-nccl-cu13==2.28.9; platform_machine == "x86_64" or platform_machine == "aarch64"',
    )
    sites.dist(site, "torch", "2.11.0", requires=requires)
    sites.torch_version(site, "2.11.0+cu130", cuda="13.0")
    found = framework(tmp_path, "torch")
    assert (found.cudnn, found.nccl) == ("9.15.1.9", "2.28.9")


@pytest.mark.parametrize(
    ("packages", "cuda", "cpu_only"),
    [
        ({"jax": "0.8.1", "jaxlib": "0.8.1"}, None, True),
        ({"jax": "0.8.1", "jaxlib": "0.8.1", "jax-cuda12-plugin": "0.8.1"}, "12", False),
        ({"jax": "0.8.1", "jaxlib": "0.8.1", "jax-cuda13-plugin": "0.8.1"}, "13", False),
        ({"jax": "0.8.1", "jaxlib": "0.8.1", "jax-rocm7-plugin": "0.8.1"}, None, False),
        ({"jax": "0.8.1", "jaxlib": "0.8.1", "libtpu": "0.0.30"}, None, False),
        ({"jax": "0.3.25", "jaxlib": "0.3.25+cuda11.cudnn82"}, "11", False),
    ],
)
def test_jax(tmp_path: Path, packages: dict[str, str], cuda: str | None, cpu_only: bool) -> None:
    """Its plugin says which CUDA it is for."""
    site = sites.venv(tmp_path)
    for name, version in packages.items():
        sites.dist(site, name, version)
    found = framework(tmp_path, "jax")
    assert (found.version, found.cuda, found.cpu_only) == (packages["jax"], cuda, cpu_only)


def test_extensions(tmp_path: Path) -> None:
    """CUDA from version, name, or the file name of the wheel that was installed."""
    site = sites.venv(tmp_path)
    sites.dist(site, "torchvision", "0.23.0+cu128")
    sites.dist(site, "cupy-cuda12x", "13.6.0")
    wheel = "flash_attn-2.8.3+cu12torch2.8cxx11abiTRUE-cp312-cp312-linux_x86_64.whl"
    url = f"https://host/{wheel.replace('+', '%2B')}"
    sites.dist(site, "flash-attn", "2.8.3", direct_url={"url": url, "archive_info": {}})
    env = sites.described({"VIRTUAL_ENV": str(tmp_path)})
    assert {each.name: each.cuda for each in env.frameworks or ()} == {
        "torchvision": "12.8",
        "cupy-cuda12x": "12",
        "flash-attn": "12",
    }
    package = env.package("flash-attn")
    assert package is not None
    assert package.build == wheel


def test_files_of_two_distributions_have_no_known_version(tmp_path: Path) -> None:
    """The last one installed won; which one that was is not recorded."""
    site = sites.venv(tmp_path)
    path = "nvidia/nccl/lib/libnccl.so.2"
    for major, version in (("12", "2.27.5"), ("13", "2.28.9")):
        sites.dist(site, f"nvidia-nccl-cu{major}", version, record=(path,))
    sites.write(site / path, "no ELF")
    env = sites.described({"VIRTUAL_ENV": str(tmp_path)})
    assert [(e.path, e.packages) for e in env.shared_files or ()] == [
        (str(site / path), ("nvidia-nccl-cu12", "nvidia-nccl-cu13"))
    ]
    assert [(e.name, e.version, e.cuda_major, e.origin) for e in env.libraries or ()] == [
        ("nccl", None, None, "wheel")
    ]


def test_version_of_a_wheels_library(tmp_path: Path) -> None:
    """From the distribution that owns the file, though its SONAME has the major only."""
    site = sites.venv(tmp_path)
    path = "nvidia/cudnn/lib/libcudnn.so.9"
    sites.dist(site, "nvidia-cudnn-cu12", "9.10.2.21", record=(path,))
    sites.write(site / path, "no ELF")
    found = sites.described({"VIRTUAL_ENV": str(tmp_path)}).libraries
    assert [(e.name, e.version, e.cuda_major, e.package) for e in found or ()] == [
        ("cudnn", "9.10.2.21", 12, "nvidia-cudnn-cu12")
    ]


@pytest.mark.parametrize(
    ("tag", "cuda"),
    [("cu128", "12.8"), ("cu12torch2.8", "12"), ("cuda111.cudnn805", "11.1"), ("cpu", None),
     ("cudnn82", None), ("", None), ("pt25cu124", "12.4")],
)  # fmt: skip
def test_cuda_of_tags(tag: str, cuda: str | None) -> None:
    """The release that a local tag names."""
    assert cuda_of_tag(tag) == cuda


TORCH = """
import os, sys, types
__version__ = "2.11.0+cu130"
version = types.SimpleNamespace(cuda="13.0")
def refuse(): raise RuntimeError("cuDNN version incompatibility")
cuda = types.SimpleNamespace(
    get_arch_list=lambda: ["sm_90", "compute_120"], is_available=lambda: True,
    nccl=types.SimpleNamespace(version=lambda: (2, 28, 9)))
backends = types.SimpleNamespace(cudnn=types.SimpleNamespace(version={cudnn}))
"""


@pytest.mark.parametrize(
    ("code", "error", "available"),
    [
        (TORCH.replace("{cudnn}", "lambda: 91501"), None, True),
        (TORCH.replace("{cudnn}", "refuse"), None, True),
        ("raise ImportError('libcudart.so.13: cannot open')", "ImportError: libcudart.so.13", None),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "was ended by SIGSEGV", None),
        ("import os; os._exit(7)", "ended with exit status 7", None),
    ],
    ids=["works", "refuses", "import-error", "crash", "exit"],
)
def test_deep(tmp_path: Path, code: str, error: str | None, available: bool | None) -> None:
    """What torch says itself, in a child that may die."""
    site = sites.venv(tmp_path)
    sites.dist(site, "torch", "2.11.0")
    sites.torch_version(site, "2.11.0+cu130", cuda="13.0")
    sites.write(site / "torch" / "__init__.py", code)
    found = framework(tmp_path, "torch", deep=True)
    assert found.version == "2.11.0+cu130"
    assert found.gpu_available is available
    assert found.arches == (("sm_90", "compute_120") if available else None)
    if error is None:
        assert found.error is None
    else:
        assert (found.error or "").startswith(error)


def test_deep_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The child is stopped; the files' facts stay, and the gap is told."""
    import dataclasses

    monkeypatch.setattr(
        "envcheck.probe.environment.deep_commands",
        lambda *a: tuple(dataclasses.replace(each, timeout=1.0) for each in deep_commands(*a)),
    )
    site = sites.venv(tmp_path)
    sites.dist(site, "torch", "2.11.0")
    sites.torch_version(site, "2.11.0+cu130", cuda="13.0")
    sites.write(site / "torch" / "__init__.py", "import time; time.sleep(60)")
    notes = Notes()
    found = framework(tmp_path, "torch", deep=True, notes=notes)
    assert found.error == "did not answer within 1 s and was stopped"
    assert found.cuda == "13.0"
    assert "env.frameworks.torch" in [gap.path for gap in notes.gaps]


def test_real_torch(tmp_path: Path) -> None:
    """A published wheel, installed by pip."""
    prefix = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(prefix)], check=True)
    python = str(prefix / "bin" / "python")
    done = subprocess.run(
        [python, "-m", "pip", "install", "-q", "--no-deps", "--no-compile", "torch==2.13.0"],
        check=False,
        capture_output=True,
        timeout=170,
    )
    if done.returncode:
        pytest.skip("no torch to install here")
    found = framework(prefix, "torch")
    if not found.version.endswith("+cpu"):
        pytest.skip("the wheel at hand is no CPU build")
    assert (found.version, found.cuda, found.cpu_only) == ("2.13.0+cpu", None, True)
    assert found.origin == "framework-index"
    assert found.git_version is not None
    assert len(found.git_version) == 40
    assert found.location == str(prefix / "lib" / sites.TAG / "site-packages")
