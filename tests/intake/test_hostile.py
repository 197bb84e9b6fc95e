"""No text makes a reader raise, or wait."""

from __future__ import annotations

import functools
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from envcheck.engine import judge
from envcheck.errors import NoTextError
from envcheck.intake import read
from envcheck.matrix.loader import Matrix
from envcheck.rules import all_rules

PIECES = (
    "PyTorch version: ",
    "CUDA used to build PyTorch: ",
    "GPU 0: ",
    "NVIDIA-SMI ",
    "Driver Version: ",
    "CUDA Version: ",
    "[pip3] torch==",
    "[conda] pytorch ",
    "|   0  ",
    " | 00000000:07:00.0 Off |",
    "name, driver_version\n",
    "GPU 00000000:17:00.0\n",
    "Xid (PCI:0000:01:00): ",
    "NVRM: ",
    "torch==",
    "Package Version\n------- -------\n",
    "# Name Version Build Channel\n",
    "L4T ",
    "R35.4.1",
    "jetpack ",
    "nvidia-cublas-cu12 ",
    "jax: ",
    "torch.__version__ ",
    "found version ",
    "Error 804: ",
    "sm_90 ",
    "with CUDA capability sm_120 is not compatible",
    "Found GPU0 ",
    "compute capability: ",
    "\n",
    " ",
    "12.8",
    "2.8.0+cu128",
    "None",
    "True",
    "N/A",
    "9" * 30,
    ".",
    "\uff1a",
    "> ",
    "\u001b[0m",
    "\\n",
    "#012",
    "Failed to initialize NVML: ",
    "ii  nvidia-smi ",
    "LD_LIBRARY_PATH=",
    "Runtimes: ",
    "&lt;",
)


@functools.cache
def tables() -> Matrix:
    return Matrix.shipped()


def survives(text: str | bytes) -> None:
    try:
        snapshot = read(text, tables())
    except NoTextError:
        return
    report = judge(snapshot, tables(), all_rules())
    assert [each for each in report.unknown if each.kind == "crashed"] == []


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=12), max_size=60))
def test_known_pieces_in_any_order(pieces: list[str]) -> None:
    survives("".join(pieces))


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=400))
def test_any_bytes(data: bytes) -> None:
    survives(data)


@pytest.mark.parametrize(
    "piece", [*PIECES, "a", "a ", "1.", "[", "(", "|", "| ", "GPU 0: a (", "x=", "'a', "]
)
def test_long_lines_take_linear_time(piece: str) -> None:
    """The same again and again: a pattern that goes back over it would take minutes."""
    text = piece * (400_000 // len(piece))
    begin = time.process_time()
    survives(text)
    assert time.process_time() - begin < 8.0
