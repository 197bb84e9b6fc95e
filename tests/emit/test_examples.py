"""The committed examples: what envcheck emits, to the byte, and what linters say of it."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from envcheck.matrix.schema import CudaImage, FrameworkImage, SystemImage
from tests.emit.locks import EXAMPLES, MATRIX, ROOT

BIN = Path(sys.executable).parent
DOCKERFILES = sorted(EXAMPLES.rglob("Dockerfile"))
YAML = sorted([*EXAMPLES.rglob("*.yaml"), *EXAMPLES.rglob("*.yml")])
COMPOSE = sorted(EXAMPLES.rglob("compose.yaml"))


def name(path: Path) -> str:
    return str(path.relative_to(EXAMPLES).parent)


def test_they_are_what_is_emitted_from_their_locks() -> None:
    place = ROOT / "tools" / "emit_examples.py"
    spec = importlib.util.spec_from_file_location("emit_examples", place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made = module.examples()
    there = {
        path.relative_to(EXAMPLES).as_posix(): path.read_text(encoding="utf-8")
        for path in EXAMPLES.rglob("*")
        if path.is_file() and path.name != "envcheck.lock"
    }
    assert sorted(made) == sorted(there)
    for path, content in there.items():
        assert made[path] == content, path


def test_they_cover_every_profile_framework_and_kind_of_system() -> None:
    text = {name(path): path.read_text(encoding="utf-8") for path in DOCKERFILES}
    profiles = {each.rpartition("/")[2] for each in text}
    assert {"runtime", "devel", "ngc"} <= profiles
    for profile in ("runtime", "devel", "ngc"):
        frameworks = {each.partition("-")[0] for each in text if each.endswith(f"/{profile}")}
        assert frameworks == {"torch", "tensorflow", "jax"}
    starts = {
        match[1] for each in text.values() for match in re.finditer(r"^FROM (\S+)", each, re.M)
    }
    assert {"ubuntu:22.04", "ubuntu:24.04", "python:3.11-slim-bookworm"} <= starts
    assert {"python:3.13-slim-trixie", "nvcr.io/nvidia/pytorch:26.03-py3"} <= starts


def test_hadolint_finds_nothing() -> None:
    done = subprocess.run(
        [str(BIN / "hadolint"), "--no-color", *map(str, DOCKERFILES)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd="/",  # a configuration of a checkout, if there were one, does not count
    )
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)
    assert "hadolint" not in "".join(path.read_text(encoding="utf-8") for path in DOCKERFILES)


def test_hadolint_would_find_something(tmp_path: Path) -> None:
    place = tmp_path / "Dockerfile"
    place.write_text("FROM ubuntu\nRUN apt-get install python3\n", encoding="utf-8")
    done = subprocess.run(
        [str(BIN / "hadolint"), str(place)], capture_output=True, timeout=60, check=False
    )
    assert done.returncode == 1


def test_yamllint_finds_nothing() -> None:
    done = subprocess.run(
        [str(BIN / "yamllint"), "--strict", *map(str, YAML)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd="/",
    )
    assert YAML
    assert (done.stdout, done.returncode) == ("", 0)


@pytest.mark.parametrize("path", COMPOSE, ids=name)
def test_compose_reads_its_file_as_it_is_meant(path: Path) -> None:
    """By the engine's own reader where there is one, and by its meaning in any case."""
    service = yaml.safe_load(path.read_text(encoding="utf-8"))["services"]["app"]
    gpu = "torch-debian12" not in name(path)
    reserved = service.get("deploy", {}).get("resources", {}).get("reservations", {}).get("devices")
    expected = [{"driver": "nvidia", "count": "all", "capabilities": ["gpu"]}]
    assert reserved == (expected if gpu else None)
    assert (service["ipc"], service.get("shm_size")) == (
        ("private", "8g") if gpu else ("host", None)
    )
    program = shutil.which("docker-compose")
    if program is not None:
        subprocess.run(
            [program, "-f", str(path), "config", "--quiet"],
            check=True,
            capture_output=True,
            timeout=60,
        )


@pytest.mark.parametrize("path", DOCKERFILES, ids=name)
def test_a_dockerfile_keeps_the_rules(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"^#\s*syntax", text, re.MULTILINE)
    assert "<<" not in text  # heredocs, which older builders refuse
    assert not re.search(r"pypi|pythonhosted|:latest|--link\b", text)
    assert text.rindex("\nUSER 10001:10001\n") > text.rindex("\nRUN ")
    assert text.endswith('\nCMD ["envcheck", "doctor"]\n')
    assert "HEALTHCHECK" in text
    assert len(re.findall(r"^FROM ", text, re.MULTILINE)) >= 3
    assert text.count("--mount=type=cache,target=/root/.cache/pip") >= 2
    gpu = "NVIDIA_VISIBLE_DEVICES=all" in text
    assert gpu == ("torch-debian12" not in name(path))
    assert gpu == ("NVIDIA_DRIVER_CAPABILITIES=compute,utility" in text)
    ignored = path.with_name(".dockerignore").read_text(encoding="utf-8").split("\n")
    for source in re.findall(r"^COPY (?!--)(.+) \S+$", text, re.MULTILINE):
        for file in source.split():
            assert f"!{file}" in ignored
            assert file.endswith((".whl", ".lock")) or path.with_name(file).is_file()


@pytest.mark.parametrize("path", DOCKERFILES, ids=name)
def test_every_image_stands_in_a_table(path: Path) -> None:
    known = {f"{row.image}:{row.tag}" for row in MATRIX.rows(SystemImage)}
    known |= {f"{row.image}:{row.tag}" for row in MATRIX.rows(FrameworkImage)}
    known |= {
        f"nvidia/cuda:{row.cuda}-{flavor}-{row.distro}"
        for row in MATRIX.rows(CudaImage)
        for flavor in row.flavors
    }
    text = path.read_text(encoding="utf-8")
    stages = set(re.findall(r"^FROM \S+ AS (\S+)$", text, re.MULTILINE))
    starts = set(re.findall(r"^FROM (\S+)", text, re.MULTILINE)) - stages
    assert starts
    assert starts <= known
