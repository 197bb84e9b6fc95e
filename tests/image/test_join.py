"""An image on a machine: how GPUs are asked for, and what is judged together."""

from __future__ import annotations

from pathlib import Path

import pytest

from envcheck.engine import judge
from envcheck.image.engine import EngineFacts, GpuRequest, Image
from envcheck.image.inside import gpu_requests, set_up
from envcheck.image.join import joined
from envcheck.matrix.loader import Matrix
from envcheck.model.host import Engine
from envcheck.model.snapshot import Snapshot
from envcheck.rules import all_rules
from envcheck.symptoms.scan import scan
from tests.image.tars import ELF, Files, read
from tests.image.test_read import torch
from tests.support import evolve, machine

ALL = ("nvidia.com/gpu=0", "nvidia.com/gpu=all")
DOCKER = EngineFacts(name="docker", version="28.1.1", runtimes=("runc",), desktop=False)
PODMAN = EngineFacts(name="podman", version="5.4.0", cdi_folders=("/etc/cdi",))


@pytest.mark.parametrize(
    ("engine", "devices", "requests", "ready"),
    [
        (DOCKER, (), ("gpus",), False),
        # A specification on disk is of no use to an engine that does not read any.
        (DOCKER, ALL, ("gpus",), False),
        (evolve(DOCKER, {"cdi_folders": ("/etc/cdi",)}), ALL, ("cdi", "gpus"), True),
        (evolve(DOCKER, {"cdi_folders": ("/etc/cdi",)}), ALL[:1], ("gpus",), False),
        (
            evolve(DOCKER, {"cdi_folders": ("/etc/cdi",), "cdi_devices": ()}),
            ALL,
            ("gpus",),
            False,
        ),
        (evolve(DOCKER, {"runtimes": ("nvidia", "runc")}), (), ("runtime", "gpus"), True),
        (PODMAN, ALL, ("cdi",), True),
        (PODMAN, (), ("cdi",), False),
    ],
)
def test_gpus_are_asked_for_as_the_engine_is_set_up(
    engine: EngineFacts, devices: tuple[str, ...], requests: tuple[GpuRequest, ...], ready: bool
) -> None:
    assert gpu_requests(engine, devices) == requests
    assert set_up(engine, devices) is ready


FILES: Files = {
    "usr/local/bin/python3.12": ELF,
    "usr/local/bin/python3": ("link", "python3.12"),
    **torch("usr/local/lib/python3.12/site-packages"),
}


def on(host: Snapshot, folder: Path, engine: EngineFacts = DOCKER, **variables: str) -> Snapshot:
    """An image of torch for CUDA 13 on a machine."""
    image = Image(reference="train:7", id="sha256:0", variables=tuple(variables.items()))
    return joined(host, read(folder, FILES, **variables), image, engine)


def said(snapshot: Snapshot) -> list[tuple[str, str]]:
    report = judge(snapshot, Matrix.shipped(), all_rules())
    assert [each for each in report.unknown if each.kind == "crashed"] == []
    return [(each.id, each.severity) for each in report.findings]


def test_the_machine_keeps_its_driver_and_the_image_its_environment(tmp_path: Path) -> None:
    host = machine()
    both = on(host, tmp_path)
    assert both.source == "image:train:7"
    assert (both.host.driver, both.host.gpus) == (host.host.driver, host.host.gpus)
    assert both.env.python.libc == "glibc 2.36"
    assert (both.host.os.id, both.host.os.glibc) == ("ubuntu", "2.36")
    assert both.host.os.name == "Debian GNU/Linux 12 (bookworm) in the image, on Ubuntu 24.04.3 LTS"
    assert [each.name for each in both.env.frameworks or ()] == ["torch"]


def test_a_sound_image_on_a_sound_machine_has_no_findings(tmp_path: Path) -> None:
    engine = evolve(DOCKER, {"runtimes": ("nvidia", "runc")})
    assert said(on(machine(), tmp_path, engine)) == []


def test_an_engine_without_the_toolkit_is_named_before_anything_is_run(tmp_path: Path) -> None:
    host = evolve(machine(), {"host.engines": (Engine(name="docker", runtimes=("runc",)),)})
    host = evolve(host, {"host.toolkit_version": None})
    assert said(on(host, tmp_path)) == [("container-toolkit-missing", "warning")]


def test_the_engines_words_are_named_once(tmp_path: Path) -> None:
    """The facts and the words say the same; the words are the stronger."""
    host = evolve(machine(), {"host.engines": (Engine(name="docker", runtimes=("runc",)),)})
    host = evolve(host, {"host.toolkit_version": None})
    words = 'could not select device driver "" with capabilities: [[gpu]]'
    both = evolve(on(host, tmp_path), {"symptoms": scan([words], Matrix.shipped(), via="docker")})
    ids = [id for id, _ in said(both)]
    assert ids == ["container-toolkit-missing"]


def test_a_driver_that_is_too_old_for_the_image(tmp_path: Path) -> None:
    engine = evolve(DOCKER, {"runtimes": ("nvidia", "runc")})
    old = machine(driver="535.54.03", cuda="12.2")
    assert ("driver-too-old", "error") in said(on(old, tmp_path, engine))


def test_an_image_that_asks_for_a_newer_driver_than_this(tmp_path: Path) -> None:
    """CUDA's own images say which driver they need, with no framework in them."""
    engine = evolve(DOCKER, {"runtimes": ("nvidia", "runc")})
    variables = {"NVIDIA_REQUIRE_CUDA": "cuda>=13.0"}
    image = Image(reference="cuda:13", id="sha256:0", variables=tuple(variables.items()))
    files = {path: content for path, content in FILES.items() if "torch" not in path}
    for driver, cuda, wanted in (
        ("535.54.03", "12.2", [("driver-too-old", "error")]),
        ("580.159.04", "13.0", []),
    ):
        folder = tmp_path / driver
        folder.mkdir()
        host = machine(driver=driver, cuda=cuda)
        both = joined(host, read(folder, files, **variables), image, engine)
        found = [each for each in said(both) if each[1] == "error"]
        assert found == wanted
