"""Says which envcheck is tested: `.ci/run` insists on the installed one."""

from __future__ import annotations

from pathlib import Path

import envcheck


def pytest_report_header() -> str:
    """One line above the results."""
    return f"envcheck {envcheck.__version__} from {Path(envcheck.__file__).parent}"
