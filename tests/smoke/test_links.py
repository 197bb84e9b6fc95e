"""What links can carry, through stub libraries."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from envcheck.paths import payload
from tests.cli.runner import environment
from tests.probe.conftest import build

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs a C compiler")


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("links")
    for library in ("libnvidia-ml.so.1", "libcuda.so.1"):
        build(folder, "links_stub.c", library)
    return folder


@pytest.mark.parametrize(
    ("index", "links", "speed", "metrics"),
    [
        (1, "18", "26562", {"link_bandwidth": [478.116, "GB/s"], "nvlinks": [18, ""]}),
        (1, "4", "0", {"nvlinks": [4, ""]}),
        (
            1,
            "0",
            "0",
            {
                "link_bandwidth": [pytest.approx(63.015, abs=0.001), "GB/s"],
                "pcie_generation": [5, ""],
                "pcie_width": [16, ""],
            },
        ),
        (0, "18", "26562", {}),
    ],
)
def test_bandwidth_of_links(
    driver: Path, index: int, links: str, speed: str, metrics: dict[str, object]
) -> None:
    folder = str(payload("smoke_links").parent)
    script = (
        f"import sys, json; sys.path.insert(0, {folder!r}); from smoke_links import link_bandwidth;"
        f" print(json.dumps(link_bandwidth({index})))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env=environment(
            LD_LIBRARY_PATH=str(driver), LINKS_STUB_NVLINKS=links, LINKS_STUB_SPEED=speed
        ),
    )
    assert json.loads(done.stdout) == metrics


def test_no_driver_is_no_figure() -> None:
    folder = str(payload("smoke_links").parent)
    script = (
        f"import sys; sys.path.insert(0, {folder!r}); import smoke_links;"
        " print(smoke_links.link_bandwidth(0))"
    )
    if Path("/dev/nvidiactl").exists():
        pytest.skip("there is a driver here")
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "{}"
