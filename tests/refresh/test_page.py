"""What an index lists, in JSON and in HTML."""

from __future__ import annotations

import json

import pytest

from envcheck.refresh.client import UnreachableError
from envcheck.refresh.page import Wheel, normalised, parse, saved

PAGE = "https://index.example/simple/torch/"
NAME = "torch-2.8.0-cp313-cp313t-manylinux_2_28_x86_64.whl"


def page(*files: object) -> bytes:
    return json.dumps({"meta": {"api-version": "1.1"}, "files": files}).encode()


def test_a_wheel_in_json() -> None:
    file = {
        "filename": NAME,
        "url": "../../files/ab/" + NAME + "#sha256=00",
        "size": 888,
        "yanked": "broken",
        "core-metadata": {"sha256": "cd"},
    }
    assert parse("torch", page(file), "application/vnd.pypi.simple.v1+json", PAGE) == (
        Wheel(
            project="torch",
            filename=NAME,
            version="2.8.0",
            python="cp313t",
            platform="linux_x86_64",
            glibc="2.28",
            url="https://index.example/files/ab/" + NAME,
            metadata="sha256=cd",
            yanked=True,
            size=888,
        ),
    )


def test_the_same_in_html() -> None:
    html = f"""<!DOCTYPE html><html><head><base href="/files/"></head><body>
    <a href="ab/{NAME}#sha256=00" data-requires-python="&gt;=3.9" data-yanked=""
       data-dist-info-metadata="sha256=cd">{NAME}</a>
    <a href="ab/torch-2.8.0.tar.gz">torch-2.8.0.tar.gz</a> <a name="nowhere">x</a>
    <a href="ab/torch-2.8.0%2Bcpu-cp313-cp313-manylinux_2_28_x86_64.whl" data-yanked>x</a>
    </body></html>"""
    found = parse("torch", html.encode(), "text/html", PAGE)
    assert [(each.filename, each.url, each.metadata, each.yanked) for each in found] == [
        (NAME, "https://index.example/files/ab/" + NAME, "sha256=cd", True)
    ]


@pytest.mark.parametrize(
    ("filename", "platform", "glibc"),
    [
        ("torch-1.13.1-cp37-cp37m-manylinux1_x86_64.whl", "linux_x86_64", "2.5"),
        ("torch-2.0.0-1-cp310-cp310-manylinux2014_aarch64.whl", "linux_aarch64", "2.17"),
        (
            "torch-2.1.0-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
            "linux_x86_64",
            "2.17",
        ),
        ("torch-2.1.0-cp311-cp311-linux_x86_64.whl", "linux_x86_64", None),
        ("torch-2.1.0-cp311-cp311-musllinux_1_2_x86_64.whl", "musllinux_1_2_x86_64", None),
        ("torch-2.1.0-cp311-none-macosx_11_0_arm64.whl", "macosx_11_0_arm64", None),
        ("torch-2.1.0-py3-none-any.whl", "any", None),
    ],
)
def test_platforms(filename: str, platform: str, glibc: str | None) -> None:
    (found,) = parse("torch", page({"filename": filename, "url": filename}), "json", PAGE)
    assert (found.platform, found.glibc) == (platform, glibc)
    assert found.build == (1 if "-1-cp" in filename else 0)


@pytest.mark.parametrize(
    "file",
    [
        {"filename": "torch-2.8.0.tar.gz", "url": "x"},
        {"filename": "torch-2.8.0+cu128-cp313-cp313-linux_x86_64.whl", "url": "x"},
        {"filename": "other-2.8.0-py3-none-any.whl", "url": "x"},
        {"filename": "../torch-2.8.0-py3-none-any.whl", "url": "x"},
        {"filename": "torch-2.8.0-py3-none-any.whl"},
        {"filename": 5, "url": "x"},
        "torch",
    ],
)
def test_what_is_no_wheel_of_the_release_is_left_out(file: object) -> None:
    assert parse("torch", page(file), "json", PAGE) == ()


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"core-metadata": True}, ""),
        ({"dist-info-metadata": {"sha256": "ab"}}, "sha256=ab"),
        ({"core-metadata": {"md5": "ab"}}, ""),
        ({"core-metadata": False}, None),
        ({}, None),
    ],
)
def test_whether_metadata_stands_apart(entry: dict[str, object], expected: str | None) -> None:
    (found,) = parse("torch", page({"filename": NAME, "url": NAME, **entry}), "json", PAGE)
    assert found.metadata == expected


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"files": 5}', b"[" * 100_000])
def test_a_damaged_page(data: bytes) -> None:
    with pytest.raises(UnreachableError, match="^the page of torch is damaged$"):
        parse("torch", data, "application/json", PAGE)


def test_a_page_that_is_kept_says_nothing_of_where_it_came_from() -> None:
    file = {"filename": NAME, "url": "/files/" + NAME, "size": 888, "yanked": True}
    (found,) = parse("torch", page(file), "json", PAGE)
    text = saved((found,))
    assert "index.example" not in text
    assert parse("torch", text.encode(), "json", "") == (Wheel(**{**_values(found), "url": NAME}),)  # type: ignore[arg-type]


def _values(wheel: Wheel) -> dict[str, object]:
    import dataclasses

    return {each.name: getattr(wheel, each.name) for each in dataclasses.fields(wheel)}


def test_names_as_indexes_spell_them() -> None:
    assert normalised("Jax_CUDA12..plugin") == "jax-cuda12-plugin"
