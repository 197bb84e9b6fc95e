"""`fleet run` over ssh: each host gets the finding that is its own, and nothing is lost."""

from __future__ import annotations

import importlib.util
import json
import shutil
import socket
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

import envcheck
from tests.cli.runner import environment, run_cli
from tests.containers.engine import running_engine, why_not
from tests.fleet.hosts import Fleet, Machine, running

if TYPE_CHECKING:
    from collections.abc import Iterator

# One engine and one set of hosts for all of these tests.
pytestmark = pytest.mark.xdist_group("fleet-hosts")

STUBS = Path(__file__).parents[1] / "stubs"
SCHEMA = Path(envcheck.__file__).parent / "schema" / "report-1.schema.json"


def torch(version: str, cuda: str | None) -> dict[str, Any]:
    """Files of a wheel of torch."""
    return {
        "packages": (("torch", version),),
        "files": (
            ("torch/version.py", f"__version__ = '{version}'\ncuda = {cuda!r}\nhip = None\n"),
        ),
    }


def colliding() -> dict[str, Any]:
    """torch, and wheels of NCCL for two CUDA majors that own the same file."""
    files = torch("2.11.0+cu130", "13.0")
    record = "nvidia/nccl/lib/libnccl.so.2,sha256=x,1\n"
    return {
        "packages": (
            *files["packages"],
            ("nvidia-nccl-cu12", "2.27.5"),
            ("nvidia-nccl-cu13", "2.28.9"),
        ),
        "files": (
            *files["files"],
            ("nvidia_nccl_cu12-2.27.5.dist-info/RECORD", record),
            ("nvidia_nccl_cu13-2.28.9.dist-info/RECORD", record),
            ("nvidia/nccl/lib/libnccl.so.2", "not really"),
        ),
    }


SICK = {
    "healthy": (Machine(**torch("2.11.0+cu130", "13.0")), None),
    "cpu-build": (Machine(**torch("2.11.0+cpu", None)), "framework-cpu-build"),
    "old-driver": (
        Machine(**torch("2.8.0+cu128", "12.8"), driver="470.57.02", cuda=11040),
        "driver-too-old",
    ),
    "two-majors": (Machine(**colliding()), "mixed-cuda-majors"),
    "no-driver": (
        Machine(**torch("2.11.0+cu130", "13.0"), driver=None, on_bus="0x2335"),
        "driver-not-loaded",
    ),
}
"""Hosts, and the error that each has."""


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Hosts in containers; the tests are skipped where none can be had."""
    if importlib.util.find_spec("ansible_runner") is None:
        pytest.skip("ansible-runner is not installed")
    reason = why_not() or (None if shutil.which("ssh") else "ssh is not installed")
    if reason is not None:
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("fleet")
    stubs = folder / "stubs"
    stubs.mkdir()
    for source, library in (("nvml", "libnvidia-ml.so.1"), ("cuda", "libcuda.so.1")):
        subprocess.run(
            ["gcc", "-shared", "-fPIC", "-o", stubs / library, STUBS / f"{source}_stub.c"],
            check=True,
        )
    machines = {name: machine for name, (machine, _) in SICK.items()}
    with running_engine() as engine, running(engine, folder, stubs, machines) as hosts:
        yield hosts


def closed_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as line:
        line.bind(("127.0.0.1", 0))
        return int(line.getsockname()[1])


def run_fleet(fleet: Fleet, *args: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return run_cli(
        *("fleet", "run", "-i", str(fleet.inventory), *args),
        env=environment(COLUMNS="200", **variables),
    )


def errors(folder: Path, name: str) -> list[str]:
    data = json.loads((folder / f"{name}.json").read_text())
    jsonschema.validate(data, json.loads(SCHEMA.read_text()))
    return [each["id"] for each in data["findings"] if each["severity"] == "error"]


def test_every_host_gets_its_own_finding(fleet: Fleet, tmp_path: Path) -> None:
    healthy = fleet.inventory.read_text()
    fleet.inventory.write_text(f"gone/away ansible_port={closed_port()}\n{healthy}")
    try:
        done = run_fleet(fleet, "-o", str(tmp_path))
    finally:
        fleet.inventory.write_text(healthy)
    assert {name: errors(tmp_path, name) for name in SICK} == {
        name: [] if id is None else [id] for name, (_, id) in SICK.items()
    }
    assert done.returncode == 1, done.stderr
    assert "gone/away unreachable:" in done.stdout
    assert "[6/6]" in done.stderr
    assert "cpu-build: error: framework-cpu-build" in done.stderr
    assert sorted(each.name for each in tmp_path.iterdir()) == sorted(
        [*(f"{name}.json" for name in SICK), "run.jsonl"]
    )
    # Nothing names the hosts, though each has a name of its own.
    for name in SICK:
        assert f"secret-{name}" not in (tmp_path / f"{name}.json").read_text()

    # Nothing stays on a host.
    left = fleet.engine.cli("exec", "envcheck-fleet-healthy", "find", "/root", "/tmp", "-type", "f")
    assert "/root/.profile" in left.stdout
    assert [each for each in left.stdout.split() if "ansible" in each or "envcheck" in each] == []

    # A second run asks who is left, and only those.
    again = run_fleet(fleet, "-o", str(tmp_path))
    assert (again.returncode, again.stderr.splitlines()[:1]) == (
        1,
        [f"all {len(SICK)} hosts have a report in {tmp_path}; --again asks them once more"],
    )
    (tmp_path / "healthy.json").unlink()
    third = run_fleet(fleet, "-o", str(tmp_path), "--limit", "healthy:cpu-build")
    assert "1 of 2 hosts have a report already" in third.stderr
    assert "[1/1] healthy: ok" in third.stderr or "[1/1] healthy: unknown" in third.stderr
    assert "gone/away unreachable:" in third.stdout


def test_host_keys_are_checked(fleet: Fleet, tmp_path: Path) -> None:
    known = fleet.folder / "known_hosts"
    text = known.read_text()
    known.write_text("")
    try:
        # Over a connection of its own: those of earlier runs are kept open for a while.
        done = run_fleet(
            *(fleet, "-o", str(tmp_path), "--limit", "healthy"),
            ANSIBLE_SSH_ARGS="-o ControlMaster=no -o ControlPath=none",
        )
    finally:
        known.write_text(text)
    assert done.returncode == 3
    assert "healthy unreachable:" in done.stdout
    assert "Host key verification failed" in done.stdout
