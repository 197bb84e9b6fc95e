"""Names of hosts survive being names of files."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envcheck.fleet.names import file_name, host_name


@pytest.mark.parametrize(
    ("host", "file"),
    [
        ("gpu1.example.org", "gpu1.example.org.json"),
        ("2001:db8::1", "2001:db8::1.json"),
        ("rack/3", "rack%2F3.json"),
        ("../../etc/passwd", "%2E.%2F..%2Fetc%2Fpasswd.json"),
        (".hidden", "%2Ehidden.json"),
        ("-o", "%2Do.json"),
        ("~root", "%7Eroot.json"),
        ("a%2Fb", "a%252Fb.json"),
        ("größe", "gr%C3%B6%C3%9Fe.json"),
    ],
)
def test_a_name_becomes_a_file(host: str, file: str) -> None:
    assert file_name(host) == file
    assert host_name(f"some/folder/{file}") == host


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60))
def test_any_name_comes_back(host: str) -> None:
    name = file_name(host)
    assert host_name(name) == host or len(name) > 200
    assert "/" not in name
    assert "\0" not in name
    assert not name.startswith((".", "-", "~"))


def test_long_names_stay_apart() -> None:
    names = {file_name("ü" * 300 + str(at)) for at in range(50)}
    assert len(names) == 50
    assert max(len(each) for each in names) <= 205
