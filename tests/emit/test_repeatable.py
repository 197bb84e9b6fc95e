"""The same lock gives the same bytes, quickly, whatever it holds."""

from __future__ import annotations

import time
from importlib import import_module

from envcheck.emit import TARGETS
from envcheck.errors import UsageError
from envcheck.matrix.loader import Matrix
from tests.emit.locks import random_lock

OWN = ("dockerfile", "compose", "devcontainer", "requirements", "conda")
COUNT = 100
LONGEST = 1.0
"""Seconds that all targets of one lock may take together."""


def emitted(number: int, matrix: Matrix) -> dict[str, dict[str, str] | str]:
    """Files of every target for a random lock, or why there are none."""
    lock, options = random_lock(number)
    found: dict[str, dict[str, str] | str] = {}
    for target in OWN:
        try:
            found[target] = import_module(TARGETS[target]).files(lock, matrix, options)
        except UsageError as error:
            found[target] = str(error)
    return found


def test_a_hundred_locks_twice() -> None:
    slowest, made, profiles = 0.0, 0, set()
    for number in range(COUNT):
        started = time.process_time()
        first = emitted(number, Matrix.shipped())
        slowest = max(slowest, time.process_time() - started)
        assert emitted(number, Matrix.shipped()) == first
        assert isinstance(first["requirements"], dict) or "CPU" in first["requirements"]
        if isinstance(first["dockerfile"], dict):
            made += 1
            profiles.add(random_lock(number)[1].profile)
    assert slowest < LONGEST
    assert made >= COUNT // 4
    assert profiles == {"runtime", "devel", "ngc"}
