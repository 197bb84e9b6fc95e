"""Images built from what `envcheck emit dockerfile` writes, checked by the envcheck inside them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.containers.asking import envcheck, report, said
from tests.containers.engine import Engine


def emitted(engine: Engine, folder: Path, want: str, python: str) -> tuple[Path, Path]:
    """A lock for this framework on the CPU, and the folder of its Dockerfile."""
    lock, image = folder / "envcheck.lock", folder / "image"
    target = f"no gpu, python {python}"
    done = envcheck(engine, "plan", "--target", target, "--want", want, "-o", lock)
    assert done.returncode == 0, done.stderr
    done = envcheck(engine, "emit", "dockerfile", "--lock", lock, "-o", image)
    assert done.returncode == 0, done.stderr
    return lock, image


def built(engine: Engine, folder: Path, want: str, python: str, packages: str) -> Path:
    """Build an emitted Dockerfile as it is, its FROM name given to the base; returns the lock."""
    lock, image = emitted(engine, folder, want, python)
    lines = (image / "Dockerfile").read_text().splitlines()
    start = next(line.split()[1] for line in lines if line.startswith("FROM "))
    engine.base_image(start, {"/etc/pip.conf": packages})
    name = want.partition("=")[0]
    log = folder / "build.log"
    done = envcheck(
        engine, "image", "build", image, "-t", f"emitted/{name}", "--log", log, "--json"
    )
    data = report(done)
    assert (data["built"], data["tag"], done.returncode) == (True, f"emitted/{name}", 0)
    assert data["engine"] == "docker"
    assert "pip install" in log.read_text()
    return lock


def version_of(folder: Path, name: str) -> str:
    """Release of a package among fetched wheels."""
    (path,) = folder.glob(f"{name}-*.whl")
    return path.name.split("-")[1]


@pytest.fixture(scope="module")
def torch_lock(
    engine: Engine, python: str, packages: str, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    folder = tmp_path_factory.mktemp("torch")
    return built(engine, folder, "torch==2.13.0", python, packages)


def test_a_torch_image_fits_its_lock_and_the_machine(engine: Engine, torch_lock: Path) -> None:
    done = envcheck(
        engine, "image", "check", "emitted/torch", "--gpus", "none", "--against", torch_lock,
        "--json",
    )  # fmt: skip
    data = report(done)
    assert done.returncode == 0, data["findings"]
    assert data["drift"] == []
    assert [each for each in said(data) if each[1] == "error"] == []
    snapshot = data["snapshot"]
    assert snapshot["source"] == "image:emitted/torch"
    (torch,) = snapshot["env"]["frameworks"]
    assert (torch["name"], torch["version"], torch["cpu_only"]) == ("torch", "2.13.0+cpu", True)
    assert snapshot["env"]["python"]["prefix"] == "/opt/venv"
    assert snapshot["env"]["python"]["chosen_because"] == "VIRTUAL_ENV"
    assert "the envcheck of the image" not in done.stderr


def test_its_files_say_the_same_as_its_container(engine: Engine, torch_lock: Path) -> None:
    """What is read without running anything agrees with what the doctor inside sees."""
    files = envcheck(
        engine, "doctor", "--image", "emitted/torch", "--against", torch_lock, "--json"
    )
    inside = report(envcheck(engine, "image", "check", "emitted/torch", "--json", "--gpus", "none"))
    outside = report(files)
    assert files.returncode == 0
    assert outside["drift"] == []
    assert outside["snapshot"]["source"] == "image:emitted/torch"
    one, other = outside["snapshot"]["env"], inside["snapshot"]["env"]
    for field in ("frameworks", "libraries", "shared_files", "packages", "variables"):
        assert one[field] == other[field], field
    for field, value in one["python"].items():
        assert other["python"][field] == value, field
    assert said(outside) == said(inside)


def test_a_gpu_that_the_image_cannot_use(nvidia_runtime: Engine, torch_lock: Path) -> None:
    """With a GPU in the container the CPU build is what is wrong."""
    done = envcheck(nvidia_runtime, "image", "check", "emitted/torch", "--json")
    data = report(done)
    assert done.returncode == 1
    assert ("framework-cpu-build", "error") in said(data)
    (gpu,) = data["snapshot"]["host"]["gpus"]
    assert (gpu["name"], data["snapshot"]["host"]["driver"]["version"]) == (
        "NVIDIA L40S",
        "580.95.05",
    )
    assert data["snapshot"]["host"]["container"]["kind"] == "docker"
    assert data["snapshot"]["host"]["container"]["visible_devices"] == "all"


def test_another_lock_shows_the_drift(engine: Engine, torch_lock: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.lock"
    other.write_text(torch_lock.read_text().replace("2.13.0", "2.12.0"))
    done = envcheck(
        engine, "image", "check", "emitted/torch", "--gpus", "none", "--against", other, "--json"
    )
    data = report(done)
    assert done.returncode == 1
    assert data["drift"] == [{"field": "torch", "locked": "2.12.0+cpu", "found": "2.13.0+cpu"}]


def test_smoke_runs_in_the_container(engine: Engine, torch_lock: Path) -> None:
    """Without a GPU the driver's library is tried, and is not there."""
    done = envcheck(
        engine, "image", "check", "emitted/torch", "--gpus", "none", "--smoke", "--json"
    )
    data = report(done)
    stages = [(each["framework"], each["outcome"]) for each in data["stages"]]
    assert stages, data
    assert {name for name, _ in stages} <= {"torch", "cuda"}


def test_a_jax_image_fits_its_lock_and_the_machine(
    engine: Engine, python: str, wheels: Path, packages: str, tmp_path: Path
) -> None:
    release = version_of(wheels, "jax")
    lock = built(engine, tmp_path, f"jax=={release}", python, packages)
    done = envcheck(
        engine, "image", "check", "emitted/jax", "--gpus", "none", "--against", lock, "--json"
    )
    data = report(done)
    assert done.returncode == 0, data["findings"]
    assert data["drift"] == []
    names = {each["name"]: each["version"] for each in data["snapshot"]["env"]["frameworks"]}
    assert names == {"jax": release}
    ran = engine.cli(
        "run", "--rm", "--network", "none", "emitted/jax",
        "python", "-c", "import jax.numpy as n; print(n.arange(8.0).sum())",
    )  # fmt: skip
    assert ran.stdout.strip() == "28.0"
