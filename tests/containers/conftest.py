"""The engine of this folder's tests: one for all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.containers.engine import Engine, running_engine, why_not

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    """A running engine; the test is skipped where none can be had."""
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    with running_engine() as running:
        yield running
