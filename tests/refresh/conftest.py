"""A local index, and a client that does not wait."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from envcheck.refresh.client import Client
from tests.refresh.serving import Index, served


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Reach the loopback interface directly, and read nobody's passwords."""
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NETRC", str(tmp_path / "no-netrc"))


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    """An empty index that runs during the test."""
    folder = tmp_path / "index"
    folder.mkdir()
    with served(folder) as running:
        yield running


@pytest.fixture
def waits() -> list[float]:
    """Seconds that the client wanted to wait, in order."""
    return []


@pytest.fixture
def client(index: Index, waits: list[float]) -> Client:
    """A client of that index whose waits take no time."""
    return Client(index=index.url, pause=0.25, sleep=waits.append)
