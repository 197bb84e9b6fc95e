"""jetson-generic-wheel and tensorflow-windows-no-gpu."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.model.environment import Framework
from tests.rules.stack import card, only, report, said, unknowns
from tests.support import evolve, machine, torch

if TYPE_CHECKING:
    from envcheck.model.snapshot import Snapshot


def jetson(framework: Framework, arch: str = "8.7", cuda: str = "12.6") -> Snapshot:
    """A Jetson with one framework."""
    return evolve(
        machine(driver="540.4.0", cuda=cuda, gpus=card("Orin", arch), frameworks=(framework,)),
        {
            "host.jetson": "36.4.0",
            "host.pci": (),
            "host.os.machine": "aarch64",
            "env.python.platform": "linux_aarch64",
        },
    )


def test_the_generic_cpu_wheel() -> None:
    """One finding; the CPU build is what it consists of."""
    answer = report(jetson(torch("2.8.0", cpu_only=True, platform="linux_aarch64")))
    (found,) = answer.findings
    assert (found.id, found.severity, found.consequences) == (
        "jetson-generic-wheel",
        "error",
        ("framework-cpu-build",),
    )
    assert found.needed == "a build of torch for L4T 36.4.0"


def test_nvidias_wheel() -> None:
    """A build for this board, judged by its own list."""
    own = torch("2.5.0a0+872d972e41.nv24.08", cuda="12.6", origin="jetson", arches=("sm_87",))
    assert (said(jetson(own)), unknowns(jetson(own))) == ([], [])


def test_a_server_wheel_with_code_for_thor() -> None:
    """torch 2.11.0 for aarch64 and CUDA 13 has sm_110."""
    wheel = torch("2.11.0+cu130", platform="linux_aarch64")
    snapshot = jetson(wheel, arch="11.0", cuda="13.0")
    assert (said(snapshot), unknowns(snapshot)) == ([], [])


def test_a_server_wheel_on_orin_is_not_known() -> None:
    """Discrete sm_80 code on Tegra 8.7 is promised by nobody: unknown, not an error."""
    wheel = torch("2.11.0+cu130", platform="linux_aarch64")
    snapshot = jetson(wheel, cuda="13.0")
    assert said(snapshot) == []
    assert ("jetson-generic-wheel", "newer-than-table") in unknowns(snapshot)


def test_tensorflow_on_windows() -> None:
    """A CPU build by nature: the way out is WSL 2."""
    tensorflow = Framework(
        name="tensorflow", version="2.18.0", cpu_only=True, origin="index", platform="win_amd64"
    )
    windows = {"host.os.id": "windows", "env.python.platform": "win_amd64"}
    found = only(evolve(machine(frameworks=(tensorflow,)), windows))
    assert (found.id, found.severity) == ("tensorflow-windows-no-gpu", "error")
    assert found.fix[0].commands[0] == "wsl --install"


def test_tensorflow_on_linux_or_an_old_one_on_windows() -> None:
    """The same build elsewhere, and a release that still had CUDA."""
    cpu = Framework(name="tensorflow", version="2.18.0", cpu_only=True, origin="index")
    assert said(machine(frameworks=(cpu,))) == []
    old = Framework(name="tensorflow", version="2.10.1", cuda="11.2", origin="index")
    windows = {
        "host.os.id": "windows",
        "env.python.platform": "win_amd64",
        "env.libraries": None,
    }
    assert said(evolve(machine(frameworks=(old,)), windows)) == []
