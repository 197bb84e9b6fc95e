"""A broken image is found out by its files, and by running it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.containers.asking import envcheck, report, said
from tests.containers.engine import BASE, Engine
from tests.containers.stub_images import VENV, stub_image, torch_site
from tests.environment.sites import write

MIXED = (("nvidia-nccl-cu12", "2.27.3"), ("nvidia-nccl-cu13", "2.28.9"))


@pytest.fixture(scope="module")
def images(engine: Engine, python: str, tmp_path_factory: pytest.TempPathFactory) -> Engine:
    """`stub/mixed`, whose NCCL wheels of two CUDA majors own one file, and `stub/sound`."""
    for name, nccl in (("mixed", MIXED), ("sound", MIXED[1:])):
        folder = tmp_path_factory.mktemp(name)
        torch_site(folder / "site", *nccl)
        stub_image(engine, folder, f"stub/{name}", python)
    return engine


@pytest.mark.parametrize("command", [("doctor", "--image"), ("image", "check", "--gpus", "none")])
def test_mixed_cuda_majors_are_caught(
    images: Engine, python: str, command: tuple[str, ...]
) -> None:
    done = envcheck(images, *command, "stub/mixed", "--json", "--ignore", "no-gpu")
    data = report(done)
    assert (done.returncode, said(data)) == (1, [("mixed-cuda-majors", "error")])
    (found,) = data["findings"]
    place = f"{VENV}/lib/python{python}/site-packages/nvidia/nccl/lib/libnccl.so.2"
    assert found["found"] == f"both own {place}"
    assert found["needed"] == "one of them: nvidia-nccl-cu13"
    assert [each["title"] for each in found["fix"]] == [
        "In the Dockerfile: Remove both, then put back nvidia-nccl-cu13, the one that the framework"
        " was built for"
    ]
    assert data["snapshot"]["source"] == "image:stub/mixed"
    assert data["snapshot"]["env"]["shared_files"] == [
        {"path": place, "packages": ["nvidia-nccl-cu12", "nvidia-nccl-cu13"]}
    ]


@pytest.mark.parametrize("command", [("doctor", "--image"), ("image", "check", "--gpus", "none")])
def test_the_sound_image_is_left_alone(
    images: Engine, python: str, command: tuple[str, ...]
) -> None:
    done = envcheck(images, *command, "stub/sound", "--json", "--ignore", "no-gpu")
    data = report(done)
    assert (done.returncode, said(data)) == (0, [])
    (nccl,) = data["snapshot"]["env"]["libraries"]
    assert (nccl["name"], nccl["version"], nccl["origin"]) == ("nccl", "2.28.9", "wheel")
    assert (nccl["package"], nccl["wins_for"], nccl["via"]) == (
        "nvidia-nccl-cu13",
        ["torch"],
        "rpath",
    )


def test_no_container_is_left_behind(images: Engine) -> None:
    envcheck(images, "doctor", "--image", "stub/sound")
    envcheck(images, "image", "check", "stub/sound", "--gpus", "all")
    assert images.cli("ps", "--all", "--quiet").stdout == ""


def test_an_image_that_is_not_there_is_not_fetched_by_the_doctor(images: Engine) -> None:
    done = envcheck(images, "doctor", "--image", "stub/absent")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == (
        "envcheck: there is no such image here\n"
        "  stub/absent: fetch it with docker pull stub/absent\n"
    )


def test_what_cannot_be_combined_with_an_image(images: Engine) -> None:
    for flag in ("--smoke", "--deep", "--machine=/tmp", "--report=-"):
        done = envcheck(images, "doctor", "--image", "stub/sound", flag)
        name = flag.partition("=")[0]
        assert done.returncode == 2
        assert done.stderr.startswith(
            f"envcheck: --image reads the files of an image: give it without {name}\n"
        ), done.stderr


def test_an_image_without_python_is_read_and_not_run(images: Engine, tmp_path: Path) -> None:
    """What cannot be judged is unknown; it is no fault of the image, and no crash."""
    images.base_image(BASE)
    text = f"FROM {BASE}\nRUN rm -rf /usr/bin/python3* /usr/local/bin/py* /usr/lib/python3*\n"
    write(tmp_path / "Dockerfile", text)
    images.cli("build", "-q", "-t", "stub/bare", tmp_path)
    done = envcheck(images, "image", "check", "stub/bare", "--gpus", "none", "--json")
    data = report(done)
    assert done.stderr == (
        "stub/bare was read and not run: it has no Python that could run envcheck\n"
    )
    assert data["snapshot"]["env"]["packages"] is None
    assert "not in the image" in data["snapshot"]["env"]["python"]["error"]
    assert [each for each in said(data) if each[1] == "error"] == []
