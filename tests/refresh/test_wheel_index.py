"""Wheels read from an index, from what was kept of it, and from a folder."""

from __future__ import annotations

import hashlib
import re
import zipfile
from pathlib import Path

import pytest

from envcheck.refresh import page
from envcheck.refresh.client import AbsentError, Client
from envcheck.refresh.page import Wheel
from envcheck.refresh.store import Store, default_cache
from envcheck.refresh.wheel_index import WheelIndex
from tests.refresh.serving import Index, wheel

NAME = "thing-1.0-cp312-cp312-manylinux_2_28_x86_64.whl"
METADATA = "Name: thing\nVersion: 1.0\nRequires-Dist: torch==2.8.0\n"
MEMBERS: dict[str, bytes | str] = {
    "thing/version.py": "cuda = '12.8'\n",
    "thing-1.0.dist-info/METADATA": METADATA,
}


@pytest.fixture
def reader(index: Index, client: Client, tmp_path: Path) -> WheelIndex:
    """What reads that index, keeping things in `cache`."""
    return WheelIndex(Store(tmp_path / "cache"), client, (index.url,))


def listed(index: Index, members: dict[str, bytes | str] = MEMBERS, **more: object) -> None:
    """Put a wheel on the index."""
    wheel(index.folder / "thing" / NAME, members)
    index.page("thing", NAME, **more)


def test_a_wheel_is_read_in_part_and_only_once(
    index: Index, client: Client, reader: WheelIndex, tmp_path: Path
) -> None:
    listed(index)
    (found,) = reader.wheels("thing")
    assert found.url == f"{index.origin}/thing/{NAME}"
    assert reader.metadata(found).requires[0].exact == "2.8.0"
    assert reader.member(found, "thing/version.py") == "cuda = '12.8'\n"
    assert reader.member(found, "thing/none.py") is None
    assert reader.names(found) == tuple(MEMBERS)
    assert [each.part is None for each in index.asked] == [True, False]
    again = WheelIndex(Store(tmp_path / "cache"), client, (index.url,))
    (found,) = again.wheels("thing")
    assert again.metadata(found) == reader.metadata(found)
    assert again.member(found, "thing/version.py") == "cuda = '12.8'\n"
    assert client.requests == 3  # the list is asked for anew, nothing else


def test_what_was_kept_can_be_read_without_the_index(
    index: Index, reader: WheelIndex, tmp_path: Path
) -> None:
    listed(index)
    (found,) = reader.wheels("thing")
    metadata = reader.metadata(found)
    reader.member(found, "thing/version.py")
    offline = WheelIndex(Store(tmp_path / "cache"))
    (kept,) = offline.wheels("thing")
    assert (kept.filename, kept.version, kept.python) == (NAME, "1.0", "cp312")
    assert offline.metadata(kept) == metadata
    assert offline.member(kept, "thing/version.py") == "cuda = '12.8'\n"
    with pytest.raises(AbsentError, match=f"nothing was saved of {NAME}"):
        offline.member(kept, "thing/other.py")
    with pytest.raises(AbsentError, match="no saved page other/index.json or other/index.html"):
        offline.wheels("other")
    kept_text = "".join(
        path.read_text() for path in (tmp_path / "cache").rglob("*") if path.is_file()
    )
    assert "127.0.0.1" not in kept_text


def test_metadata_that_stands_apart_costs_one_request(
    index: Index, client: Client, reader: WheelIndex
) -> None:
    digest = hashlib.sha256(METADATA.encode()).hexdigest()
    listed(index, **{"core-metadata": {"sha256": digest}})  # type: ignore[arg-type]
    index.write(f"thing/{NAME}.metadata", METADATA.encode())
    (found,) = reader.wheels("thing")
    assert reader.metadata(found).requires[0].exact == "2.8.0"
    assert [each.path for each in index.asked[1:]] == [f"/thing/{NAME}.metadata"]


@pytest.mark.parametrize("separate", [None, b"Name: thing\nRequires-Dist: torch==6.6.6\n"])
def test_metadata_apart_that_is_missing_or_wrong_is_taken_from_the_wheel(
    index: Index, reader: WheelIndex, separate: bytes | None
) -> None:
    listed(index, **{"core-metadata": {"sha256": "0" * 64}})  # type: ignore[arg-type]
    if separate is not None:
        index.write(f"thing/{NAME}.metadata", separate)
    (found,) = reader.wheels("thing")
    assert reader.metadata(found).requires[0].exact == "2.8.0"


def test_an_html_page(index: Index, reader: WheelIndex) -> None:
    wheel(index.folder / "files" / NAME, MEMBERS)
    index.write("thing/index.html", f'<a href="../../files/{NAME}">{NAME}</a>'.encode())
    (found,) = reader.wheels("thing")
    assert reader.metadata(found).requires[0].name == "torch"


def test_other_indexes_are_asked_for_what_the_main_one_lacks(
    index: Index, client: Client, tmp_path: Path
) -> None:
    folder = tmp_path / "elsewhere"
    wheel(folder / "files" / NAME, MEMBERS)
    (folder / "simple" / "thing").mkdir(parents=True)
    html = f'<a href="../../files/{NAME}">{NAME}</a>'
    (folder / "simple" / "thing" / "index.html").write_text(html, encoding="utf-8")
    urls = (index.url, (folder / "simple").as_uri())
    reader = WheelIndex(Store(tmp_path / "cache"), client, urls)
    (found,) = reader.wheels("thing")
    assert reader.metadata(found).requires[0].name == "torch"
    assert client.requests == 1  # the main index was asked first
    with pytest.raises(AbsentError, match="^the package index does not have other$"):
        reader.wheels("other")


def test_a_saved_wheel_is_as_good_as_its_parts(tmp_path: Path) -> None:
    wheel(tmp_path / "thing" / NAME, MEMBERS)
    (found,) = page.parse("thing", f'<a href="{NAME}">x</a>'.encode(), "html", "")
    reader = WheelIndex(Store(tmp_path))
    assert reader.metadata(found).requires[0].exact == "2.8.0"


PATTERN = re.compile(rb"(?:sm_\d+ )+sm_\d+")


@pytest.mark.parametrize("before", [0, 1, 2047, 2048, (1 << 20) - 12, (1 << 20) - 1, 3 << 20])
def test_a_match_is_found_wherever_it_stands(index: Index, reader: WheelIndex, before: int) -> None:
    arches = b"sm_75 sm_80 sm_90 sm_100"
    library = b"\0" * before + arches + b"\0" + arches + b"\0" * 5000
    listed(index, {"lib.so": library})
    (found,) = reader.wheels("thing")
    assert reader.search(found, "lib.so", PATTERN, "kept.txt") == (arches.decode(),)


def test_a_match_at_the_very_end_and_no_match(index: Index, reader: WheelIndex) -> None:
    listed(index, {"end.so": b"x" * (1 << 20) + b"sm_75 sm_80", "none.so": b"sm_75"})
    (found,) = reader.wheels("thing")
    assert reader.search(found, "end.so", PATTERN, "end.txt") == ("sm_75 sm_80",)
    assert reader.search(found, "none.so", PATTERN, "none.txt") == ()
    assert reader.search(found, "absent.so", PATTERN, "absent.txt") is None


def test_damaged_wheels_are_absent(index: Index, reader: WheelIndex) -> None:
    path = wheel(index.folder / "thing" / NAME, MEMBERS, zipfile.ZIP_STORED)
    index.page("thing", NAME)
    data = path.read_bytes()
    (found,) = reader.wheels("thing")
    path.write_bytes(data[:-30])
    with pytest.raises(AbsentError, match=f"^{NAME} cannot be read: "):
        reader.metadata(found)
    path.write_bytes(data.replace(b"torch==2.8.0", b"torch==6.6.6"))  # the checksum tells
    with pytest.raises(AbsentError, match="METADATA cannot be read: "):
        reader.metadata(found)


def test_a_wheel_without_metadata_or_with_too_much_of_it(
    index: Index, reader: WheelIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed(index, {"thing/x": "1", "a/b.dist-info/METADATA": METADATA})
    (found,) = reader.wheels("thing")
    with pytest.raises(AbsentError, match="has no METADATA"):
        reader.metadata(found)
    monkeypatch.setattr("envcheck.refresh.wheel_index.LARGEST_MEMBER", 0)
    with pytest.raises(AbsentError, match="thing/x is larger than 0 MiB"):
        reader.member(found, "thing/x")


def test_a_folder_that_cannot_be_written_to_keeps_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store = Store(tmp_path / "file" / "cache")
    store.write(b"x", "thing", "index.json")
    assert store.read("thing", "index.json") is None


@pytest.mark.parametrize("name", ["../x", "a/../../x", "/etc/passwd", "a\\b", "", "a b"])
def test_names_stay_below_the_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="not a name of a saved file"):
        Store(tmp_path).read(name)


def test_the_cache_is_where_the_user_has_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    url = "https://index.example/simple"
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    mine = default_cache(url)
    assert mine.parent == Path("/caches/envcheck")
    assert "example" not in str(mine)
    assert default_cache("https://other.example/simple") != mine
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert default_cache(url).parent == Path("~/.cache/envcheck").expanduser()


def test_wheels_are_compared_by_value() -> None:
    first, second = (
        Wheel(project="a", filename="b", version="1", python="py3", platform="any") for _ in "ab"
    )
    assert first == second
