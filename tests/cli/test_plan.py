"""`envcheck plan` and `envcheck doctor --against` as processes."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

import envcheck
from envcheck.planner.lock import parse_lock
from tests.cli.runner import run_cli

MACHINES = Path(__file__).parents[1] / "machines"
SCHEMA = Path(envcheck.__file__).parent / "schema" / "report-1.schema.json"
TARGET = ("--target", "RTX 5090, driver 570, python 3.12")


def test_a_plan_for_a_target_in_words() -> None:
    done = run_cli("plan", *TARGET, "--want", "torch>=2.6", "--want", "torchvision")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == ((Path(__file__).parent / "plan-rtx5090.txt").read_text(encoding="utf-8"))


def test_a_plan_as_json_and_as_a_lock(tmp_path: Path) -> None:
    place = tmp_path / "envcheck.lock"
    done = run_cli("plan", *TARGET, "--json", "-o", str(place))
    data = json.loads(done.stdout)
    assert (done.returncode, data["schema_version"], data["exit_code"]) == (0, "1", 0)
    assert data["stack"]["pins"] == [
        {
            "name": "torch",
            "version": "2.11.0+cu128",
            "index": "https://download.pytorch.org/whl/cu128",
            "extras": [],
        }
    ]
    assert data["unlocks"][0]["change"] == "driver 580 or newer"
    lock = parse_lock(place.read_text(encoding="utf-8"), "envcheck.lock")
    assert lock.stack.pins[0].version == "2.11.0+cu128"
    assert lock.envcheck == envcheck.__version__
    shown = run_cli("plan", *TARGET, "-o", "-")
    assert shown.stdout == place.read_text(encoding="utf-8")


def test_no_plan_is_a_status_of_its_own_and_writes_no_lock(tmp_path: Path) -> None:
    place = tmp_path / "envcheck.lock"
    done = run_cli("plan", "--target", "RTX 5090, driver 470", "-o", str(place))
    assert (done.returncode, done.stderr) == (5, "envcheck: no plan meets the request\n")
    assert "gpu-needs-newer-driver" in done.stdout
    assert "driver 580 or newer: torch 2.15.0+cu132" in done.stdout
    assert not place.exists()


def test_python_and_system_can_be_asked_for() -> None:
    args = ("--machine", str(MACHINES / "h200x1"), "--python", "3.10", "--os", "ubuntu 22.04")
    data = json.loads(run_cli("plan", *args, "--json").stdout)
    assert (data["stack"]["python"], data["stack"]["os"]) == ("3.10", "ubuntu22.04")
    assert data["rejections"][0]["findings"] == ["no-wheel-for-python"]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--target", "RTX 5900"), "envcheck: --target: 'RTX 5900' is not known: did you mean"),
        (("--want", "torhc", *TARGET), "no table knows 'torhc': did you mean 'torch'?"),
        (("--python", "3", *TARGET), "--python: '3' is no version such as 3.12"),
        (("--os", "beos", *TARGET), "--os: 'beos' is not known: choose from almalinux8"),
        (("--machine", "x", *TARGET), "--target and --machine name two machines"),
        (("--prefer", "lst", *TARGET), "did you mean 'lts'?"),
        (("--report", "/no/such/file"), "cannot read /no/such/file"),
    ],
)
def test_a_mistake_is_one_line(args: tuple[str, ...], message: str) -> None:
    done = run_cli("plan", *args)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr.splitlines()[0]


def test_a_pasted_report_is_a_target(tmp_path: Path) -> None:
    text = tmp_path / "report.txt"
    text.write_text(
        "Python version: 3.11.9 (64-bit runtime)\n"
        "GPU models and configuration: GPU 0: NVIDIA GeForce RTX 4090\n"
        "Nvidia driver version: 550.54.15\n"
        "OS: Ubuntu 22.04.4 LTS (x86_64)\n",
        encoding="utf-8",
    )
    data = json.loads(run_cli("plan", "--report", str(text), "--json").stdout)
    assert data["request"]["target"]["gpus"] == ["GeForce RTX 4090"]
    assert data["stack"]["pins"][0]["version"] == "2.14.1+cu126"


@pytest.fixture(scope="module")
def lock(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A lock that the recorded H200 has drifted from."""
    place = tmp_path_factory.mktemp("lock") / "envcheck.lock"
    args = ("--want", "torch==2.11.0", "--want", "torchvision", "--want", "jax==0.12.0.1")
    done = run_cli("plan", "--machine", str(MACHINES / "h200x1"), *args, "-o", str(place))
    assert done.returncode == 0, done.stderr
    return str(place)


DRIFTED = [
    ("jax", "0.12.0.1", "0.11.2"),
    ("jaxlib", "0.12.0.1", "0.11.2"),
    ("jax-cuda13-plugin", "0.12.0.1", "0.11.2"),
]


def against(lock: str, *args: str) -> tuple[int, str]:
    done = run_cli("doctor", "--machine", str(MACHINES / "h200x1"), "--against", lock, *args)
    return done.returncode, done.stdout


def test_drift_is_shown_in_every_format(lock: str) -> None:
    code, text = against(lock)
    assert code == 1
    assert "drift from the lock\n  jax: locked 0.12.0.1, found 0.11.2\n" in text
    assert text.splitlines()[-1] == "3 fields drifted: this is not what the lock says"
    code, text = against(lock, "--format", "markdown")
    assert (code, "| jax | `0.12.0.1` | `0.11.2` |" in text) == (1, True)
    code, text = against(lock, "--json")
    data = json.loads(text)
    jsonschema.validate(data, json.loads(SCHEMA.read_text(encoding="utf-8")))
    drift = [(each["field"], each["locked"], each["found"]) for each in data["drift"]]
    assert (code, data["verdict"], drift) == (1, "ok", DRIFTED)
    code, text = against(lock, "--format", "junit")
    assert (code, text.count('<testcase classname="envcheck.lock"')) == (1, 3)
    assert text.count('<failure type="drift"') == 3
    code, text = against(lock, "--format", "sarif")
    results = json.loads(text)["runs"][0]["results"]
    assert (code, [each["ruleId"] for each in results]) == (1, ["lock-drift"] * 3)


def test_without_a_lock_nothing_is_said_of_drift() -> None:
    done = run_cli("doctor", "--machine", str(MACHINES / "h200x1"), "--json")
    assert (done.returncode, "drift" in json.loads(done.stdout)) == (0, False)


def test_a_machine_that_is_as_locked_says_so(tmp_path: Path) -> None:
    place = tmp_path / "envcheck.lock"
    args = ("--want", "torch==2.11.0", "--want", "torchvision", "--want", "jax==0.11.2")
    run_cli("plan", "--machine", str(MACHINES / "h200x1"), *args, "-o", str(place))
    code, text = against(str(place))
    assert (code, "no drift: all as in the lock" in text) == (0, True)


def test_a_damaged_lock_is_one_line(tmp_path: Path) -> None:
    place = tmp_path / "envcheck.lock"
    place.write_text("schema = 2\n", encoding="utf-8")
    done = run_cli("doctor", "--against", str(place))
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr == f"envcheck: {place}: schema: expected 1, found 2\n"
    missing = run_cli("doctor", "--against", str(tmp_path / "none"))
    assert missing.returncode == 2
