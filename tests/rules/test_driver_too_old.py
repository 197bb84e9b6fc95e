"""driver-too-old: the right verdict, and both roads out of it."""

from __future__ import annotations

from tests.rules.stack import card, commands, only, report, said
from tests.support import evolve, machine, torch

RTX_3090 = card("NVIDIA GeForce RTX 3090", "8.6")
RTX_4090 = card("NVIDIA GeForce RTX 4090", "8.9")


def test_driver_of_another_major() -> None:
    """470.57.02 does not run CUDA 12.8; CUDA 11.8 builds end at torch 2.6."""
    found = only(
        machine(driver="470.57.02", cuda="11.4", gpus=RTX_3090, frameworks=(torch("2.8.0+cu128"),))
    )
    assert (found.id, found.severity, found.component, found.subject) == (
        "driver-too-old",
        "error",
        "driver",
        "driver 470.57.02",
    )
    assert found.found == "driver 470.57.02, which offers CUDA 11.4"
    assert found.needed == "driver 525.60.13 or newer, for CUDA 12.8"
    assert found.fix[0].commands == (
        '~/venv/bin/python -m pip install --force-reinstall "torch==2.6.0" '
        "--index-url https://download.pytorch.org/whl/cu118",
    )
    assert found.fix[1].title.startswith("Or install an NVIDIA driver of branch ")
    assert found.sources[0].title == "CUDA Compatibility, minor version compatibility"


def test_geforce_without_forward_compatibility() -> None:
    """575.57.08 does not run CUDA 13.0; the cu128 build of the same torch does."""
    found = only(
        machine(driver="575.57.08", cuda="12.9", gpus=RTX_4090, frameworks=(torch("2.9.0+cu130"),))
    )
    assert found.id == "driver-too-old"
    assert found.needed == "driver 580 or newer, for CUDA 13.0"
    assert found.fix[0].title == "Install torch 2.9.0 for CUDA 12.8, which this driver and GPU run"
    assert commands(found)[0].endswith("--index-url https://download.pytorch.org/whl/cu128")


def test_fix_is_for_the_tool_in_charge() -> None:
    """uv, conda, poetry and an externally managed Python each get their own commands."""
    broken = machine(
        driver="575.57.08", cuda="12.9", gpus=RTX_4090, frameworks=(torch("2.9.0+cu130"),)
    )
    index = "https://download.pytorch.org/whl/cu128"
    assert only(evolve(broken, {"env.python.manager": "uv"})).fix[0].commands == (
        f'uv pip install --python ~/venv/bin/python --reinstall "torch==2.9.0" --index-url {index}',
    )
    assert only(evolve(broken, {"env.python.manager": "poetry"})).fix[0].commands == (
        f"poetry source add --priority=explicit cu128 {index}",
        'poetry add --source cu128 "torch==2.9.0"',
    )
    system = {
        "env.python.kind": "system",
        "env.python.externally_managed": True,
        "env.python.executable": "/usr/bin/python3",
    }
    assert only(evolve(broken, system)).fix[0].commands == (
        "/usr/bin/python3 -m venv ~/gpu-env",
        f'~/gpu-env/bin/python -m pip install "torch==2.9.0" --index-url {index}',
    )
    conda = {
        "env.frameworks.0.origin": "conda-forge",
        "env.frameworks.0.arches": ("sm_80", "sm_89"),
        "env.python.manager": "conda",
        "env.python.prefix": "~/miniforge3/envs/work",
    }
    assert only(evolve(broken, conda)).fix[0].commands == (
        'conda install -p ~/miniforge3/envs/work -c conda-forge "pytorch=2.9.0=cuda128*"',
    )


def test_companions_move_along() -> None:
    """torchvision that is installed is named in the version that belongs to the new torch."""
    broken = machine(
        driver="470.57.02",
        cuda="11.4",
        gpus=RTX_3090,
        frameworks=(torch("2.8.0+cu128"), torch("0.23.0+cu128", cuda=None)),
    )
    broken = evolve(
        broken, {"env.frameworks.1.name": "torchvision", "env.frameworks.1.cpu_only": None}
    )
    found = next(each for each in report(broken).findings if each.id == "driver-too-old")
    assert '"torch==2.6.0" "torchvision==0.21.0"' in found.fix[0].commands[0]


def test_blackwell_gets_no_build_that_cannot_run_on_it() -> None:
    """On an RTX 5090 the older build must still have code for it: cu128, not cu126."""
    found = only(
        machine(
            driver="575.57.08",
            cuda="12.9",
            gpus=card("NVIDIA GeForce RTX 5090", "12.0"),
            frameworks=(torch("2.10.0+cu130"),),
        )
    )
    assert commands(found)[0].endswith("/cu128")


def test_inside_a_container_the_host_has_the_driver() -> None:
    """The image's requirement counts where no framework says it more precisely."""
    snapshot = evolve(
        machine(driver="550.54.14", cuda="12.4", gpus=RTX_4090),
        {
            "host.container.kind": "docker",
            "host.container.require_cuda": "cuda>=13.0 brand=unknown,driver>=570,driver<571",
        },
    )
    found = only(snapshot)
    assert (found.id, found.severity) == ("driver-too-old", "error")
    assert found.fix[-1].title == "Or update the driver of the container's host to 580 or newer"
    assert commands(found) == []


def test_an_image_requirement_that_minor_version_compatibility_meets() -> None:
    """CUDA 12.8 images run on a 12.4 driver once they are started."""
    snapshot = evolve(
        machine(driver="550.54.14", cuda="12.4", gpus=RTX_4090),
        {
            "host.container.kind": "docker",
            "host.container.require_cuda": "cuda>=12.8 brand=unknown,driver>=470,driver<471",
        },
    )
    assert said(snapshot) == []


def test_no_driver_is_another_finding() -> None:
    """Nothing is said about an absent driver, and nothing stays open."""
    answer = report(machine(driver=None, cuda=None, gpus=(), frameworks=(torch("2.8.0+cu128"),)))
    assert (answer.findings, answer.unknown) == ((), ())


def test_a_working_cuda_compat_is_a_road() -> None:
    """CUDA 13.0 builds on driver 535 with cuda-compat 580 in front, on an H200, initialised."""
    snapshot = evolve(
        machine(driver="535.216.01", cuda="12.2", frameworks=(torch("2.9.0+cu130"),)),
        {
            "host.driver.compat_path": "/usr/local/cuda/compat/libcuda.so.1",
            "host.driver.compat_version": "580.65.06",
        },
    )
    assert said(snapshot) == []
