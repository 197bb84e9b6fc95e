"""NVIDIA's versions: order, text, and integer encodings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envcheck.versions import Release, cuda_from_int, cudnn_from_int, nccl_from_int


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("470.57.02", "525.60.13"),
        ("535.54.03", "535.183.06"),
        ("12.9", "12.10"),
        ("9.9.1", "9.10"),
        ("580.65.06", "580.126.09"),
    ],
)
def test_parts_are_compared_as_numbers(older: str, newer: str) -> None:
    """12.10 comes after 12.9."""
    assert Release.parse(older) < Release.parse(newer)
    assert not Release.parse(newer) < Release.parse(older)


def test_text_stays_as_read() -> None:
    """A zero in front of a part is kept in print and ignored in comparison."""
    assert str(Release.parse("535.183.06")) == "535.183.06"
    assert Release.parse("535.183.06") == Release.parse("535.183.6")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("1:525.85.12-1", (525, 85, 12)),
        ("550.54.14-0ubuntu0.22.04.1", (550, 54, 14)),
        ("V13.0.88", (13, 0, 88)),
        ("2.28.3-1+cuda13.0", (2, 28, 3)),
        ("  12.4 ", (12, 4)),
    ],
)
def test_package_versions_are_read(text: str, parts: tuple[int, ...]) -> None:
    """Epochs, revisions and a leading v are cut off."""
    assert Release.parse(text).parts == parts


@pytest.mark.parametrize("text", ["", "N/A", "[Not Supported]", "unknown"])
def test_no_version_is_an_error_or_none(text: str) -> None:
    """`parse` says so, `maybe` gives None."""
    with pytest.raises(ValueError, match="not a version"):
        Release.parse(text)
    assert Release.maybe(text) is None


def test_a_missing_part_is_zero() -> None:
    """`13` and `13.0` are one release; their hashes agree."""
    assert Release.parse("13") == Release.parse("13.0")
    assert hash(Release.parse("13")) == hash(Release.parse("13.0"))


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("580.159", "580.159.04", True),
        ("580.159.04", "580.159", True),
        ("580.15", "580.159.04", False),
        ("580.159.03", "580.159.04", False),
    ],
)
def test_nvml_prints_two_parts(one: str, other: str, same: bool) -> None:
    """A two-part reading agrees with the full one, and with nothing that only looks alike."""
    assert Release.parse(one).starts_like(Release.parse(other)) is same


@given(st.lists(st.integers(0, 9999), min_size=1, max_size=4))
def test_printing_and_parsing_agree(parts: list[int]) -> None:
    """What is printed is read back as the same release."""
    text = ".".join(map(str, parts))
    assert Release.parse(text).parts == tuple(parts)


def test_integer_encodings() -> None:
    """Each library changed its encoding once, CUDA never."""
    assert cuda_from_int(12040) == "12.4"
    assert cuda_from_int(13000) == "13.0"
    assert cudnn_from_int(92400) == "9.24.0"
    assert cudnn_from_int(91900) == "9.19.0"
    assert cudnn_from_int(8907) == "8.9.7"
    assert nccl_from_int(22809) == "2.28.9"
    assert nccl_from_int(2708) == "2.7.8"
