"""Manifests that Kubernetes takes, and scripts that do on nodes what Slurm expects of them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from envcheck.emit import kubernetes, slurm
from envcheck.emit.options import Options
from envcheck.errors import UsageError
from envcheck.matrix.loader import Matrix
from envcheck.planner.lock import parse_lock
from tests.emit.locks import example

IMAGE = "registry.example.org/train:1"
GPU_LOCK = "torch-ubuntu24.04"


def manifests(**options: Any) -> dict[str, Any]:
    made = kubernetes.files(example(GPU_LOCK), Matrix.shipped(), Options(image=IMAGE, **options))
    return {name: yaml.safe_load(text) for name, text in made.items()}


# -- Kubernetes ------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["1.31", "1.33", "1.35"])
def test_manifests_fit_the_schema_of_kubernetes(version: str) -> None:
    validate = pytest.importorskip("kubernetes_validate")
    for manifest in manifests(gpus="8", shm_size="16g", nodes=4).values():
        validate.validate(manifest, version, strict=True)


def test_the_daemonset_takes_no_gpu_from_work() -> None:
    pod = manifests()["daemonset.yaml"]["spec"]["template"]["spec"]
    container = pod["containers"][0]
    assert "nvidia.com/gpu" not in container["resources"].get("limits", {})
    assert pod["runtimeClassName"] == "nvidia"
    assert {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"} in container["env"]
    assert container["image"] == IMAGE


def test_a_pod_is_ready_while_its_node_is_in_order(tmp_path: Path) -> None:
    probe = manifests()["daemonset.yaml"]["spec"]["template"]["spec"]["containers"][0]
    script = probe["readinessProbe"]["exec"]["command"][2].replace("/run/envcheck", str(tmp_path))
    found = {}
    for status in ("0", "1", "2", "3", "4"):
        (tmp_path / "status").write_text(f"{status}\n")
        found[status] = subprocess.run(["/bin/sh", "-c", script], check=False).returncode
    # 3 is "nothing could be determined", which is no alarm.
    assert found == {"0": 0, "1": 1, "2": 1, "3": 0, "4": 1}


def test_the_daemonset_writes_down_how_the_doctor_ended(tmp_path: Path) -> None:
    container = manifests()["daemonset.yaml"]["spec"]["template"]["spec"]["containers"][0]
    script = container["command"][2].replace("/run/envcheck", str(tmp_path))
    program(tmp_path / "envcheck", 'echo "$*" > "$(dirname "$0")/asked"; exit 1')
    running = subprocess.Popen(
        ["/bin/sh", "-c", script],
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        start_new_session=True,
    )
    try:
        wait_for(tmp_path / "status")
        assert (tmp_path / "status").read_text() == "1\n"
        assert "--require-gpu" in (tmp_path / "asked").read_text()
    finally:
        running.terminate()
        # It ends at once when it is told to, and not after the next look.
        assert running.wait(10) == 0


def test_the_job_asks_for_gpus_and_spreads_over_nodes() -> None:
    job = manifests(gpus="8", nodes=3, shm_size="512m")["job.yaml"]["spec"]
    pod = job["template"]["spec"]
    assert (job["completions"], job["parallelism"]) == (3, 3)
    assert pod["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == 8
    assert pod["volumes"][0]["emptyDir"]["sizeLimit"] == "512Mi"
    assert pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]


def test_the_configmap_holds_the_lock() -> None:
    text = manifests()["configmap.yaml"]["data"]["envcheck.lock"]
    assert parse_lock(text, "it") == example(GPU_LOCK)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "--image: name the image"),
        ({"image": "registry.example.org/train"}, "names whatever is newest"),
        ({"image": "registry.example.org/train:latest"}, "names whatever is newest"),
        ({"image": 'a"\n- b: c'}, "is not an image"),
        ({"image": IMAGE, "nodes": 0}, "--nodes"),
    ],
)
def test_what_no_cluster_could_follow_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        kubernetes.files(example(GPU_LOCK), Matrix.shipped(), Options(**options))


@pytest.mark.parametrize("module", [kubernetes, slurm])
def test_a_stack_for_the_cpu_has_nothing_to_look_after(module: Any) -> None:
    with pytest.raises(UsageError, match="for the CPU"):
        module.files(example("torch-debian12"), Matrix.shipped(), Options(image=IMAGE))


# -- Slurm -----------------------------------------------------------------------------------------


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """A node: the scripts, an envcheck and a scontrol that do as files beside them say."""
    for name, text in slurm.files(example(GPU_LOCK), Matrix.shipped(), Options()).items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    program(
        tmp_path / "bin/envcheck",
        'here=$(dirname "$0"); echo "$*" > "$here/asked"; cat "$here/report" 2>/dev/null;'
        ' exit "$(cat "$here/status")"',
    )
    program(
        tmp_path / "bin/scontrol",
        'here=$(dirname "$0")\n'
        'if [ "$1" = show ]; then cat "$here/node"; else echo "$*" >> "$here/done"; fi',
    )
    program(tmp_path / "bin/logger", "exit 0")
    (tmp_path / "bin/node").write_text("NodeName=gpu07 Arch=x86_64 State=IDLE\n")
    (tmp_path / "bin/status").write_text("0")
    return tmp_path


FINDING = (
    '{"findings": [{"id": "gpu-fell-off-bus", "severity": "error",'
    ' "subject": "GPU 1: NVIDIA H200"},'
    ' {"id": "gpu-throttled", "severity": "warning", "subject": "GPU 0"}], "drift": null}'
)
REASON = "envcheck: gpu-fell-off-bus (GPU 1: NVIDIA H200)"


def program(path: Path, script: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def wait_for(path: Path) -> None:
    import time

    for _ in range(100):
        if path.exists() and path.read_text():
            return
        time.sleep(0.05)
    raise TimeoutError(path)


def run(node: Path, script: str, **variables: str) -> tuple[int, str]:
    """Status of a script, and what it asked of Slurm."""
    done = subprocess.run(
        [str(node / script)],
        env={
            "PATH": f"{node / 'bin'}:{os.environ['PATH']}",
            "SLURMD_NODENAME": "gpu07",
            **variables,
        },
        check=False,
        timeout=60,
    )
    asked = node / "bin/done"
    return done.returncode, asked.read_text() if asked.exists() else ""


def state(node: Path, status: int, report: str, reason: str = "") -> None:
    (node / "bin/status").write_text(str(status))
    (node / "bin/report").write_text(report)
    if reason:
        (node / "bin/node").write_text(
            f"NodeName=gpu07 State=IDLE+DRAIN Reason={reason} [root@2026-12-01T06:00:00]\n"
        )


def test_a_node_with_findings_drains_with_the_reason(node: Path) -> None:
    state(node, 1, FINDING)
    assert run(node, slurm.HEALTH) == (0, f"update NodeName=gpu07 State=DRAIN Reason={REASON}\n")
    # Without an environment that is named, everything would be missing from it.
    assert "--against" not in (node / "bin/asked").read_text()


def test_the_environment_of_jobs_is_compared_with_the_lock(node: Path) -> None:
    drift = '{"findings": [], "drift": [{"field": "torch", "found": "2.7.0", "locked": "2.8.0"}]}'
    state(node, 1, drift)
    _, asked = run(node, slurm.HEALTH, ENVCHECK_PYTHON="/opt/train")
    assert asked.endswith("Reason=envcheck: drift: torch is 2.7.0\n")
    words = (node / "bin/asked").read_text()
    assert f"--python /opt/train --against {node}/envcheck.lock" in words


def test_a_reason_holds_nothing_that_slurm_or_a_shell_would_care_for(node: Path) -> None:
    state(node, 1, FINDING.replace("NVIDIA H200", 'NVIDIA \\"H200\\"; $(reboot) ' + "x" * 300))
    _, asked = run(node, slurm.HEALTH)
    reason = asked.partition("Reason=")[2].rstrip("\n")
    assert reason.startswith("envcheck: gpu-fell-off-bus (GPU 1: NVIDIA  H200")
    assert not set(reason) & set("\"'$;`\\")
    assert len(reason) <= 190


def test_a_node_that_envcheck_drained_is_resumed_once_nothing_is_found(node: Path) -> None:
    state(node, 0, "{}", reason=REASON)
    assert run(node, slurm.HEALTH) == (0, "update NodeName=gpu07 State=RESUME\n")


@pytest.mark.parametrize(
    ("status", "report", "reason"),
    [
        (0, "{}", ""),  # all is well
        (0, "{}", "fan is broken"),  # drained by a person: not resumed
        (1, FINDING, "fan is broken"),  # a person's reason stays
        (1, FINDING, REASON),  # said already
        (3, "{}", ""),  # nothing could be determined
        (124, "", ""),  # took too long
        (127, "", ""),  # envcheck is not there
    ],
)
def test_what_leaves_a_node_as_it_is(node: Path, status: int, report: str, reason: str) -> None:
    state(node, status, report, reason)
    assert run(node, slurm.HEALTH) == (0, "")


def test_a_job_with_gpus_does_not_start_on_a_node_with_findings(node: Path) -> None:
    state(node, 1, FINDING)
    status, asked = run(node, slurm.PROLOG, SLURM_JOB_GPUS="0,1", SLURM_JOB_ID="7")
    assert (status, asked) == (1, f"update NodeName=gpu07 State=DRAIN Reason={REASON}\n")


@pytest.mark.parametrize(
    ("status", "gpus"),
    [(1, ""), (0, "0"), (3, "0"), (124, "0")],
    ids=["cpu", "ok", "unknown", "slow"],
)
def test_a_job_starts_where_nothing_speaks_against_it(node: Path, status: int, gpus: str) -> None:
    state(node, status, FINDING)
    assert run(node, slurm.PROLOG, SLURM_JOB_GPUS=gpus) == (0, "")


def test_a_report_that_cannot_be_read_still_gives_a_reason(node: Path) -> None:
    state(node, 1, "Traceback (most recent call last):")
    assert run(node, slurm.HEALTH)[1].endswith("Reason=envcheck: see envcheck doctor\n")


@pytest.mark.parametrize("name", [slurm.HEALTH, slurm.PROLOG])
def test_scripts_are_portable_shell(node: Path, name: str) -> None:
    shellcheck = shutil.which("shellcheck", path=str(Path(sys.executable).parent))
    if shellcheck is None:
        pytest.skip("shellcheck is not installed")
    done = subprocess.run(
        [shellcheck, "--shell=sh", node / name], capture_output=True, text=True, check=False
    )
    assert done.stdout == ""
    assert done.returncode == 0
