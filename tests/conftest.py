"""Says which envcheck is tested: `.ci/run` insists on the installed one."""

from __future__ import annotations

from pathlib import Path

import pytest

import envcheck

TOGETHER = {
    "ansible": "engine",
    "containers": "engine",
    "fleet": "engine",
    "smoke": "smoke",
}
"""Folder of tests -> what they share: a container engine, or an environment with torch.

All other files of tests are on their own.
"""


def pytest_report_header() -> str:
    """One line above the results."""
    return f"envcheck {envcheck.__version__} from {Path(envcheck.__file__).parent}"


HERE = Path(__file__).parent


def pytest_itemcollected(item: pytest.Item) -> None:
    """Keep together what shares something that takes long to make; several processes run tests.

    Done here, since the groups are read before `pytest_collection_modifyitems` comes to this file.
    """
    if getattr(item.config.option, "loadgroup", False):
        place = item.path.relative_to(HERE)
        item.add_marker(pytest.mark.xdist_group(TOGETHER.get(place.parts[0], str(place))))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest, or the other process would wait for it at the end."""
    items.sort(key=lambda item: item.path.relative_to(HERE).parts[0] not in TOGETHER)
