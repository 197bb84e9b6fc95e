"""A polite HTTP client: one request at a time, with pauses, few retries and bounded answers."""

from __future__ import annotations

import base64
import http.client
import os
import ssl
import time
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit, urlunsplit

from envcheck import __version__
from envcheck.errors import UndeterminedError, UsageError
from envcheck.model.base import model

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PAUSE = 0.1
"""Seconds between two requests."""
TIMEOUT = 60.0
TRIES = 3
LONGEST_WAIT = 60.0
"""Seconds that a server may ask us to wait before we give up instead."""
LARGEST = 64 << 20
"""Bytes of the largest answer that is read; the largest index page known has a tenth of it."""

_TEMPORARY = (429, 500, 502, 503, 504)
_ABSENT = (404, 410)


class UnreachableError(UndeterminedError):
    """The package index does not answer, or not in a way that can be used."""


class AbsentError(UnreachableError):
    """What was asked for is not there, or is of no use: other things may still be."""


@model
class Answer:
    """What a server sent.

    Attributes:
        data: the body.
        url: where it came from in the end, after redirections.
        kind: content type without parameters.
        total: size of the whole file, for an answer that holds a part of it.
    """

    data: bytes
    url: str
    kind: str = ""
    total: int | None = None


class Client:
    """Asks for pages and parts of files.

    Attributes:
        requests: how many were sent.
    """

    def __init__(
        self,
        *,
        index: str = "",
        ca_file: str | None = None,
        pause: float = PAUSE,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Prepare; nothing is sent yet.

        Args:
            index: address of the index, whose user and password are sent to its host only.
            ca_file: certificates to trust; the system's, or those of `SSL_CERT_FILE`, when absent.
            pause: seconds between two requests.
            sleep: waits.

        Raises:
            UsageError: the certificates cannot be read.
        """
        self.requests = 0
        self._pause = pause
        self._sleep = sleep
        self._host = urlsplit(index).netloc.rpartition("@")[2]
        self._login = _login(index)
        try:
            context = ssl.create_default_context(cafile=ca_file)
        except OSError as error:
            msg = f"cannot read certificates from {ca_file}: {error.strerror or error}"
            raise UsageError(msg) from error
        self._opener = urllib.request.build_opener(
            urllib.request.HTTPSHandler(context=context), _Redirects
        )

    def get(self, url: str, accept: str = "*/*") -> Answer:
        """A whole file.

        Raises:
            AbsentError: there is no such file.
            UnreachableError: it cannot be had.
        """
        return self._ask(url, {"Accept": accept}, whole=True)

    def part(self, url: str, first: int, last: int) -> Answer:
        """Bytes `first` to `last`, both included; a negative `first` counts from the end.

        Raises:
            AbsentError: there is no such file.
            UnreachableError: it cannot be had, or the server gives whole files only.
        """
        wanted = f"bytes={first}" if first < 0 else f"bytes={first}-{last}"
        return self._ask(url, {"Range": wanted}, whole=False)

    def _ask(self, url: str, headers: Mapping[str, str], *, whole: bool) -> Answer:
        clean = without_login(url)
        if urlsplit(clean).scheme not in ("http", "https"):
            msg = "the package index gives an address that is neither http nor https"
            raise UnreachableError(msg)
        sent = {
            "User-Agent": f"envcheck/{__version__}",
            "Accept-Encoding": "identity",
            **headers,
        }
        if self._login and urlsplit(clean).netloc == self._host:
            sent["Authorization"] = self._login
        for attempt in range(1, TRIES + 1):
            self._sleep(self._pause if attempt == 1 else 0.0)
            self.requests += 1
            try:
                request = urllib.request.Request(clean, headers=sent)  # noqa: S310 - checked above
                with self._opener.open(request, timeout=TIMEOUT) as response:
                    return _read(response, whole=whole)
            except urllib.error.HTTPError as error:
                error.close()
                if error.code not in _TEMPORARY or attempt == TRIES:
                    raise _refused(error, clean) from None
                self._sleep(_wait(error.headers.get("Retry-After"), attempt))
            except (OSError, http.client.HTTPException) as error:
                if attempt == TRIES or isinstance(_reason(error), ssl.SSLCertVerificationError):
                    msg = f"the package index cannot be reached: {_reason(error)}"
                    raise UnreachableError(msg) from error
                self._sleep(_wait(None, attempt))
        raise AssertionError  # the last attempt returned or raised


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirections, but shows a password to nobody but the host it is meant for."""

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        """The next request."""
        following = super().redirect_request(req, fp, code, msg, headers, newurl)
        if following is not None and urlsplit(newurl).netloc != urlsplit(req.full_url).netloc:
            following.remove_header("Authorization")
        return following


def without_login(url: str) -> str:
    """An address without user and password."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def _login(index: str) -> str | None:
    """The header for the index: from its address, else from the user's netrc file."""
    parts = urlsplit(index)
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    if not user and parts.hostname:
        user, password = _netrc(parts.hostname)
    if not user and not password:
        return None
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode("ascii")


def _netrc(host: str) -> tuple[str, str]:
    import netrc
    from pathlib import Path

    path = Path(os.environ.get("NETRC") or "~/.netrc").expanduser()
    try:
        found = netrc.netrc(str(path)).authenticators(host)
    except (OSError, netrc.NetrcParseError, UnicodeDecodeError):
        return "", ""
    return (found[0] or "", found[2] or "") if found else ("", "")


def _read(response: Any, *, whole: bool) -> Answer:
    kind = response.headers.get_content_type()
    total = None
    if not whole:
        # A server that cannot give a part would send all of it; nothing of that is read.
        stated = response.headers.get("Content-Range", "")
        size = stated.rpartition("/")[2]
        if response.status != 206 or not size.isdigit():
            msg = "the package index does not give parts of files (HTTP range requests)"
            raise UnreachableError(msg)
        total = int(size)
    data = response.read(LARGEST + 1)
    if len(data) > LARGEST:
        msg = f"the package index sent more than {LARGEST >> 20} MiB where less was expected"
        raise UnreachableError(msg)
    stated_length = response.headers.get("Content-Length", "")
    if stated_length.isdigit() and len(data) < int(stated_length):
        raise http.client.IncompleteRead(data)
    return Answer(data=data, url=response.url, kind=kind, total=total)


def _refused(error: urllib.error.HTTPError, url: str) -> UnreachableError:
    name = urlsplit(url).path.rstrip("/").rpartition("/")[2]
    if error.code in _ABSENT:
        return AbsentError(f"the package index does not have {name}")
    return UnreachableError(f"the package index answers {error.code} for {name}")


def _reason(error: BaseException) -> BaseException:
    reason = getattr(error, "reason", None)
    return reason if isinstance(reason, BaseException) else error


def _wait(asked: str | None, attempt: int) -> float:
    """Seconds to wait before the next attempt."""
    if asked is not None and asked.strip().isdigit():
        seconds = float(asked)
        if seconds > LONGEST_WAIT:
            msg = f"the package index asks to come back in {asked.strip()} seconds"
            raise UnreachableError(msg)
        return seconds
    return float(2 ** (attempt - 1))
