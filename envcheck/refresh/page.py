"""Pages of a package index: which wheels a project has, from JSON (PEP 691) or HTML (PEP 503)."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

from envcheck.model.base import model
from envcheck.refresh.client import UnreachableError

ACCEPT = (
    "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2,"
    " text/html;q=0.1"
)

# Build tags start with a digit; a local version has a plus sign.
_WHEEL = re.compile(
    r"(?P<project>[A-Za-z0-9_.]+)-(?P<version>[A-Za-z0-9_.!+]+)(?:-(?P<build>\d+)[^-/]*)?"
    r"-(?P<python>[a-z0-9_.]+)-(?P<abi>[a-z0-9_.]+)-(?P<platform>[A-Za-z0-9_.]+)\.whl\Z"
)
_GLIBC = re.compile(r"manylinux_(\d+)_(\d+)_")
_OLD_GLIBC = {"manylinux1": "2.5", "manylinux2010": "2.12", "manylinux2014": "2.17"}
"""C library that the platform tags of PEP 513, 571 and 599 stand for."""
_MACHINES = ("x86_64", "aarch64")


@model
class Wheel:
    """A wheel that an index lists.

    Attributes:
        project: normalised name.
        filename: as listed.
        version: as in the file name.
        python: interpreter tag with the `t` of free-threaded builds, `cp313t`.
        platform: `linux_x86_64`, `linux_aarch64`, `any`, or the tag itself for all else.
        glibc: lowest C library of a Linux wheel.
        url: where it is; empty for a page that was saved.
        metadata: digest of the separate metadata file as `sha256=...`, empty when the page gives
            none; absent when there is no such file.
        build: build number; of wheels alike otherwise, pip takes the one with the highest.
        yanked: whether it was withdrawn.
        size: bytes.
    """

    project: str
    filename: str
    version: str
    python: str
    platform: str
    glibc: str | None = None
    url: str = ""
    metadata: str | None = None
    build: int = 0
    yanked: bool = False
    size: int | None = None


def parse(project: str, data: bytes, kind: str, url: str) -> tuple[Wheel, ...]:
    """Wheels of a project's page, in its order.

    Args:
        project: normalised name.
        data: the page.
        kind: its content type; JSON is recognised by it, everything else is taken for HTML.
        url: where it came from, which links are relative to.

    Raises:
        UnreachableError: the page is damaged.
    """
    text = data.decode("utf-8", "replace")
    files = _from_json(project, text) if kind.endswith("json") else _from_html(text)
    found = []
    for file in files:
        wheel = _wheel(project, file, url)
        if wheel is not None:
            found.append(wheel)
    return tuple(found)


def saved(wheels: tuple[Wheel, ...]) -> str:
    """A page in JSON that lists wheels without saying where they are."""
    files = []
    for wheel in wheels:
        entry: dict[str, Any] = {"filename": wheel.filename, "url": wheel.filename}
        if wheel.size is not None:
            entry["size"] = wheel.size
        if wheel.yanked:
            entry["yanked"] = True
        files.append(entry)
    page = {"meta": {"api-version": "1.0"}, "files": files}
    return json.dumps(page, indent=1) + "\n"


def normalised(project: str) -> str:
    """A project's name as indexes spell it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", project).lower()


def _from_json(project: str, text: str) -> list[dict[str, Any]]:
    try:
        files = json.loads(text)["files"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        msg = f"the page of {project} is damaged"
        raise UnreachableError(msg) from error
    if not isinstance(files, list):
        msg = f"the page of {project} is damaged"
        raise UnreachableError(msg)
    return [file for file in files if isinstance(file, dict)]


def _from_html(text: str) -> list[dict[str, Any]]:
    parser = _Links()
    parser.feed(text)
    parser.close()
    return parser.files


class _Links(HTMLParser):
    """Collects the links of a page in the shape of the JSON page's files."""

    def __init__(self) -> None:
        super().__init__()
        self.files: list[dict[str, Any]] = []
        self._base = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        href = values.get("href")
        if tag == "base" and href and not self._base:
            self._base = href
        if tag != "a" or not href:
            return
        address = urljoin(self._base, href)
        metadata = values.get("data-core-metadata", values.get("data-dist-info-metadata"))
        self.files.append(
            {
                "filename": unquote(urlsplit(address).path.rpartition("/")[2]),
                "url": address,
                "yanked": "data-yanked" in values,
                "core-metadata": metadata if metadata != "false" else None,
            }
        )


def _wheel(project: str, file: dict[str, Any], page: str) -> Wheel | None:
    name, url = file.get("filename"), file.get("url")
    match = _WHEEL.match(name) if isinstance(name, str) else None
    # A local version is a build of somebody's own, not what the release's files are.
    if match is None or not isinstance(url, str) or "+" in match["version"]:
        return None
    if normalised(match["project"]) != project:
        return None
    size = file.get("size")
    platform, glibc = _platform(match["platform"])
    return Wheel(
        project=project,
        filename=match.group(),
        version=match["version"],
        python=match["python"] + ("t" if match["abi"].endswith("t") else ""),
        platform=platform,
        glibc=glibc,
        url=urljoin(page, url).partition("#")[0],
        metadata=_digest(file),
        build=int(match["build"] or 0),
        yanked=bool(file.get("yanked")),
        size=size if isinstance(size, int) else None,
    )


def _digest(file: dict[str, Any]) -> str | None:
    value = file.get("core-metadata", file.get("dist-info-metadata"))
    if isinstance(value, dict):
        digest = value.get("sha256")
        return f"sha256={digest}" if isinstance(digest, str) else ""
    if isinstance(value, str):
        return value if value.startswith("sha256=") else ""
    return "" if value is True else None


def _platform(tag: str) -> tuple[str, str | None]:
    machine = next((each for each in _MACHINES if tag.endswith(each)), None)
    if machine is None or "linux" not in tag or "musllinux" in tag:
        return tag, None
    known = [(int(major), int(minor)) for major, minor in _GLIBC.findall(tag)]
    for name, version in _OLD_GLIBC.items():
        if name in tag:
            major, _, minor = version.partition(".")
            known.append((int(major), int(minor)))
    lowest = min(known, default=None)
    return f"linux_{machine}", f"{lowest[0]}.{lowest[1]}" if lowest else None
