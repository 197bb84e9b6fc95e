"""Series to averages: windows, gaps, percentiles."""

from __future__ import annotations

from typing import Any

from envcheck.watch.analysis import analyse, spread
from envcheck.watch.dcgm import parse
from envcheck.watch.series import Series

FACTS = {"index": 0, "gpm": True, "pcie_generation": 5, "pcie_width": 16}


def series(*samples: dict[str, Any], target: str = "command", **host: Any) -> Series:
    """One GPU, a sample every tenth of a second."""
    made = Series({"interval": 0.1, "target": target, "cores": 8, "gpus": [FACTS]})
    made.ticks = [
        {"t": round(0.1 * at, 3), "gpus": [{"i": 0, **each}], "host": host}
        for at, each in enumerate(samples, 1)
    ]
    return made


BUSY = {"util": 90, "sm": 50.0, "active": 60.0}
QUIET = {"util": 40, "sm": 0.0, "active": 0.0}


def test_spread_of_known_numbers() -> None:
    found = spread([None, *map(float, range(100))])
    assert found is not None
    assert (found.mean, found.low, found.median, found.high, found.peak) == (49.5, 5, 50, 95, 99)
    assert spread([None]) is None


def test_the_start_and_the_end_of_a_command_do_not_count() -> None:
    found = analyse(series(*[QUIET] * 30, *[BUSY] * 20, *[QUIET] * 10))
    assert (found.samples, found.seconds, found.started) == (20, 2.0, 3.0)
    assert found.gpus[0].sm is not None
    assert found.gpus[0].sm.mean == 50.0


def test_of_a_machine_everything_counts() -> None:
    found = analyse(series(*[QUIET] * 30, *[BUSY] * 20, target="machine"))
    assert (found.samples, found.started) == (50, 0.0)


def test_gaps_are_counted_with_what_the_host_did() -> None:
    found = analyse(
        series(BUSY, QUIET, QUIET, BUSY, QUIET, BUSY, worker_cpu=2.0, gpu_cpu=0.1, iowait=0.0)
    )
    gaps = found.gpus[0].gaps
    assert gaps is not None
    assert (gaps.share, gaps.count, gaps.longest_seconds) == (0.5, 2, 0.2)
    assert (gaps.worker_cpu, gaps.gpu_process_cpu) == (2.0, 0.1)


def test_tiny_kernels_are_no_gap() -> None:
    gaps = analyse(series(*[{"util": 27, "sm": 0.03, "active": 27.0}] * 5)).gpus[0].gaps
    assert gaps is not None
    assert gaps.count == 0


def test_without_gpm_utilisation_counts() -> None:
    found = analyse(series({"util": 0}, {"util": 80}, {"util": 0}, {"util": 80}, {"util": 0}))
    assert (found.samples, found.gpus[0].via) == (3, "nvml")
    assert found.gpus[0].gaps is not None
    assert found.gpus[0].gaps.count == 1


def test_throttling_is_a_share_of_the_samples_that_tell() -> None:
    found = analyse(
        series({**BUSY, "throttle": ["sw-thermal"]}, BUSY, {**BUSY, "throttle": []}, BUSY)
    )
    assert [(each.name, each.share) for each in found.gpus[0].throttle] == [("sw-thermal", 0.5)]


def test_links_and_replays() -> None:
    found = analyse(series({**BUSY, "replay": 3}, {**BUSY, "replay": 8})).gpus[0]
    assert (found.pcie_limit, found.pcie_replays) == (63008.0, 5)


def test_steps_are_weighted_by_their_number_without_the_first_second() -> None:
    made = series(BUSY)
    made.steps = [
        {"count": 5, "seconds": 9.0, "data_wait": 8.0},
        {"count": 10, "seconds": 0.1, "data_wait": 0.04, "compute": 0.05},
        {"count": 30, "seconds": 0.1, "data_wait": 0.08, "compute": 0.02},
    ]
    steps = analyse(made).steps
    assert steps is not None
    assert (steps.count, steps.seconds, steps.data_wait, steps.compute) == (40, 0.1, 0.07, 0.0275)


def test_rows_of_dcgmi_dmon() -> None:
    row = (
        "    GPU 1     0.953     0.140     0.921     N/A     0.000     0.000     0.000     2500000"
    )
    assert parse(row) == (
        1,
        {
            "sm": 95.3,
            "occ": 14.0,
            "tensor": 92.1,
            "fp64": 0.0,
            "fp32": 0.0,
            "fp16": 0.0,
            "pcie_out": 2.5,
        },
    )
    assert parse("#Entity   SMACT        SMOCC        TENSO") is None
    assert parse("ID") is None
    assert parse("Error setting watches. Result: The third-party Profiling module") is None
