"""Libraries on top: the newest release that accepts all the others, or why there is none."""

from __future__ import annotations

from envcheck.planner.libraries import releases
from tests.planner.asking import MATRIX, pins, plan


def test_a_library_that_pins_torch_decides_on_torch_and_its_companions() -> None:
    made = plan("H100, driver 580, python 3.12", "torch", "vllm", "transformers", "accelerate")
    found = pins(made)
    assert (found["torch"], found["vllm"]) == ("2.14.0", "0.33.0")
    assert (found["torchvision"], found["torchaudio"]) == ("0.29.0", "2.11.0")
    # vllm 0.33.0 asks for transformers<5.21.0.
    assert found["transformers"].startswith("5.20.")
    refused = {each.stack: each for each in made.rejections}["torch 2.15.0+cu132, Python 3.12"]
    assert refused.findings == ("extension-built-for-other-torch",)
    assert refused.reason == "vllm 0.33.0 asks for torch==2.14.0, not 2.15.0+cu132"


def test_a_native_library_goes_with_the_cuda_of_the_wheels_on_the_index() -> None:
    made = plan("H100, driver 550", "vllm")
    assert made.stack is not None
    assert made.stack.frameworks[0].cuda == "12.8"
    assert {"extension-built-for-other-cuda"} <= {
        id for each in made.rejections for id in each.findings
    }


def test_an_open_bound_of_old_is_no_promise_for_a_torch_that_came_later() -> None:
    oldest = releases(MATRIX, "vllm")[-1]
    assert [row.specifier for row in oldest.rows if row.requires_framework == "torch"] != []
    made = plan("H100, driver 580", "torch>=2.15", "vllm")
    assert made.stack is None
    assert made.rejections[0].findings == ("extension-built-for-other-torch",)


def test_libraries_of_two_frameworks_meet_in_one_environment() -> None:
    found = pins(plan("H100, driver 550, python 3.12", "lightning", "flax"))
    assert found["torch"] == "2.14.1+cu126"
    assert {"lightning", "flax", "jax", "jaxlib", "jax-cuda12-plugin"} <= found.keys()


def test_a_bound_on_a_library_is_kept() -> None:
    assert pins(plan("H100", "transformers<5.20"))["transformers"].startswith("5.")
    made = plan("H100", "transformers==1.0.0")
    assert made.stack is None
    assert made.rejections[0].reason == (
        "no release of transformers in the tables is transformers==1.0.0"
    )
    assert made.unlocks[0].change == "any version of transformers"


def test_what_is_built_from_source_gets_its_tools_first() -> None:
    commands = dict(plan("A100, driver 550, python 3.12", "flash-attn").install)["uv"]
    assert commands[-2:] == (
        "uv pip install --python ~/gpu-env/bin/python setuptools wheel packaging ninja psutil",
        "uv pip install --python ~/gpu-env/bin/python --no-build-isolation flash-attn==2.8.3.post2",
    )


def test_an_exact_version_does_not_mean_the_repair_of_it() -> None:
    assert pins(plan("A100", "tensorflow==2.15.0"))["tensorflow"] == "2.15.0"
    assert pins(plan("A100", "tensorflow==2.15.0.post1"))["tensorflow"] == "2.15.0.post1"
    assert pins(plan("A100", "tensorflow==2.15.*"))["tensorflow"] == "2.15.1"
