"""forward-compat-unsupported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from envcheck.model.environment import Variable
from envcheck.model.host import ProbeAnswer, SystemPackage
from tests.rules.stack import card, commands, only, report, said, unknowns
from tests.support import evolve, machine, torch

if TYPE_CHECKING:
    from envcheck.model.snapshot import Snapshot

COMPAT = "/usr/local/cuda-13.0/compat"


def with_compat(gpu: str, code: int | None, **changes: Any) -> Snapshot:
    """Driver 535 with cuda-compat of CUDA 13.0 in front."""
    arch = {"NVIDIA GeForce RTX 4090": "8.9"}.get(gpu, "9.0")
    answer = (
        ProbeAnswer(outcome="ok" if code == 0 else "error", code=code)
        if code is not None
        else ProbeAnswer()
    )
    return evolve(
        machine(
            driver="535.216.01",
            cuda="12.2",
            gpus=card(gpu, arch),
            frameworks=(torch("2.9.0+cu130"),),
        ),
        {
            "host.driver.compat_path": f"{COMPAT}/libcuda.so.1",
            "host.driver.compat_version": "580.65.06",
            "host.driver.libcuda": answer,
            **changes,
        },
    )


def test_804_on_a_geforce() -> None:
    """One root cause: the old driver follows from it."""
    answer = report(with_compat("NVIDIA GeForce RTX 4090", 804))
    (found,) = answer.findings
    assert (found.id, found.severity, found.consequences) == (
        "forward-compat-unsupported",
        "error",
        ("driver-too-old",),
    )
    assert found.why == "Forward compatibility is not offered on this GPU."
    assert answer.unknown == ()


def test_the_table_speaks_when_cuda_was_not_asked() -> None:
    """A GeForce is not eligible, an H200 is, an unknown GPU is unknown."""
    assert said(with_compat("NVIDIA GeForce RTX 4090", None))[0] == (
        "forward-compat-unsupported",
        "error",
    )
    assert said(with_compat("NVIDIA H200", None)) == []
    assert ("forward-compat-unsupported", "missing") in unknowns(
        with_compat("NVIDIA Some New Thing", None)
    )


def test_it_works_so_it_is_fine() -> None:
    """CUDA initialised: no table can deny it."""
    snapshot = with_compat("NVIDIA GeForce RTX 4090", 0)
    assert (said(snapshot), unknowns(snapshot)) == ([], [])


def test_fix_follows_what_puts_it_in_front() -> None:
    """The variable first, else the package."""
    variable = {"env.variables": (Variable(name="LD_LIBRARY_PATH", value=f"{COMPAT}:/opt/lib"),)}
    found = only(with_compat("NVIDIA GeForce RTX 4090", 804, **variable))
    assert found.fix[0].commands == ("export LD_LIBRARY_PATH=/opt/lib",)
    package = {
        "host.driver.packages": (SystemPackage(name="cuda-compat-13-0", version="580.65.06-1"),)
    }
    found = only(with_compat("NVIDIA GeForce RTX 4090", 804, **package))
    assert found.fix[0].commands == ("sudo apt-get purge -y cuda-compat-13-0", "sudo ldconfig")


def test_803_without_cuda_compat_is_another_finding() -> None:
    """Without cuda-compat it is a matter of the driver's own files."""
    snapshot = evolve(machine(), {"host.driver.libcuda": ProbeAnswer(outcome="error", code=803)})
    assert said(snapshot) == []
    assert commands(only(with_compat("NVIDIA H200", 803))) != []
