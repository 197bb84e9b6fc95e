"""podman by its command: a CDI device, its refusals, and the flag that it takes and ignores."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.runner import environment
from tests.containers import gpus
from tests.containers.asking import Done, report, said
from tests.containers.engine import BASE
from tests.containers.podman import Podman, podman_why_not, running_podman, specified
from tests.containers.stub_images import torch_site
from tests.environment.sites import write

IMAGE = "localhost/stub/cuda13"


@pytest.fixture(scope="module")
def podman(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Podman]:
    """A podman that holds an image of torch for CUDA 13."""
    reason = podman_why_not()
    if reason is not None:
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("podman")
    torch_site(folder / "site", ("nvidia-nccl-cu13", "2.28.9"))
    write(
        folder / "Dockerfile",
        f"FROM localhost/{BASE}:latest\n"
        "COPY site/ /usr/local/lib/python3/\n"
        "RUN d=$(python3 -c 'import site; print(site.getsitepackages()[0])') && mkdir -p $d"
        " && cp -r /usr/local/lib/python3/* $d && rm -r /usr/local/lib/python3\n",
    )
    with running_podman() as running:
        done = envcheck(running, "image", "build", folder, "-t", IMAGE, "--engine", "podman")
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith(f"built {IMAGE}, ")
        yield running


def envcheck(podman: Podman, *args: str | Path, before: tuple[str, ...] = ()) -> Done:
    """Run `envcheck` where podman is the engine."""
    return subprocess.run(
        [*before, sys.executable, "-m", "envcheck", *map(str, args)],
        cwd="/",
        env=environment(**podman.variables),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def test_a_cdi_device_gives_the_gpu(podman: Podman, stubs: Path, tmp_path: Path) -> None:
    """The specification is there, so the device is asked for; no flag is needed."""
    write(tmp_path / "nvidia.json", gpus.specification(stubs))
    with specified(tmp_path) as before:
        done = envcheck(
            podman, "image", "check", IMAGE, "--engine", "podman", "--json", before=before
        )
    data = report(done)
    errors = [each for each in said(data) if each[1] == "error"]
    assert (done.returncode, errors, done.stderr) == (0, [], "")
    host = data["snapshot"]["host"]
    assert host["driver"]["version"] == "580.95.05"
    assert [each["name"] for each in host["gpus"]] == ["NVIDIA L40S"]
    assert host["container"]["kind"] == "podman"
    assert [each["name"] for each in data["snapshot"]["env"]["frameworks"]] == ["torch"]


def test_an_unresolvable_device_is_the_finding(podman: Podman) -> None:
    done = envcheck(
        podman, "image", "check", IMAGE, "--engine", "podman", "--gpus", "all", "--json"
    )
    data = report(done)
    assert (done.returncode, said(data)[0]) == (1, ("cdi-spec-missing", "error"))
    assert "podman refused --device nvidia.com/gpu=all: " in done.stderr
    assert "unresolvable CDI devices nvidia.com/gpu=all" in done.stderr


def test_a_stale_specification_is_the_finding(podman: Podman, stubs: Path, tmp_path: Path) -> None:
    """It names files of a driver that is gone."""
    text = gpus.specification(stubs).replace("libcuda.so.1", "libcuda.so.580.65.06")
    write(tmp_path / "nvidia.json", text)
    with specified(tmp_path) as before:
        done = envcheck(
            podman,
            "image",
            "check",
            IMAGE,
            "--engine",
            "podman",
            "--gpus",
            "all",
            "--json",
            before=before,
        )
    data = report(done)
    assert (done.returncode, said(data)[0]) == (1, ("cdi-spec-missing", "error"))


def test_podman_takes_gpus_all_and_does_nothing(podman: Podman, stubs: Path) -> None:
    """That is why it is never asked so: without a word there is no device."""
    ran = podman.cli(
        "run", "--rm", "--gpus", "all", IMAGE, "sh", "-c", "ls /dev | grep -c nvidia", check=False
    )
    assert (ran.returncode, ran.stdout.strip(), ran.stderr) == (1, "0", "")
    assert stubs.is_dir()


def test_an_image_of_podman_is_judged_by_its_files(podman: Podman) -> None:
    """docker does not run here, so podman's images are meant."""
    done = envcheck(podman, "doctor", "--image", IMAGE, "--json", "--ignore", "no-gpu")
    data = report(done)
    assert (done.returncode, said(data)) == (0, [])
    (torch,) = data["snapshot"]["env"]["frameworks"]
    assert (torch["name"], torch["cuda"]) == ("torch", "13.0")


def test_a_failing_step_of_podman_is_named(podman: Podman, tmp_path: Path) -> None:
    write(
        tmp_path / "Containerfile",
        f"FROM localhost/{BASE}:latest\nRUN echo the cause >&2; exit 9\n",
    )
    done = envcheck(
        podman, "image", "build", tmp_path, "--engine", "podman", "--log", tmp_path / "log"
    )
    assert done.returncode == 1
    first = next(line for line in done.stderr.splitlines() if line.startswith("envcheck: "))
    assert first == "envcheck: podman build failed: a step failed: echo the cause >&2; exit 9"
    assert "  the cause" in done.stderr.splitlines()
