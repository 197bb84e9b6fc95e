"""The scanner: what it keeps, how it meets broken and hostile lines, and how long it takes."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envcheck.model.symptom import Capture, Symptom
from envcheck.symptoms.scan import LONGEST_LINE, PER_ROW, SHOWN, scan
from tests.symptoms.data import tables

MISMATCH = "Failed to initialize NVML: Driver/library version mismatch"
XID = "NVRM: Xid (PCI:0000:{:02x}:00): 79, pid=1, GPU has fallen off the bus."


def _names(*lines: str) -> list[str]:
    return [each.name for each in scan(lines, tables())]


def test_a_symptom_carries_its_line_its_place_and_its_captures() -> None:
    line = "NVRM: Xid (PCI:0000:3b:00): 119, pid=77, name=python"
    assert scan([line], tables(), via="journal") == (
        Symptom(
            name="xid",
            text=line,
            via="journal",
            captures=(
                Capture(name="address", value="0000:3b:00"),
                Capture(name="number", value="119"),
            ),
        ),
    )


def test_the_same_message_again_is_one_symptom() -> None:
    assert _names(*[MISMATCH] * 50) == ["nvml-library-mismatch"]


def test_messages_that_differ_in_what_they_name_are_kept_apart_up_to_a_bound() -> None:
    lines = [XID.format(number) for number in range(200)]
    found = [each for each in scan(lines, tables()) if each.name == "xid"]
    assert len(found) == PER_ROW
    assert found[1].capture("address") == "0000:01:00"


def test_symptoms_come_in_the_order_of_the_text() -> None:
    assert _names("CUDA out of memory. Tried to allocate 2 GiB", "x", MISMATCH) == [
        "out-of-memory",
        "nvml-library-mismatch",
    ]


@pytest.mark.parametrize(
    "lines",
    [
        ("Failed to initialize NVML: Driver/library", "version mismatch"),
        ("nvidia-container-cli: nvml error: driver/library version", "mismatch: unknown"),
        ("Failed to initialize NVML: Driver/library version mis", "match"),
    ],
)
def test_a_message_that_the_terminal_broke_is_put_together(lines: tuple[str, ...]) -> None:
    assert _names(*lines) == ["nvml-library-mismatch"]


def test_a_message_over_three_lines_with_the_kernels_prefix_is_put_together() -> None:
    assert "open-modules-unsupported" in _names(
        "[ 12.1] NVRM: installed in this system is not supported by open",
        "[ 12.1] NVRM: nvidia.ko because it does not include the required GPU",
        "[ 12.1] NVRM: System Processor (GSP).",
    )


def test_lines_that_have_nothing_to_do_with_each_other_are_not_put_together() -> None:
    assert _names("the nvidia driver", "library version", "", "mismatch of tensors") == []


def test_a_message_deep_in_a_long_line_is_found_and_shown_shortened() -> None:
    (found,) = scan(["x" * 700_000 + " " + MISMATCH + " " + "y" * 300_000], tables())
    assert found.name == "nvml-library-mismatch"
    assert len(found.text) <= SHOWN + 2
    assert "Driver/library version mismatch" in found.text


def test_a_message_across_the_border_of_two_pieces_is_found() -> None:
    for shift in range(0, len(MISMATCH), 7):
        line = "x" * (LONGEST_LINE - shift) + " " + MISMATCH + " z" * 2000
        assert "nvml-library-mismatch" in _names(line), shift


def test_case_is_minded_unless_a_row_says_otherwise() -> None:
    assert "nccl-info" in _names("h:1:2 [0] NCCL INFO Ring 00")
    assert "nccl-info" not in _names("h:1:2 [0] nccl info ring 00")
    assert "nvml-library-mismatch" in _names(MISMATCH.upper())


def test_letters_outside_ascii_separate_words() -> None:
    assert _names(f"报错 {MISMATCH}。") == ["nvml-library-mismatch"]


@settings(max_examples=150, deadline=None)
@given(st.lists(st.text(max_size=300), max_size=12))
def test_no_text_makes_it_raise(lines: list[str]) -> None:
    assert isinstance(scan(lines, tables()), tuple)


_FRAGMENTS = sorted({row.example for row in tables().symptoms})[::3]


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.sampled_from(_FRAGMENTS).flatmap(
            lambda text: st.integers(0, len(text)).map(lambda cut: text[cut:] + " " + text[:cut])
        ),
        max_size=20,
    )
)
def test_pieces_of_messages_in_any_order_do_no_harm(lines: list[str]) -> None:
    found = scan(lines, tables())
    assert len({(each.name, each.captures) for each in found}) == len(found)


@pytest.mark.parametrize(
    "hostile",
    [
        "cannot open shared object file " * 33_000,
        "undefined symbol: " * 55_000,
        "/site-packages/" * 66_000,
        "CUDA_VISIBLE_DEVICES=" * 47_000,
        "Process 1 has 1 GiB memory in use. total capacity of " * 19_000,
        "a" * 1_000_000,
        "(/" * 500_000,
        " " * 1_000_000,
    ],
    ids=lambda text: text[:16],
)
def test_a_hostile_line_of_a_megabyte_takes_no_time(hostile: str) -> None:
    start = time.process_time()
    scan([hostile, hostile], tables())
    assert time.process_time() - start < 2.0


def test_a_long_log_is_read_at_more_than_ten_megabytes_a_second() -> None:
    lines = [
        f"node1:12345:12345 [0] NCCL INFO Channel {n % 32:02d}/0 : {n}[0] -> 1[1] via P2P/CUMEM"
        if n % 2
        else f"2026-01-05 12:00:{n % 60:02d} INFO trainer step={n} loss=1.25 tokens/s=12345"
        for n in range(60_000)
    ]
    size = sum(map(len, lines))
    start = time.process_time()
    found = scan([*lines, MISMATCH], tables())
    assert size / (time.process_time() - start) > 10_000_000
    assert [each.name for each in found] == ["nccl-info", "nvml-library-mismatch"]
