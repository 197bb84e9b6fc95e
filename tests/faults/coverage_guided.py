"""Coverage-guided fuzzing of locks, redaction and payload answers; run as a program, with atheris.

python tests/faults/coverage_guided.py -max_total_time=60
"""

from __future__ import annotations

import contextlib
import sys
from typing import Any

import atheris

with atheris.instrument_imports():
    from envcheck.errors import LockError
    from envcheck.planner.lock import parse_lock
    from envcheck.probe.answers import MARKER, payload_answer
    from envcheck.probe.redact import Redactor
    from envcheck.probe.shapes import ENVIRONMENT, LIBCUDA, NVML
    from envcheck.probe.source import Result

REDACT = Redactor({"USER": "alice", "HOME": "/home/alice"}, lambda _path: "buildbox7")


def one(data: bytes) -> None:
    """One input through each reader; anything raised but their own errors is a fault."""
    text = data.decode("utf-8", "replace")
    with contextlib.suppress(LockError):
        parse_lock(text, "x.lock")
    REDACT(text)
    result = Result(outcome="ok", code=0, stdout=MARKER + text)
    shapes: tuple[Any, ...] = (NVML, LIBCUDA, ENVIRONMENT)
    for shape in shapes:
        payload_answer(result, shape)


if __name__ == "__main__":
    atheris.Setup(sys.argv, one)
    atheris.Fuzz()
