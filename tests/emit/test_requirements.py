"""What pip is given, and that pip takes it."""

from __future__ import annotations

import base64
import hashlib
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from envcheck.emit import conda, requirements
from envcheck.emit.options import Options
from tests.cli.runner import environment
from tests.emit.locks import MATRIX, example
from tests.support import evolve


def test_a_local_tag_names_the_build_and_the_index_is_added() -> None:
    made = requirements.files(example("torch-ubuntu24.04"), MATRIX, Options())
    assert made == {
        "requirements.txt": (
            "# torch 2.11.0+cu128 for Python 3.12 on linux_x86_64.\n"
            "# Made by envcheck from envcheck.lock: pip install -r requirements.txt\n"
            "--extra-index-url https://download.pytorch.org/whl/cu128\n"
            "torch==2.11.0+cu128\n"
            "torchvision==0.26.0+cu128\n"
        )
    }


def test_extras_are_kept_and_no_index_is_added_without_need() -> None:
    text = requirements.files(example("jax-debian13"), MATRIX, Options())["requirements.txt"]
    assert "index" not in text
    lines = [Requirement(line) for line in text.splitlines() if not line.startswith("#")]
    assert lines[0].name == "jax"
    assert lines[0].extras == {"cuda12"}
    assert all(str(line.specifier).startswith("==") for line in lines)


def test_what_is_compiled_stands_apart() -> None:
    made = requirements.files(example("torch-flash-attn-ubuntu24.04"), MATRIX, Options())
    assert sorted(made) == ["requirements-extensions.txt", "requirements.txt"]
    assert "--no-build-isolation" in made["requirements-extensions.txt"]
    made = conda.files(example("torch-flash-attn-ubuntu24.04"), MATRIX, Options())
    assert sorted(made) == ["environment.yml", "requirements-extensions.txt"]
    assert "flash-attn" not in made["environment.yml"].replace("requirements", "")


def wheel(folder: Path, name: str, version: str, requires: str = "") -> None:
    """A wheel that holds nothing, to be found by pip."""
    info = f"{name}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    files = {
        f"{info}/METADATA": metadata + (f"Requires-Dist: {requires}\n" if requires else ""),
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{path},sha256={_digest(text)},{len(text)}\n" for path, text in files.items())
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        for path, text in {**files, f"{info}/RECORD": f"{record}{info}/RECORD,,\n"}.items():
            archive.writestr(path, text)


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


@pytest.mark.parametrize("wanted", ["2.13.0+cpu", "2.13.0+cu130"])
def test_pip_chooses_the_build_that_is_pinned(tmp_path: Path, wanted: str) -> None:
    lock = evolve(
        example("torch-debian12"),
        {
            "stack.frameworks.0.version": "2.13.0",
            "stack.frameworks.0.variant": wanted.partition("+")[2],
            "stack.pins.0.version": wanted,
        },
    )
    made = requirements.files(lock, MATRIX, Options())["requirements.txt"]
    place = tmp_path / "requirements.txt"
    place.write_text(made, encoding="utf-8")
    for version in ("2.13.0", "2.13.0+cpu", "2.13.0+cu130", "2.13.0+cu134", "2.14.0+cpu"):
        wheel(tmp_path, "torch", version, "filelock")
    wheel(tmp_path, "filelock", "3.20.0")
    # Only the folder is asked: there may be no network.
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed"),
            *("--no-index", "--find-links", str(tmp_path), "-r", str(place)),
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=environment(PIP_CONFIG_FILE="/dev/null", PIP_FIND_LINKS=None, PIP_CONSTRAINT=None),
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == f"Would install filelock-3.20.0 torch-{wanted}"
