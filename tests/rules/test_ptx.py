"""ptx-newer-than-driver and ptxas-too-old-for-gpu."""

from __future__ import annotations

from envcheck.model.environment import Toolkit, Variable
from tests.rules.stack import card, commands, only, said
from tests.support import evolve, machine, torch

ERROR = (
    "RuntimeError: CUDA error: the provided PTX was compiled with an unsupported toolchain.\n"
    "CUDA kernel errors might be reported asynchronously"
)


def test_the_error_itself() -> None:
    """Driver 580 runs machine code of CUDA 13.2, but does not compile its PTX."""
    found = only(machine(frameworks=(torch("2.15.0+cu132", error=ERROR),)))
    assert (found.id, found.severity) == ("ptx-newer-than-driver", "error")
    assert found.found.startswith("provided PTX was compiled with an unsupported toolchain.")
    assert found.needed == "a driver whose CUDA is 13.2 or newer"


def test_ptx_is_the_only_road_and_the_driver_is_older() -> None:
    """The build has PTX only for this GPU."""
    build = torch("2.9.0+cu128", origin="source", arches=("sm_80", "compute_90"))
    old = machine(
        driver="550.54.14", cuda="12.4", gpus=card("NVIDIA H200", "9.0"), frameworks=(build,)
    )
    assert said(old) == [("ptx-newer-than-driver", "error")]
    new = machine(frameworks=(build,))
    assert said(new) == []


def test_machine_code_needs_no_ptx() -> None:
    """Minor-version compatibility covers machine code."""
    build = torch("2.9.0+cu128", origin="source", arches=("sm_90", "compute_90"))
    assert said(machine(driver="550.54.14", cuda="12.4", frameworks=(build,))) == []


def test_ptxas_that_a_variable_names() -> None:
    """CUDA 12.4's assembler has no target for an RTX 5090; 12.8's has."""
    blackwell = machine(
        gpus=card("NVIDIA GeForce RTX 5090", "12.0"), frameworks=(torch("2.9.0+cu128"),)
    )

    def with_toolkit(version: str) -> list[tuple[str, str]]:
        root = f"/usr/local/cuda-{version}"
        return said(
            evolve(
                blackwell,
                {
                    "env.variables": (
                        Variable(name="TRITON_PTXAS_PATH", value=f"{root}/bin/ptxas"),
                    ),
                    "env.toolkits": (Toolkit(version=version, root=root, nvcc=True),),
                },
            )
        )

    assert with_toolkit("12.4") == [("ptxas-too-old-for-gpu", "error")]
    assert with_toolkit("12.8") == []


def test_ptxas_says_so() -> None:
    """The assembler's own message."""
    error = "ptxas fatal   : Value 'sm_121a' is not defined for option 'gpu-name'"
    found = only(
        machine(gpus=card("NVIDIA GB10", "12.1"), frameworks=(torch("2.9.0+cu130", error=error),))
    )
    assert (found.id, found.found) == (
        "ptxas-too-old-for-gpu",
        "its ptxas does not know sm_121a",
    )
    assert commands(found)[0] == '~/venv/bin/python -m pip install --upgrade "torch" "triton"'
