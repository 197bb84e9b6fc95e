"""Rules about containers: engines of a GPU host, and what is missing inside a container."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.rules.container.container_toolkit_missing import (
    cdi_spec_missing,
    container_toolkit_missing,
    docker_desktop_no_gpu,
)
from envcheck.rules.container.container_without_gpu import (
    container_device_access_lost,
    container_without_gpu,
    driver_capabilities_missing,
    shm_too_small,
)

if TYPE_CHECKING:
    from envcheck.rules.base import Rule

CONTAINER_RULES: tuple[Rule, ...] = (
    docker_desktop_no_gpu,
    container_toolkit_missing,
    cdi_spec_missing,
    driver_capabilities_missing,
    container_without_gpu,
    container_device_access_lost,
    shm_too_small,
)
