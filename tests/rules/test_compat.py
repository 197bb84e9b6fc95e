"""The three roads from a driver to a CUDA release, each by itself."""

from __future__ import annotations

import pytest

from envcheck.rules.compat import DriverFacts, compiles_ptx, driver_runs, forward_runs
from tests.rules.stack import tables

H200 = ("NVIDIA H200",)
RTX = ("NVIDIA GeForce RTX 4090",)


@pytest.mark.parametrize(
    ("facts", "cuda", "verdict", "via"),
    [
        (DriverFacts(version="580.159.04", cuda="13.0"), "13.0", "yes", "backward"),
        (DriverFacts(version="580.159.04", cuda="13.0"), "11.8", "yes", "backward"),
        (DriverFacts(version="550.54.14", cuda="12.4"), "12.8", "yes", "minor-version"),
        (DriverFacts(version="550.54.14"), "12.8", "yes", "minor-version"),
        (DriverFacts(version="580.65.06", cuda="13.0"), "13.2", "yes", "minor-version"),
        (DriverFacts(version="525.60.11", cuda="12.0"), "12.1", "no", None),
        (DriverFacts(version="470.57.02", cuda="11.4"), "12.8", "no", None),
        (DriverFacts(version="470.57.02", cuda="11.4"), "11.8", "yes", "minor-version"),
        (DriverFacts(version="575.57.08", cuda="12.9"), "13.0", "no", None),
        (DriverFacts(version="418.67", cuda="10.1"), "10.2", "no", None),
        (DriverFacts(cuda="12.4"), "12.8", "yes", "minor-version"),
        (DriverFacts(), "12.8", "unknown", None),
        (DriverFacts(version="700.10"), "12.8", "yes", "backward"),
        (DriverFacts(version="700.10"), "15.0", "unknown", None),
        (DriverFacts(version="580.159.04", cuda="13.0"), "15.0", "unknown", None),
        (DriverFacts(version="540.4.0", cuda="12.6", jetson=True), "12.8", "yes", "minor-version"),
        (DriverFacts(version="540.4.0", cuda="12.6", jetson=True), "13.0", "unknown", None),
        (DriverFacts(version="576.02", cuda="12.9", windows=True), "12.9", "yes", "backward"),
        (DriverFacts(version="528.33", cuda="12.0", windows=True), "12.8", "yes", "minor-version"),
        (DriverFacts(version="527.41", cuda="12.0", windows=True), "12.8", "no", None),
    ],
)
def test_driver_runs(facts: DriverFacts, cuda: str, verdict: str, via: str | None) -> None:
    """Backward, then minor-version compatibility; beyond the tables nobody knows."""
    answer = driver_runs(tables(), facts, cuda)
    assert (answer.verdict, answer.via) == (verdict, via)


def test_what_is_needed_is_the_floor_of_the_major() -> None:
    """The least demanding driver is named, on each system in its own numbers."""
    linux = driver_runs(tables(), DriverFacts(version="470.57.02", cuda="11.4"), "12.8")
    windows = driver_runs(
        tables(), DriverFacts(version="471.11", cuda="11.4", windows=True), "12.8"
    )
    assert (linux.needed, windows.needed) == ("525.60.13", "528.33")
    assert [row.table for row in linux.rows] == ["cuda", "cuda"]


def test_beyond_the_tables_is_said_as_such() -> None:
    """A CUDA release newer than the tables is unknown of that kind."""
    answer = driver_runs(tables(), DriverFacts(version="580.159.04", cuda="13.0"), "15.0")
    assert answer.kind == "newer-than-table"
    assert driver_runs(tables(), DriverFacts(), "12.8").kind == "missing"


@pytest.mark.parametrize(
    ("gpus", "version", "compat", "cuda", "verdict"),
    [
        (H200, "535.216.01", "580.65.06", "13.0", "yes"),
        (RTX, "535.216.01", "580.65.06", "13.0", "no"),
        (("A GPU of no table",), "535.216.01", "580.65.06", "13.0", "unknown"),
        ((), "535.216.01", "580.65.06", "13.0", "unknown"),
        (H200, "525.60.13", "580.65.06", "13.0", "no"),
        (H200, "535.216.01", "550.54.15", "13.0", "no"),
        (H200, "570.124.06", "610.43.02", "13.3", "unknown"),
    ],
)
def test_forward(gpus: tuple[str, ...], version: str, compat: str, cuda: str, verdict: str) -> None:
    """Only on eligible GPUs, from listed branches, with a compat libcuda that is new enough."""
    facts = DriverFacts(version=version, compat_version=compat, gpus=gpus)
    assert forward_runs(tables(), facts, cuda).verdict == verdict


def test_forward_is_the_last_road_and_proof_outranks_tables() -> None:
    """A driver of its own major is asked first; an initialised CUDA needs no table."""
    facts = DriverFacts(version="535.216.01", cuda="13.0", compat_version="580.65.06", gpus=H200)
    assert driver_runs(tables(), facts, "13.0").via == "forward"
    assert driver_runs(tables(), facts, "12.8").via == "minor-version"
    proven = DriverFacts(
        version="535.216.01", compat_version="580.65.06", compat_works=True, gpus=("Unheard of",)
    )
    assert driver_runs(tables(), proven, "13.0").via == "forward"


def test_minor_version_compatibility_does_not_compile_newer_ptx() -> None:
    """PTX needs a driver whose own CUDA is not older than the toolkit."""
    old = DriverFacts(version="550.54.14", cuda="12.4")
    assert compiles_ptx(tables(), old, "12.8") is False
    assert compiles_ptx(tables(), old, "12.4") is True
    assert compiles_ptx(tables(), DriverFacts(), "12.4") is None
