"""The command line of the smoke test."""

from __future__ import annotations

import json
import shutil
import sys
import venv
from pathlib import Path

import pytest

from tests.cli.runner import environment, run_cli
from tests.probe.conftest import build


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--framework", "torhc"), "did you mean 'torch'"),
        (("--gpus", "0,x"), "'0,x' is neither 'all' nor a list of numbers such as 0,1"),
        (("--timeout", "0"), "'0' is not a number of seconds"),
        (("--nproc-per-node", "0"), "is not a number of processes"),
        (("--device", "gpu"), "'gpu' is not known"),
        (("--json", "--format", "text"), "contradict each other"),
        (("--machine", "x"), "unexpected argument '--machine'"),
    ],
)
def test_mistakes(args: tuple[str, ...], words: str) -> None:
    done = run_cli("smoke", *args)
    assert done.returncode == 2
    assert words in done.stderr


def test_a_recorded_machine_cannot_be_run_on() -> None:
    machine = Path(__file__).parents[1] / "machines" / "h200x1"
    done = run_cli("doctor", "--smoke", "--machine", str(machine))
    assert done.returncode == 2
    assert "--smoke runs on this machine" in done.stderr


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """An environment without any framework."""
    venv.create(tmp_path / "bare", symlinks=True)
    return tmp_path / "bare"


def test_nothing_to_run_on_the_cpu(bare: Path) -> None:
    done = run_cli("smoke", "--device", "cpu", "--python", str(bare))
    assert done.returncode == 2
    assert "no framework here" in done.stderr


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs a C compiler")
@pytest.mark.parametrize("command", [("smoke",), ("doctor", "--smoke")])
def test_a_gpu_that_a_variable_hides(bare: Path, tmp_path: Path, command: tuple[str, ...]) -> None:
    """Without a framework the driver alone is tried; its refusal is what the variable leads to."""
    build(tmp_path / "driver", "nvml_stub.c", "libnvidia-ml.so.1")
    build(tmp_path / "driver", "cuda_stub.c", "libcuda.so.1")
    variables = environment(
        LD_LIBRARY_PATH=str(tmp_path / "driver"), CUDA_VISIBLE_DEVICES="", CUDA_STUB_INIT="100"
    )
    done = run_cli(*command, "--json", "--python", str(bare), env=variables)
    report = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (1, "")
    (stage,) = report["stages"]
    assert (stage["framework"], stage["name"], stage["outcome"]) == ("cuda", "libcuda", "error")
    assert "CUDA_ERROR_NO_DEVICE" in stage["detail"]
    (finding,) = [e for e in report["findings"] if e["id"] == "cuda-visible-devices-invalid"]
    assert (finding["severity"], "smoke-crashed" in finding["consequences"]) == ("error", True)


def test_the_text_lists_the_stages(bare: Path) -> None:
    done = run_cli("smoke", "--python", str(bare), "--no-color")
    assert done.returncode == 1
    assert "\nsmoke test\ncuda cuda libcuda  error" in done.stdout
    assert done.stderr == ""


def test_plain_doctor_imports_nothing_of_it() -> None:
    from tests.meta.test_import_budget import imported

    names = imported("doctor", "--json", "--python", sys.executable)
    assert {name for name in names if name.startswith("envcheck.smoke")} == set()
    assert "envcheck.commands.smoke" not in names
