"""What is planned, for machines whose answer is known."""

from __future__ import annotations

import pytest

from envcheck.errors import UsageError
from envcheck.model.plan import PlannedFramework, Unlock
from envcheck.planner.lock import lock_text, parse_lock
from envcheck.planner.plan import lock_of
from tests.planner.asking import pins, plan, plan_for


def test_blackwell_on_a_driver_of_cuda_12_gets_the_last_build_for_it() -> None:
    made = plan("RTX 5090, driver 570, python 3.12", "torch>=2.6", "torchvision")
    assert made.stack is not None
    assert [(each.version, each.variant) for each in made.stack.frameworks] == [("2.11.0", "cu128")]
    assert pins(made) == {"torch": "2.11.0+cu128", "torchvision": "0.26.0+cu128"}
    assert {pin.index for pin in made.stack.pins} == {"https://download.pytorch.org/whl/cu128"}
    assert (made.stack.min_driver, made.stack.driver_module) == ("570", "open")
    refused = {each.stack: each.findings for each in made.rejections}
    assert refused["torch 2.15.0+cu132, Python 3.12"] == ("driver-too-old",)
    assert refused["torch 2.12.0+cu126, Python 3.12"] == ("gpu-newer-than-build",)
    assert made.unlocks == (
        Unlock(
            change="driver 580 or newer",
            gives="torch 2.15.0+cu132, torchvision 0.29.2, Python 3.12",
        ),
    )
    assert dict(made.install)["pip"] == (
        "python3.12 -m venv ~/gpu-env",
        "~/gpu-env/bin/python -m pip install --index-url https://download.pytorch.org/whl/cu128 "
        "torch==2.11.0+cu128 torchvision==0.26.0+cu128",
    )


def test_what_the_package_index_carries_needs_no_other_index() -> None:
    made = plan_for("h200x1", "torch", "torchvision")
    assert pins(made) == {"torch": "2.15.0", "torchvision": "0.29.2"}
    assert dict(made.install)["uv"] == (
        "uv venv --python 3.12 ~/gpu-env",
        "uv pip install --python ~/gpu-env/bin/python torch==2.15.0 torchvision==0.29.2",
    )
    assert (made.rejections, made.unlocks) == ((), ())


def test_volta_gets_a_build_and_a_cudnn_that_still_know_it() -> None:
    made = plan("V100, driver 580", "torch")
    assert made.stack is not None
    (torch,) = made.stack.frameworks
    assert (torch.version, torch.variant, torch.cudnn) == ("2.14.1", "cu126", "9.10.2.21")
    assert (made.stack.driver_branch, made.stack.driver_module) == ("580", "proprietary")
    jax = plan("V100", "jax")
    assert pins(jax)["nvidia-cudnn-cu12"] == "9.10.2.21"
    assert "jax-cuda13-plugin" not in pins(jax)


def test_three_frameworks_share_one_cuda_major() -> None:
    made = plan("8xH100, driver 580", "torch", "jax", "tensorflow")
    assert made.stack is not None
    cuda = {each.name: each for each in made.stack.frameworks}
    assert cuda["torch"] == PlannedFramework(
        name="torch",
        version="2.14.1",
        variant="cu126",
        cuda="12.6",
        cudnn="9.10.2.21",
        nccl="2.29.3",
        triton="~=3.8.0",
    )
    # One cuDNN and one NCCL serve all three.
    assert {each.cudnn for each in cuda.values()} == {"9.10.2.21"}
    assert {each.nccl for each in cuda.values()} == {"2.29.3"}
    assert [pin.name for pin in made.stack.pins] == [
        "torch",
        "jax",
        "jaxlib",
        "jax-cuda12-plugin",
        "tensorflow",
    ]
    assert made.rejections[0].findings == ("mixed-cuda-majors",)


def test_frameworks_that_share_no_cuda_major_are_refused() -> None:
    made = plan("H100", "torch>=2.15", "tensorflow")
    assert (made.stack, made.install) == (None, ())
    assert {each.findings for each in made.rejections} == {("mixed-cuda-majors",)}
    assert [each.change for each in made.unlocks] == [
        "any version of torch",
        "without torch>=2.15",
        "without tensorflow",
    ]


def test_a_driver_that_does_not_know_the_gpu_runs_nothing() -> None:
    made = plan("RTX 5090, driver 470", "torch")
    assert made.stack is None
    (refused,) = made.rejections
    assert refused.stack == "every stack on driver 470 with GeForce RTX 5090"
    assert refused.findings == ("gpu-needs-newer-driver",)
    assert made.unlocks == (
        Unlock(change="driver 580 or newer", gives="torch 2.15.0+cu132, Python 3.13"),
    )


def test_a_python_without_wheels_is_named() -> None:
    made = plan("H100, driver 580, python 3.9", "torch>=2.9")
    assert made.stack is None
    assert {each.findings for each in made.rejections} == {("no-wheel-for-python",)}
    assert made.unlocks[0].change == "Python 3.13"


def test_an_old_c_library_is_named() -> None:
    made = plan_for("debian12-toolkit-only", "torch")
    assert pins(made) == {"torch": "2.15.0+cpu"}


def test_preferences_differ_where_they_say() -> None:
    newest, lts, oldest = (
        plan("RTX 4090", "torch", prefer=each) for each in ("newest", "lts", "oldest-driver")
    )
    assert pins(newest)["torch"] == "2.15.0"
    assert pins(lts)["torch"] == "2.14.1"
    assert lts.stack is not None
    assert lts.stack.driver_branch == "580"
    assert oldest.stack is not None
    assert (pins(oldest)["torch"], oldest.stack.min_driver) == ("2.6.0+cu118", "520")


def test_a_cpu_target_gets_cpu_builds() -> None:
    made = plan("cpu, python 3.12", "torch", "torchvision", "tensorflow", "jax")
    assert made.stack is not None
    assert {each.cuda for each in made.stack.frameworks} == {None}
    assert {pin.extras for pin in made.stack.pins} == {()}
    assert (made.stack.min_driver, made.stack.driver_branch) == (None, None)


def test_a_jetson_gets_no_generic_wheel() -> None:
    made = plan("Jetson AGX Orin", "torch")
    assert made.stack is None
    assert "Tegra" in made.rejections[0].reason


def test_rows_of_low_confidence_are_never_planned() -> None:
    made = plan("H100, driver 620", "torch==2.15.0+cu134")
    assert made.stack is None
    assert made.rejections[0].reason == "its table row is of low confidence: never recommended"


def test_a_build_can_be_asked_for_by_its_tag() -> None:
    assert pins(plan("H100, driver 580", "torch==2.14.1+cu126")) == {"torch": "2.14.1+cu126"}


def test_a_source_package_is_built_after_the_rest() -> None:
    made = plan("A100, driver 550, python 3.12", "deepspeed", "torch")
    commands = dict(made.install)["pip"]
    assert commands[-1].startswith("~/gpu-env/bin/python -m pip install --no-build-isolation")
    assert commands[-1].endswith(f"deepspeed=={pins(made)['deepspeed']}")
    assert "comes as source" in made.notes[0]


def test_an_unknown_package_is_carried_along_when_its_version_is_named() -> None:
    made = plan("H100", "torch", "einops==0.8.1")
    assert pins(made)["einops"] == "0.8.1"
    assert made.notes == ("einops 0.8.1 is carried along: no table says what it fits",)


def test_keras_comes_in_the_range_of_tensorflow() -> None:
    assert pins(plan("H100", "tensorflow==2.21.0", "keras"))["keras"] == "3.12.0"
    made = plan("H100", "tensorflow==2.21.0", "keras==3.5.0")
    assert made.stack is None
    assert "keras>=3.12.0" in made.rejections[0].reason


@pytest.mark.parametrize(
    ("want", "message"),
    [
        ("torhc", "no table knows 'torhc': did you mean 'torch'?"),
        ("torch @ https://example.org/x.whl", "is no requirement"),
        ("torch; python_version<'3'", "is no requirement"),
        ("torch>=2.6 --index-url x", "is no requirement"),
        ("-r requirements.txt", "is no requirement"),
        ("$(id)", "is no requirement"),
        ("torch>=2.6\nRUN id", "is no requirement"),
        ("../x", "is no requirement"),
        ("", "is no requirement"),
    ],
)
def test_what_is_wanted_is_read_with_distrust(want: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        plan("H100", want)
    assert message in str(caught.value)
    assert str(caught.value).isprintable()


def test_the_lock_of_a_plan_can_be_read_back() -> None:
    made = plan("2xH100, driver 550, ubuntu 22.04, python 3.11", "torch", "torchaudio", "jax")
    lock = lock_of(made, "0.1.0")
    text = lock_text(lock)
    assert parse_lock(text, "envcheck.lock") == lock
    again = plan("2xH100, driver 550, ubuntu 22.04, python 3.11", "torch", "torchaudio", "jax")
    assert lock_text(lock_of(again, "0.1.0")) == text


def test_no_lock_without_a_stack() -> None:
    with pytest.raises(UsageError):
        lock_of(plan("RTX 5090, driver 470"), "0.1.0")
