"""The smoke test on the CPU, with the real frameworks."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema

import envcheck
from tests.smoke.running import Run, outcomes

SCHEMA = Path(envcheck.__file__).parent / "schema" / "report-1.schema.json"

TORCH = {
    "import": "ok",
    "matmul-fp32": "ok",
    "matmul-tf32": "skipped",
    "matmul-bf16": "ok",
    "matmul-fp16": "ok",
    "convolution": "ok",
    "training-step-fp32": "ok",
    "training-step-bf16": "ok",
    "training-step-fp16": "skipped",
    "checkpointing": "ok",
    "accumulation": "ok",
    "data-loader": "ok",
    "ddp-import": "ok",
    "ddp-init": "ok",
    "all-reduce": "ok",
    "ddp-step": "ok",
    "ddp-end": "ok",
}
JAX = {
    "import": "ok",
    "find-devices": "ok",
    "context": "ok",
    "matmul-fp32": "ok",
    "matmul-bf16": "ok",
    "matmul-fp16": "ok",
    "convolution": "ok",
    "training-step-fp32": "ok",
    "training-step-bf16": "ok",
    "checkpointing": "ok",
    "accumulation": "ok",
}


def test_both_frameworks(frameworks: Path) -> None:
    run = Run("--device", "cpu", python=frameworks)
    code, report = run.finish()
    assert code == 0
    names = [each["framework"] for each in report["stages"]]
    assert list(dict.fromkeys(names)) == ["torch", "jax"]
    for framework, wanted in (("torch", TORCH), ("jax", JAX)):
        stages = [each for each in report["stages"] if each["framework"] == framework]
        assert outcomes({"stages": stages}) == wanted
        assert {each["device"] for each in stages} == {"cpu"}
        assert all(each["seconds"] > 0 for each in stages if each["outcome"] == "ok")
    (step,) = [
        each
        for each in report["stages"]
        if (each["framework"], each["name"]) == ("torch", "training-step-fp32")
    ]
    figures = {each["name"]: each["value"] for each in step["metrics"]}
    assert abs(figures["loss"] - figures["reference_loss"]) < 1e-4
    assert report["snapshot"]["smoke"]["stages"] == report["stages"]
    assert report["snapshot"]["smoke"]["device"] == "cpu"
    assert [each["id"] for each in report["findings"] if each["component"] == "smoke"] == []
    jsonschema.validate(report, json.loads(SCHEMA.read_text(encoding="utf-8")))
    assert run.left() == ([], set())


def test_a_framework_that_is_not_there(frameworks: Path) -> None:
    args = ("--device", "cpu", "--framework", "tensorflow")
    code, report = Run(*args, python=frameworks).finish()
    assert code == 1
    (stage,) = report["stages"]
    assert (stage["name"], stage["outcome"]) == ("import", "error")
    assert stage["detail"] == "ModuleNotFoundError: No module named 'tensorflow'"
    (finding,) = [each for each in report["findings"] if each["severity"] == "error"]
    assert (finding["id"], finding["title"]) == ("smoke-crashed", "tensorflow fails in import")
