"""What builds say of themselves, and interpreters and toolkits in unusual places."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from envcheck.errors import UsageError
from envcheck.probe.live import Live
from envcheck.probe.notes import Notes
from envcheck.probe.target import choose_target
from envcheck.probe.toolkits import read_toolkits
from tests.environment import sites
from tests.probe.fake import Fake, quiet

BUILD_INFO = '''# Copyright 2015
"""Auto-generated module providing information about the build."""
import collections

build_info = collections.OrderedDict([('cpu_compiler', 'clang'), {cuda}, ('is_rocm_build', False)])
'''
ON_CUDA = (
    "('cuda_compute_capabilities', ['sm_60', 'sm_89', 'compute_90']), ('cuda_version', '12.5.1'), "
    "('cudnn_version', '9'), ('is_cuda_build', True)"
)


def tensorflow(root: Path, constants: str, name: str = "tensorflow") -> tuple[object, ...]:
    site = sites.venv(root / "venv")
    sites.dist(site, name, "2.21.0")
    place = site / "tensorflow" / "python" / "platform" / "build_info.py"
    sites.write(place, BUILD_INFO.format(cuda=constants))
    (found,) = sites.described({"VIRTUAL_ENV": str(root / "venv")}).frameworks or ()
    return found.name, found.cuda, found.cudnn, found.arches, found.cpu_only


def test_tensorflow_for_cuda(tmp_path: Path) -> None:
    assert tensorflow(tmp_path, ON_CUDA) == (
        "tensorflow",
        "12.5",
        "9",
        ("sm_60", "sm_89", "compute_90"),
        False,
    )


def test_tensorflow_for_the_cpu(tmp_path: Path) -> None:
    """Its macOS and CPU wheels have the same name and say it in the file."""
    answer = tensorflow(tmp_path, "('is_cuda_build', False)")
    assert answer == ("tensorflow", None, None, None, True)


def test_tensorflow_that_does_not_say(tmp_path: Path) -> None:
    """A file of another form is no reason to guess."""
    answer = tensorflow(tmp_path, "('cuda_version', '12.5.1')")
    assert answer == ("tensorflow", None, None, None, None)


def test_companions_carry_the_variant_that_their_metadata_lacks(tmp_path: Path) -> None:
    """Wheels of the index have no local version in their metadata, and one in `version.py`."""
    site = sites.venv(tmp_path / "venv")
    for name, version, said in (
        ("torchvision", "0.26.0", "0.26.0+cu130"),
        ("torchaudio", "2.11.0", "2.10.0+cu128"),
    ):
        sites.dist(site, name, version)
        sites.write(site / name / "version.py", f"__version__ = '{said}'\n")
    found = sites.described({"VIRTUAL_ENV": str(tmp_path / "venv")}).frameworks or ()
    assert [(e.name, e.version, e.cuda, e.origin) for e in found] == [
        ("torchvision", "0.26.0+cu130", "13.0", "index"),
        # A file of another release than the one installed is a leftover.
        ("torchaudio", "2.11.0", None, "index"),
    ]


def flags(root: Path, version: str, installer: str | None) -> tuple[str, ...] | None:
    site = sites.venv(root / "venv")
    sites.torch_version(site, version, cuda="12.8")
    sites.dist(site, "torch", version, installer=installer)
    library = site / "torch" / "lib" / "libtorch_python.so"
    library.parent.mkdir(parents=True)
    noise = b"\0sm_x\0sm_90 \0compute_type\0_sm_10\0sm_5 more\0"
    library.write_bytes(noise * 99 + b"\0sm_80 sm_90a sm_120f compute_120\0" + noise)
    (found,) = sites.described({"VIRTUAL_ENV": str(root / "venv")}).frameworks or ()
    return found.arches


@pytest.mark.parametrize(
    ("version", "installer"),
    [
        ("2.8.0", None),
        ("2.8.0", "conda"),
        ("2.8.0a0+5228986c39.nv25.05", "pip"),
        ("2.9.0a0+git1", "pip"),
    ],
)
def test_builds_that_no_table_knows_list_their_architectures(
    tmp_path: Path, version: str, installer: str | None
) -> None:
    assert flags(tmp_path, version, installer) == ("sm_80", "sm_90a", "sm_120f", "compute_120")


def test_published_wheels_are_not_searched(tmp_path: Path) -> None:
    """It would take longer than everything else, and tables have theirs."""
    assert flags(tmp_path, "2.8.0+cu128", "pip") is None


def test_an_interpreter_that_fails_has_its_files_read(tmp_path: Path) -> None:
    """A venv whose Python was rebuilt, or lacks a library, still holds what it holds."""
    site = sites.venv(tmp_path / "venv")
    sites.torch_version(site, "2.8.0+cu128", cuda="12.8")
    sites.dist(site, "torch", "2.8.0")
    for name in ("python", "python3"):
        (tmp_path / "venv" / "bin" / name).unlink()
    program = sites.write(
        tmp_path / "venv" / "bin" / "python",
        "#!/bin/sh\necho 'error while loading shared libraries: libpython3.9.so' >&2\nexit 127\n",
    )
    program.chmod(0o755)
    notes = Notes()
    env = sites.described({"VIRTUAL_ENV": str(tmp_path / "venv")}, notes=notes)
    words = (
        f"{program}: ended with exit status 127: error while loading shared libraries: "
        "libpython3.9.so"
    )
    assert env.python.error == words
    assert [(e.name, e.version) for e in env.frameworks or ()] == [("torch", "2.8.0+cu128")]
    assert ("env.python.version", words) in [(each.path, each.reason) for each in notes.gaps]


def test_a_program_that_is_no_python_is_a_gap(tmp_path: Path) -> None:
    program = sites.write(tmp_path / "bin" / "tool", "#!/bin/sh\nexit 3\n")
    program.chmod(0o755)
    notes = Notes()
    env = sites.described({}, python=str(program), notes=notes)
    assert (env.packages, env.frameworks) == (None, None)
    assert [(e.path, e.reason) for e in notes.gaps] == [
        ("env", f"{program}: ended with exit status 3")
    ]


def test_an_empty_option_names_nothing() -> None:
    with pytest.raises(UsageError, match="--python: names nothing"):
        choose_target(Live(variables={"PATH": "/usr/bin"}), "", Notes())


PYENV = "/home/u/.pyenv"


def shimmed(files: dict[str, str], **variables: str) -> str | None:
    """What is chosen with pyenv's shims first on PATH."""
    installed = ("3.10.13", "3.11.7", "3.11.11", "3.9.18")
    programs = {f"{PYENV}/versions/{each}/bin/python3": "" for each in installed}
    source = Fake(
        {f"{PYENV}/shims/python3": "", "/usr/bin/python": "", **programs, **files},
        variables={"PATH": f"{PYENV}/shims:/usr/bin", **variables},
    )
    return choose_target(source, None, Notes()).interpreter


@pytest.mark.parametrize(
    ("files", "variables", "version"),
    [
        ({f"{PYENV}/version": "3.10.13\n"}, {}, "3.10.13"),
        ({f"{PYENV}/version": "3.10.13\n"}, {"PYENV_VERSION": "3.9.18:3.10.13"}, "3.9.18"),
        ({f"{PYENV}/version": "2.7.18\n3.11\n"}, {}, "3.11.11"),
        (
            {f"{PYENV}/version": "3.10.13\n", "/projects/a/.python-version": "3.11.7\n"},
            {"PWD": "/projects/a/b/c"},
            "3.11.7",
        ),
        (
            {f"{PYENV}/version": "3.10.13\n", "/projects/a/.python-version": "3.11.7\n"},
            {"PWD": "/projects/other"},
            "3.10.13",
        ),
    ],
)
def test_the_interpreter_behind_a_shim(
    files: dict[str, str], variables: dict[str, str], version: str
) -> None:
    """pyenv decides by variable, folder, and the choice for all folders."""
    assert shimmed(files, **variables) == f"{PYENV}/versions/{version}/bin/python3"


@pytest.mark.parametrize("text", ["system\n", "3.7.1\n", ""])
def test_a_shim_that_says_nothing_known_is_asked_itself(text: str) -> None:
    assert shimmed({f"{PYENV}/version": text}) == f"{PYENV}/shims/python3"


def test_the_shim_of_this_machine(tmp_path: Path) -> None:
    """Against pyenv itself, where it is installed."""
    root = Path.home() / ".pyenv"
    if not (root / "shims" / "python3").exists():
        pytest.skip("no pyenv here")
    import subprocess

    for version in sorted(each.name for each in (root / "versions").glob("3.*"))[:3]:
        (tmp_path / ".python-version").write_text(f"{version}\n")
        variables = {
            "PATH": f"{root}/shims:/usr/bin:/bin",
            "PWD": str(tmp_path),
            "HOME": str(Path.home()),
        }
        real = subprocess.run(
            ["python3", "-c", "import sys; print(sys.executable)"],
            env={**variables, "PYENV_ROOT": str(root)},
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        ).stdout.strip()
        chosen = choose_target(Live(variables=variables), None, Notes()).interpreter
        assert chosen is not None
        assert os.path.realpath(chosen) == os.path.realpath(real)


def test_a_toolkit_wherever_path_leads() -> None:
    """Modules and distributions put nvcc elsewhere than under /usr/local."""
    source = Fake(
        {
            "/apps/cuda/12.4/bin/nvcc": "",
            "/apps/cuda/12.4/version.json": '{"cuda": {"version": "12.4.1"}}',
            "/usr/local/cuda-13.0/bin/nvcc": "",
        },
        variables={"PATH": "/apps/cuda/12.4/bin:/usr/bin"},
    )
    found = read_toolkits(quiet(source)[0], None)
    assert [(e.root, e.version, e.on_path) for e in found] == [
        ("/usr/local/cuda-13.0", "13.0", False),
        ("/apps/cuda/12.4", "12.4.1", True),
    ]


def test_a_toolkit_of_the_distribution_and_of_conda() -> None:
    for root, header in (("/usr", "include"), ("/env", "targets/x86_64-linux/include")):
        source = Fake(
            {f"{root}/bin/nvcc": "", f"{root}/{header}/cuda.h": "#define CUDA_VERSION 11080\n"},
            variables={"PATH": f"{root}/bin"},
        )
        (found,) = read_toolkits(quiet(source)[0], root)
        assert (found.root, found.version, found.on_path, found.via) == (
            root,
            "11.8",
            True,
            f"{root}/{header}/cuda.h",
        )
