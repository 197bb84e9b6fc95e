"""A package index on the loopback interface: pages, parts of files, and misbehaviour on demand."""

from __future__ import annotations

import contextlib
import dataclasses
import http.server
import json
import re
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path


@dataclasses.dataclass
class Asked:
    """A request as it came in."""

    path: str
    part: str | None
    login: str | None


@dataclasses.dataclass
class Index:
    """The running index and what it was asked.

    Attributes:
        url: address of its list of projects.
        folder: what it serves; `/simple/NAME/` is `NAME/index.json` or `NAME/index.html`.
        asked: all requests, in order.
        failures: statuses that the next requests get instead of an answer.
        headers: sent with those.
        whole_only: whether requests for a part get the whole file.
        moved: path -> address that it redirects to.
        cut: bytes that are missing at the end of every body.
    """

    url: str
    folder: Path
    asked: list[Asked] = dataclasses.field(default_factory=list)
    failures: list[int] = dataclasses.field(default_factory=list)
    headers: dict[str, str] = dataclasses.field(default_factory=dict)
    whole_only: bool = False
    moved: dict[str, str] = dataclasses.field(default_factory=dict)
    cut: int = 0

    @property
    def origin(self) -> str:
        """Scheme, host and port."""
        return self.url.removesuffix("/simple")

    def page(self, project: str, *names: str, **more: object) -> None:
        """List files of a project as a JSON page."""
        files = [{"filename": name, "url": f"/{project}/{name}", **more} for name in names]
        self.write(f"{project}/index.json", json.dumps({"meta": {}, "files": files}).encode())

    def write(self, name: str, data: bytes) -> None:
        """Put a file into the folder."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


@contextlib.contextmanager
def served(folder: Path) -> Iterator[Index]:
    """Serve a folder until the end of the block."""
    index = Index(url="", folder=folder)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            part = self.headers.get("Range")
            index.asked.append(Asked(path, part, self.headers.get("Authorization")))
            if index.failures:
                self._send(index.failures.pop(0), b"", index.headers)
            elif path in index.moved:
                self._send(302, b"", {"Location": index.moved[path]})
            else:
                self._serve(path, part)

        def _serve(self, path: str, part: str | None) -> None:
            kinds = {
                "index.json": "application/vnd.pypi.simple.v1+json",
                "index.html": "text/html; charset=utf-8",
            }
            file, kind = index.folder / path.lstrip("/"), "application/octet-stream"
            if path.startswith("/simple/"):
                folder = index.folder / path.removeprefix("/simple/")
                file = next((folder / name for name in kinds if (folder / name).is_file()), folder)
                kind = kinds.get(file.name, kind)
            if not file.is_file():
                self._send(404, b"no such file", {})
                return
            data = file.read_bytes()
            match = re.fullmatch(r"bytes=(\d*)-(\d+)?", part or "")
            if match is None or index.whole_only:
                self._send(200, data, {"Content-Type": kind})
                return
            if match[1]:
                first, last = int(match[1]), min(int(match[2]), len(data) - 1)
            else:
                first, last = max(len(data) - int(match[2]), 0), len(data) - 1
            stated = f"bytes {first}-{last}/{len(data)}"
            self._send(206, data[first : last + 1], {"Content-Range": stated})

        def _send(self, status: int, data: bytes, headers: dict[str, str]) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            with contextlib.suppress(ConnectionError):
                self.wfile.write(data[: len(data) - index.cut] if index.cut else data)

        def log_message(self, *_args: object) -> None:
            """Say nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    index.url = f"http://127.0.0.1:{server.server_port}/simple"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield index
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def wheel(path: Path, members: dict[str, bytes | str], method: int = zipfile.ZIP_DEFLATED) -> Path:
    """Write a wheel."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path
