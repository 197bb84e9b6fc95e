"""A wheel on a server is opened, and read in part, without being fetched."""

from __future__ import annotations

import io
import random
import zipfile
from pathlib import Path

import pytest

from envcheck.refresh.client import Client, UnreachableError
from envcheck.refresh.remote_file import FIRST, LONGEST, TAIL, RemoteFile
from tests.refresh.serving import Index, wheel


def test_reads_are_those_of_the_file(index: Index, client: Client) -> None:
    dice = random.Random(7)  # noqa: S311 - no secret
    data = dice.randbytes(1_500_000)
    index.write("file", data)
    remote, local = RemoteFile(client, f"{index.origin}/file"), io.BytesIO(data)
    assert remote.size == len(data)
    for _ in range(200):
        at, size = dice.randrange(len(data) + 10), dice.choice((0, 1, 30, 5000, 200_000))
        assert remote.seek(at) == local.seek(at) == remote.tell()
        assert remote.read(size) == local.read(size)
        assert remote.tell() == local.tell()
    remote.seek(-22, io.SEEK_END)
    assert remote.read() == data[-22:]
    remote.seek(-10, io.SEEK_CUR)
    assert remote.read(3) == data[-10:-7]
    buffer = bytearray(4)
    remote.seek(0)
    assert (remote.readinto(buffer), bytes(buffer)) == (4, data[:4])
    with pytest.raises(ValueError, match="negative position"):
        remote.seek(-1)


def test_a_small_member_of_a_large_wheel_takes_few_requests(index: Index, client: Client) -> None:
    large = random.Random(1).randbytes(20 << 20)  # noqa: S311 - no secret
    path = index.folder / "big.whl"
    wheel(
        path,
        {"big/lib.so": large, "big/version.py": "cuda = None\n", "big/other.so": large[::-1]},
        zipfile.ZIP_STORED,
    )
    remote = RemoteFile(client, f"{index.origin}/big.whl")
    with zipfile.ZipFile(remote) as archive:
        assert archive.read("big/version.py") == b"cuda = None\n"
    assert client.requests == 2
    assert path.stat().st_size > 40 << 20


def test_a_large_member_is_fetched_in_growing_pieces(index: Index, client: Client) -> None:
    large = random.Random(2).randbytes(12 << 20)  # noqa: S311 - no secret
    wheel(index.folder / "big.whl", {"lib.so": large, "pad": bytes(TAIL)}, zipfile.ZIP_STORED)
    remote = RemoteFile(client, f"{index.origin}/big.whl")
    with zipfile.ZipFile(remote) as archive, archive.open("lib.so") as file:
        found = b"".join(iter(lambda: file.read(1 << 20), b""))
    assert found == large
    assert client.requests < 16
    sizes = [
        int(last) - int(first) + 1
        for each in index.asked[1:]
        for first, last in [(each.part or "").removeprefix("bytes=").split("-")]
    ]
    assert min(sizes[:1]) >= FIRST
    assert max(sizes) <= LONGEST


def test_a_file_smaller_than_one_request(index: Index, client: Client) -> None:
    index.write("file", b"tiny")
    remote = RemoteFile(client, f"{index.origin}/file")
    assert (remote.read(), client.requests) == (b"tiny", 1)


def test_a_file_that_changes_under_way(index: Index, client: Client) -> None:
    index.write("file", bytes(TAIL * 2))
    remote = RemoteFile(client, f"{index.origin}/file")
    index.write("file", bytes(TAIL * 3))
    with pytest.raises(UnreachableError, match="another part of a file"):
        remote.read(10)


def test_a_directory_that_claims_to_be_huge(
    index: Index, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("envcheck.refresh.remote_file.LARGEST", 1 << 20)
    index.write("file", bytes(2 << 20))
    with pytest.raises(UnreachableError, match="more than 1 MiB of a wheel"):
        RemoteFile(client, f"{index.origin}/file").read()


def test_not_a_file(index: Index, client: Client, tmp_path: Path) -> None:
    assert not (tmp_path / "index" / "file").exists()
    with pytest.raises(UnreachableError, match="does not have file"):
        RemoteFile(client, f"{index.origin}/file")
