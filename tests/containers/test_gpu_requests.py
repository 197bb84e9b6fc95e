"""How GPUs are asked for, what the engine refuses, and what of that becomes a finding."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.containers.asking import envcheck, report, said
from tests.containers.engine import Engine
from tests.containers.stub_images import stub_image, torch_site


@pytest.fixture(scope="module")
def image(engine: Engine, python: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """An image of torch for CUDA 13."""
    folder = tmp_path_factory.mktemp("cuda13")
    torch_site(folder / "site", ("nvidia-nccl-cu13", "2.28.9"))
    stub_image(engine, folder, "stub/cuda13", python)
    return "stub/cuda13"


def test_the_engines_refusal_is_the_finding(engine: Engine, image: str) -> None:
    """No toolkit: the engine says so, and the environment is judged all the same."""
    done = envcheck(engine, "image", "check", image, "--gpus", "all", "--json")
    data = report(done)
    assert (done.returncode, said(data)[0]) == (1, ("container-toolkit-missing", "error"))
    words = 'could not select device driver "" with capabilities: [[gpu]]'
    assert done.stderr == f"envcheck: docker refused --gpus all: {words}\n"
    values = [each["value"] for each in data["findings"][0]["evidence"]]
    assert any("could not select device driver" in each for each in values)
    heard = [(each["name"], each["via"]) for each in data["snapshot"]["symptoms"]]
    assert ("docker-no-gpu-driver", "docker") in heard
    assert [each["name"] for each in data["snapshot"]["env"]["frameworks"]] == ["torch"]


def test_without_a_gpu_nothing_is_asked_for(engine: Engine, image: str) -> None:
    """On a machine without a GPU, and an engine that nobody set up for one, that is no fault."""
    done = envcheck(engine, "image", "check", image, "--json")
    data = report(done)
    if data["snapshot"]["host"]["gpus"]:
        pytest.skip("this machine has a GPU")
    assert (done.returncode, said(data)) == (0, [("no-gpu", "warning")])


def test_the_runtime_gives_the_gpu(nvidia_runtime: Engine, image: str) -> None:
    """A registered runtime is used without being asked: driver and GPU are the container's."""
    done = envcheck(nvidia_runtime, "image", "check", image, "--json")
    data = report(done)
    errors = [each for each in said(data) if each[1] == "error"]
    assert (done.returncode, errors, done.stderr) == (0, [], "")
    host = data["snapshot"]["host"]
    assert host["driver"]["version"] == "580.95.05"
    assert [each["name"] for each in host["gpus"]] == ["NVIDIA L40S"]
    paths = [each["path"] for each in host["nodes"]]
    assert paths == ["/dev/nvidia-uvm", "/dev/nvidia0", "/dev/nvidiactl"]
    assert host["container"]["kind"] == "docker"
    docker = next(each for each in host["engines"] if each["name"] == "docker")
    assert "nvidia" in docker["runtimes"]


def test_gpus_can_be_left_out(nvidia_runtime: Engine, image: str) -> None:
    done = envcheck(nvidia_runtime, "image", "check", image, "--gpus", "none", "--json")
    assert report(done)["snapshot"]["host"]["container"]["kind"] is None


def test_a_driver_too_old_for_the_image(engine: Engine, image: str, stubs: Path) -> None:
    """The driver that the container got decides, whatever the image was made for."""
    from tests.containers import gpus

    folder = stubs / "old"
    folder.mkdir(exist_ok=True)
    path = gpus.runtime(folder, stubs)
    text = path.read_text().replace("580.95.05", "535.54.03").replace("13000", "12020")
    path.write_text(text)
    with engine.configured({"runtimes": {"nvidia": {"path": str(path)}}}):
        data = report(envcheck(engine, "image", "check", image, "--json"))
    assert ("driver-too-old", "error") in said(data)


def test_a_registered_runtime_that_is_not_there(engine: Engine, image: str) -> None:
    """The engine's words about the runtime, and about `--gpus` after that, are both kept."""
    path = "/usr/bin/nvidia-container-runtime"
    if Path(path).exists():
        pytest.skip("this machine has NVIDIA's runtime")
    with engine.configured({"runtimes": {"nvidia": {"path": path}}}):
        done = envcheck(engine, "image", "check", image, "--gpus", "all", "--json")
        quiet = envcheck(engine, "image", "check", image, "--json")
    data = report(done)
    assert said(data)[0] == ("container-toolkit-missing", "error")
    # Set up for GPUs on a machine that has none: nobody is told that something is wrong.
    assert quiet.returncode == 0 or report(quiet)["snapshot"]["host"]["gpus"]
    assert done.returncode == 1


def test_an_unknown_runtime_is_known_by_its_words(engine: Engine) -> None:
    """What docker itself says, and what envcheck makes of it when it is pasted."""
    ran = engine.cli("run", "--rm", "--runtime", "nvidia", "envcheck-test/base", check=False)
    assert ran.returncode == 125
    assert "runtime" in ran.stderr
    done = envcheck(engine, "doctor", "--report", "-", "--json", stdin=ran.stderr)
    assert said(report(done)) == [("container-toolkit-missing", "error")]
