"""The smoke test on a real GPU, off by default: `pytest -m gpu`.

The frameworks are those of the active environment; what it does not have is skipped.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.gpu

GIB = 1 << 30


def _smoke(*args: str, **variables: str) -> tuple[int, dict[str, Any], str]:
    done = subprocess.run(
        [sys.executable, "-m", "envcheck", "smoke", "--json", *args],
        capture_output=True,
        text=True,
        env={**os.environ, **variables},
        check=False,
        timeout=600,
    )
    return done.returncode, json.loads(done.stdout), done.stderr


def _outcomes(report: dict[str, Any], framework: str) -> dict[str, str]:
    return {
        f"{each['device']} {each['name']}": each["outcome"]
        for each in report["stages"]
        if each["framework"] == framework
    }


def _frameworks() -> list[str]:
    done = subprocess.run(
        [sys.executable, "-m", "envcheck", "snapshot"], capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout)["env"]["frameworks"] or []
    return [each["name"] for each in found if not each["cpu_only"]]


def _needs(framework: str) -> None:
    if framework not in _frameworks():
        pytest.skip(f"the active environment has no {framework} for a GPU")


def test_the_driver_alone() -> None:
    code, report, _ = _smoke("--framework", "cuda", "--gpus", "0")
    assert _outcomes(report, "cuda") == {
        "cuda libcuda": "ok",
        "cuda find-devices": "ok",
        "cuda:0 context": "ok",
        "cuda:0 copy": "ok",
        "cuda:0 kernel": "ok",
        "cuda:0 memory": "ok",
    }
    assert code == 0


@pytest.mark.parametrize("framework", ["torch", "jax"])
def test_every_stage_is_ok(framework: str) -> None:
    _needs(framework)
    code, report, stderr = _smoke("--framework", framework)
    outcomes = _outcomes(report, framework)
    bad = {name: each for name, each in outcomes.items() if each not in {"ok", "skipped"}}
    assert (bad, code, stderr) == ({}, 0, "")
    assert outcomes["cuda:0 training-step-fp32"] == "ok"
    assert outcomes["cuda:0 training-step-bf16"] in {"ok", "skipped"}


def test_torch_gives_its_memory_back() -> None:
    _needs("torch")
    _, report, _ = _smoke("--framework", "torch", "--gpus", "0", "--distributed", "off")
    (memory,) = [each for each in report["stages"] if each["name"] == "memory"]
    figures = {each["name"]: each["value"] for each in memory["metrics"]}
    assert figures["allocated_after"] == figures["allocated_before"]
    assert figures["peak_reserved"] < GIB


def test_torch_compile() -> None:
    _needs("torch")
    code, report, _ = _smoke(
        "--framework", "torch", "--gpus", "0", "--distributed", "off", "--compile"
    )
    assert (_outcomes(report, "torch")["cuda:0 compile"], code) == ("ok", 0)


def test_a_hidden_gpu() -> None:
    code, report, _ = _smoke("--framework", "cuda", CUDA_VISIBLE_DEVICES="")
    assert code == 1
    (finding,) = [each for each in report["findings"] if each["severity"] == "error"]
    assert finding["id"] == "cuda-visible-devices-invalid"
    assert "smoke-crashed" in finding["consequences"]


def test_cudnn_that_cannot_be_used(tmp_path: Path) -> None:
    """Empty libraries with the names of cuDNN's parts are loaded before the real ones."""
    _needs("torch")
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler to make an empty library with")
    source = tmp_path / "empty.c"
    source.write_text("int envcheck_empty;\n", encoding="utf-8")
    made = []
    for name in ("libcudnn_graph.so.9", "libcudnn_ops.so.9"):
        made.append(str(tmp_path / name))
        command = [compiler, "-shared", "-fPIC", f"-Wl,-soname,{name}", "-o", made[-1], str(source)]
        subprocess.run(command, check=True)
    code, report, _ = _smoke(
        *("--framework", "torch", "--gpus", "0", "--distributed", "off"),
        LD_PRELOAD=":".join(made),
    )
    bad = [each for each in report["stages"] if each["outcome"] not in {"ok", "skipped"}]
    assert (code, bad[0]["outcome"] in {"error", "crash"}) == (1, True), report["stages"]
    assert bad[0]["name"] in {"import", "convolution"}


def test_memory_that_another_process_holds(tmp_path: Path) -> None:
    """Nine tenths are taken: the smoke test still fits, and who holds it is named."""
    _needs("torch")
    ready = tmp_path / "ready"
    hold = (
        "import sys, time, torch\n"
        "free, total = torch.cuda.mem_get_info(0)\n"
        "size = int(total * 0.9) - (total - free)\n"
        "held = torch.empty(size, dtype=torch.uint8, device='cuda:0')\n"
        "open(sys.argv[1], 'w').close()\n"
        "time.sleep(300)\n"
    )
    with subprocess.Popen([sys.executable, "-c", hold, str(ready)]) as holder:
        try:
            for _ in range(600):
                if ready.exists() or holder.poll() is not None:
                    break
                with pytest.raises(subprocess.TimeoutExpired):
                    holder.wait(0.1)
            code, report, _ = _smoke("--framework", "cuda", "--gpus", "0")
        finally:
            holder.kill()
    ids = {each["id"]: each["severity"] for each in report["findings"]}
    assert (code, ids["gpu-memory-occupied"]) == (0, "info")
