"""Says which envcheck is tested: `.ci/run` insists on the installed one."""

from __future__ import annotations

from pathlib import Path

import pytest

import envcheck

HERE = Path(__file__).parent

LONG = ("ansible", "containers", "fleet", "smoke")
"""Folders whose tests start container engines, hosts or frameworks."""


def pytest_report_header() -> str:
    """One line above the results."""
    return f"envcheck {envcheck.__version__} from {Path(envcheck.__file__).parent}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest, or the other process would wait for it at the end."""
    items.sort(key=lambda item: item.path.relative_to(HERE).parts[0] not in LONG)
