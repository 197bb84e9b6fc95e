"""The client is polite, patient within bounds, and gives no password away."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from envcheck.errors import UndeterminedError, UsageError
from envcheck.refresh.client import AbsentError, Client, UnreachableError, without_login
from tests.refresh.serving import Index, served


def test_a_whole_file(index: Index, client: Client) -> None:
    index.write("file", b"content")
    answer = client.get(f"{index.origin}/file")
    assert (answer.data, answer.kind, answer.total) == (
        b"content",
        "application/octet-stream",
        None,
    )
    assert client.requests == len(index.asked) == 1


def test_parts_of_a_file(index: Index, client: Client, waits: list[float]) -> None:
    index.write("file", b"0123456789")
    url = f"{index.origin}/file"
    middle, end = client.part(url, 2, 4), client.part(url, -3, 0)
    assert (middle.data, middle.total) == (b"234", 10)
    assert (end.data, end.total) == (b"789", 10)
    assert [each.part for each in index.asked] == ["bytes=2-4", "bytes=-3"]
    assert waits == [0.25, 0.25]  # a pause before each request


def test_a_server_that_gives_whole_files_only(index: Index, client: Client) -> None:
    index.write("file", b"0123456789")
    index.whole_only = True
    with pytest.raises(UnreachableError, match="does not give parts of files"):
        client.part(f"{index.origin}/file", 2, 4)


def test_what_is_absent_is_asked_for_once(index: Index, client: Client) -> None:
    with pytest.raises(AbsentError, match="^the package index does not have nothing$"):
        client.get(f"{index.url}/nothing/")
    assert client.requests == 1


def test_a_busy_server_is_waited_for(index: Index, client: Client, waits: list[float]) -> None:
    index.write("file", b"content")
    index.failures, index.headers = [503, 429], {"Retry-After": "7"}
    assert client.get(f"{index.origin}/file").data == b"content"
    assert (client.requests, waits) == (3, [0.25, 7.0, 0.0, 7.0, 0.0])


def test_without_a_hint_waits_grow(index: Index, client: Client, waits: list[float]) -> None:
    index.failures = [500, 502, 503]
    with pytest.raises(UnreachableError, match="^the package index answers 503 for file$"):
        client.get(f"{index.origin}/file")
    assert (client.requests, waits) == (3, [0.25, 1.0, 0.0, 2.0, 0.0])


def test_a_server_that_asks_for_an_hour_is_left_alone(index: Index, client: Client) -> None:
    index.failures, index.headers = [429], {"Retry-After": "3600"}
    with pytest.raises(UnreachableError, match="asks to come back in 3600 seconds"):
        client.get(f"{index.origin}/file")
    assert client.requests == 1


def test_a_refusal_is_not_repeated(index: Index, client: Client) -> None:
    index.failures = [403]
    with pytest.raises(UnreachableError, match="answers 403 for file"):
        client.get(f"{index.origin}/file")
    assert client.requests == 1


def test_an_answer_that_breaks_off_is_asked_for_again(index: Index, client: Client) -> None:
    index.write("file", b"content")
    index.cut = 2
    with pytest.raises(UnreachableError, match="cannot be reached"):
        client.get(f"{index.origin}/file")
    assert client.requests == 3


def test_nobody_listens(waits: list[float], tmp_path: Path) -> None:
    with served(tmp_path) as index:
        url = index.url
    client = Client(index=url, sleep=waits.append)
    with pytest.raises(UndeterminedError, match="^the package index cannot be reached: ") as error:
        client.get(f"{url}/torch/")
    assert error.value.exit_code == 3


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://a.example/x", "data:,x"])
def test_other_schemes_are_not_followed(client: Client, url: str) -> None:
    with pytest.raises(UnreachableError, match="neither http nor https"):
        client.get(url)
    assert client.requests == 0


def test_too_large_an_answer(index: Index, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("envcheck.refresh.client.LARGEST", 1 << 20)
    index.write("file", bytes((1 << 20) + 1))
    with pytest.raises(UnreachableError, match="more than 1 MiB"):
        client.get(f"{index.origin}/file")


def test_a_login_goes_to_its_own_host_only(index: Index, tmp_path: Path) -> None:
    index.write("file", b"content")
    address = index.url.replace("://", "://me:s%40crit@")
    client = Client(index=address, sleep=lambda _seconds: None)
    client.get(f"{address.removesuffix('/simple')}/file")
    expected = "Basic " + base64.b64encode(b"me:s@crit").decode()
    assert index.asked[-1].login == expected
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with served(elsewhere) as other:
        other.write("file", b"other")
        index.moved["/moved"] = f"{other.origin}/file"
        assert client.get(f"{index.origin}/moved").data == b"other"
        assert client.get(f"{other.origin}/file").data == b"other"
        assert [each.login for each in other.asked] == [None, None]
    assert index.asked[-1].login == expected


def test_a_login_from_netrc(index: Index, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    index.write("file", b"content")
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password word\n", encoding="utf-8")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    Client(index=index.url, sleep=lambda _seconds: None).get(f"{index.origin}/file")
    assert index.asked[0].login == "Basic " + base64.b64encode(b"me:word").decode()


def test_no_password_in_a_message(index: Index) -> None:
    address = index.url.replace("://", "://me:secret@")
    client = Client(index=address, sleep=lambda _seconds: None)
    with pytest.raises(AbsentError) as error:
        client.get(f"{address}/torch/")
    assert "secret" not in str(error.value)
    assert without_login("https://me:secret@a.example:8080/x?y#z") == "https://a.example:8080/x?y#z"


def test_certificates_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read certificates from .*none.pem"):
        Client(ca_file=str(tmp_path / "none.pem"))
