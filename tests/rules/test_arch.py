"""Machine code and PTX against compute capabilities."""

from __future__ import annotations

import pytest

from envcheck.rules.arch import coverage, targets

TEGRA = frozenset({"5.3", "6.2", "7.2", "8.7", "10.1", "11.0"})


@pytest.mark.parametrize(
    ("arches", "gpu", "verdict", "target"),
    [
        (("sm_75", "sm_80", "sm_86", "sm_90"), "8.9", "yes-sass", "sm_86"),
        (("sm_75", "sm_80", "sm_86", "sm_90"), "8.6", "yes-sass", "sm_86"),
        (("sm_50", "sm_60", "sm_70"), "6.1", "yes-sass", "sm_60"),
        (("sm_100", "sm_120"), "10.3", "yes-sass", "sm_100"),
        (("sm_100", "sm_120"), "12.1", "yes-sass", "sm_120"),
        (("sm_80", "sm_86", "sm_90"), "12.0", "no-build-too-old", "sm_90"),
        (("sm_75", "sm_80"), "7.0", "no-build-too-new", "sm_75"),
        (("sm_37", "sm_50"), "3.5", "no-build-too-new", "sm_37"),
        (("sm_75", "sm_86", "sm_90"), "8.0", "no-skipped", None),
        (("sm_90",), "10.0", "no-build-too-old", "sm_90"),
        (("sm_80", "compute_90"), "12.0", "yes-ptx", "compute_90"),
        (("sm_80", "compute_90"), "8.6", "yes-sass", "sm_80"),
        (("sm_90", "compute_90"), "8.0", "no-build-too-new", "sm_90"),
        (("8.0", "9.0+PTX"), "12.0", "yes-ptx", "compute_90"),
        (("sm_90a",), "9.0", "yes-sass", "sm_90a"),
        (("sm_100a",), "10.3", "no-build-too-old", "sm_100a"),
        (("sm_100f",), "10.3", "yes-sass", "sm_100f"),
        (("sm_103f",), "10.0", "no-build-too-new", "sm_103f"),
        (("sm_80", "compute_90a"), "12.0", "no-build-too-old", "compute_90a"),
        (("sm_80", "sm_90"), "8.7", "unknown", "sm_80"),
        (("sm_87",), "8.9", "unknown", "sm_87"),
        (("sm_87",), "8.7", "yes-sass", "sm_87"),
        (("sm_70", "sm_75"), "7.2", "unknown", "sm_70"),
        (("sm_80", "compute_80"), "8.7", "yes-ptx", "compute_80"),
        ((), "8.9", "unknown", None),
        (("gfx90a",), "8.9", "unknown", None),
        (("sm_90",), "", "unknown", None),
    ],
)
def test_coverage(arches: tuple[str, ...], gpu: str, verdict: str, target: str | None) -> None:
    """Same major and no higher minor runs; PTX only upwards; suffixes and Tegra bind closer."""
    answer = coverage(arches, gpu, tegra=TEGRA)
    assert (answer.verdict, answer.target) == (verdict, target)


def test_runs_is_three_valued() -> None:
    """Yes by either road, no in either direction, and not known."""
    assert coverage(("sm_80",), "8.6").runs is True
    assert coverage(("compute_80",), "9.0").runs is True
    assert coverage(("sm_80",), "9.0").runs is False
    assert coverage((), "9.0").runs is None


def test_targets_of_two_and_three_digits() -> None:
    """The last digit is the minor: sm_120 is 12.0, not 1.20."""
    assert [each.capability for each in targets(("sm_75", "sm_120", "12.1a"))] == [
        (7, 5),
        (12, 0),
        (12, 1),
    ]
