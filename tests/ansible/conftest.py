"""Hosts, and a folder that `envcheck emit ansible` wrote for them: one of each for all tests."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.ansible.archive import OLD, TOOLKIT_NEW, make_archive, make_wheels
from tests.ansible.fleet import Fleet
from tests.ansible.hosts import running_hosts
from tests.containers.engine import running_engine, why_not

if TYPE_CHECKING:
    from collections.abc import Iterator

TORCH = "2.15.0+cpu"
HOSTS = ("h1", "h2", "h3", "h4")


def tool(name: str) -> str:
    """A program of the environment that runs the tests; the test is skipped without it."""
    path = Path(sys.executable).parent / name
    if not path.is_file():
        pytest.skip(f"{name} is not installed")
    return str(path)


@pytest.fixture(scope="session")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Four hosts, of which the first three are to be managed; nothing was done to them yet."""
    playbook = tool("ansible-playbook")
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("fleet")
    make_archive(folder / "archive")
    make_wheels(folder / "archive/wheels", torch=TORCH)
    with running_engine() as engine, running_hosts(engine, folder, HOSTS) as hosts:
        made = Fleet(hosts, folder / "out", playbook)
        made.emit("--driver-version", OLD)
        made.settings("all/zz-test", {**_MIRRORS, "container_toolkit_version": TOOLKIT_NEW})
        yield made


_MIRRORS = {
    "nvidia_repository_cuda_url": "file:///srv/archive/",
    "nvidia_repository_cuda_key": "file:///srv/archive/key.gpg",
    "nvidia_repository_container_toolkit_url": "file:///srv/archive/",
    "nvidia_repository_container_toolkit_key": "file:///srv/archive/key.asc",
    "nvidia_driver_pci_devices": "/srv/sys/bus/pci/devices",
    "nvidia_driver_loaded_modules": "/srv/sys/module",
    "nvidia_driver_efi_variables": "/srv/sys/efivars",
    "container_toolkit_loaded_modules": "/srv/sys/module",
    "container_toolkit_engines": ["docker", "podman"],
    "python_stack_find_links": "/srv/archive/wheels",
}
"""What a site without a way to the outside sets, and where the hosts' made-up kernel is."""
