"""What an engine says when it cannot do what is asked, told apart by its words."""

from __future__ import annotations

import re
from typing import Literal

from envcheck.errors import UndeterminedError

Kind = Literal[
    "missing",
    "not-running",
    "no-permission",
    "no-buildkit",
    "no-image",
    "pull-refused",
    "disk-full",
    "refused",
]

SHOWN_LINES = 12
"""Lines of an engine's own words that a message keeps."""

_KINDS: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ("disk-full", re.compile(r"no space left on device|disk quota exceeded", re.I)),
    (
        "no-permission",
        re.compile(
            r"permission denied while trying to connect|Got permission denied"
            r"|dial unix [^\n]*permission denied|PermissionError\(13",
            re.I,
        ),
    ),
    (
        "not-running",
        re.compile(
            r"Cannot connect to the Docker daemon|Is the docker daemon running"
            r"|Cannot connect to Podman|unable to connect to Podman|error during connect"
            r"|Error while fetching server API version|dial unix [^\n]*(?:no such file|refused)",
            re.I,
        ),
    ),
    (
        "no-buildkit",
        re.compile(r"buildx component is missing or broken|requires BuildKit", re.I),
    ),
    (
        "pull-refused",
        re.compile(
            r"pull access denied|unauthorized|authentication required|denied: requested access"
            r"|toomanyrequests|manifest (?:for [^\n]* )?(?:not found|unknown)|no such host"
            r"|failed to resolve (?:source metadata|reference)|failed to do request"
            r"|error pinging (?:container|docker) registry|initializing source docker://"
            r"|no matching manifest|dial tcp [^\n]*(?:refused|timeout)|TLS handshake timeout|x509:"
            r"|(?<!/)\bnot found(?=\s*$)",
            re.I | re.M,
        ),
    ),
    ("no-image", re.compile(r"No such image|image not known|no such object", re.I)),
)

_DO: dict[Kind, str] = {
    "not-running": "start it: sudo systemctl start {engine}",
    "no-permission": "run it with sudo, or join its group: sudo usermod -aG docker $USER, then log"
    " in anew",
    "no-buildkit": "install the plugin docker-buildx (docker-buildx-plugin in Docker's own"
    " packages)",
    "disk-full": "see what can go: {engine} system df, then {engine} system prune",
}

_SAYS: dict[Kind, str] = {
    "missing": "no container engine is installed",
    "not-running": "{engine} is not running",
    "no-permission": "{engine} may not be used by this user",
    "no-buildkit": "this docker command has no BuildKit, which the Dockerfile needs",
    "no-image": "there is no such image here",
    "pull-refused": "an image could not be had",
    "disk-full": "the disk of {engine} is full",
    "refused": "{engine} refused",
}


class EngineError(UndeterminedError):
    """An engine cannot be used, or refused; the message has its own words and exit status.

    Attributes:
        kind: what it is about, by the engine's words.
        words: the engine's own words.
        code: exit status of the engine's command, None where none was run.
    """

    def __init__(self, kind: Kind, engine: str, words: str, code: int | None = None) -> None:
        """Put the message together; what is to be done is a line of its own."""
        self.kind = kind
        self.words = words.strip()
        self.code = code
        lines = [_SAYS[kind].format(engine=engine)]
        lines += _last_lines(self.words)
        if code is not None:
            lines.append(f"({engine} ended with exit status {code})")
        if kind in _DO:
            lines.append(_DO[kind].format(engine=engine))
        super().__init__("\n".join(lines))


def kind_of(words: str) -> Kind:
    """What an engine's words are about; `refused` when none of the known ones stands there."""
    return next((kind for kind, pattern in _KINDS if pattern.search(words)), "refused")


def trouble(engine: str, words: str, code: int | None = None) -> EngineError:
    """The error that an engine's words stand for."""
    return EngineError(kind_of(words), engine, words, code)


def _last_lines(words: str) -> list[str]:
    return [line.rstrip() for line in words.splitlines() if line.strip()][-SHOWN_LINES:]
