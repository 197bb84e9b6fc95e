"""Which package index the user's pip is configured to use; envcheck itself knows none."""

from __future__ import annotations

import ast
import os
import re
import sys
from typing import TYPE_CHECKING

from envcheck.errors import UsageError
from envcheck.model.base import model

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Ask = Callable[[Sequence[str]], str | None]

_HINT = "give --index-url URL"
_SECTIONS = (":env:", "download", "install", "global")
"""Where pip looks, the strongest first."""
_DEFAULT = re.compile(r"--index-url\b.*?\(default\s+(\S+?)\)", re.DOTALL)
_TRUE = ("1", "true", "yes", "on")


@model
class IndexSettings:
    """How packages are to be reached.

    Attributes:
        url: the main index.
        extra: further indexes, for projects that the main one does not have.
        ca_file: certificates to trust instead of the system's.
    """

    url: str
    extra: tuple[str, ...] = ()
    ca_file: str | None = None


def configured(ask: Ask | None = None) -> IndexSettings:
    """Ask pip, in a child, for its configuration: variables, files and its built-in default.

    Args:
        ask: gives pip's output for pip's arguments, or None where there is no pip.

    Raises:
        UsageError: there is no pip to ask, or it is told to use no index.
    """
    ask = ask or _ask_pip
    listed = ask(["config", "list"])
    if listed is None:
        msg = f"there is no pip to ask for the package index: {_HINT}"
        raise UsageError(msg)
    options = parsed(listed)
    if options.get("no-index", "").lower() in _TRUE:
        msg = f"pip is configured to use no package index: {_HINT}"
        raise UsageError(msg)
    url = options.get("index-url")
    if url is None:
        match = _DEFAULT.search(ask(["download", "--help"]) or "")
        if match is None:
            msg = f"pip does not say which package index it uses: {_HINT}"
            raise UsageError(msg)
        url = match.group(1)
    return IndexSettings(
        url=url,
        extra=tuple(options.get("extra-index-url", "").split()),
        ca_file=options.get("cert"),
    )


def parsed(listed: str) -> dict[str, str]:
    """Options in the output of `pip config list`, the strongest section of each winning."""
    found: dict[str, dict[str, str]] = {}
    for line in listed.splitlines():
        name, equals, value = line.partition("=")
        section, dot, option = name.strip().rpartition(".")
        if not (equals and dot):
            continue
        try:
            text = ast.literal_eval(value.strip())
        except (ValueError, SyntaxError):
            continue
        found.setdefault(section, {})[option] = str(text)
    options: dict[str, str] = {}
    for section in reversed(_SECTIONS):
        options.update(found.get(section, {}))
    return options


def _ask_pip(args: Sequence[str]) -> str | None:
    """Output of this interpreter's pip, else of the one on PATH; None without either."""
    import shutil
    import subprocess

    commands = [[sys.executable, "-m", "pip"]]
    commands += [[path] for name in ("pip", "pip3") if (path := shutil.which(name))]
    # Wide, or the default would be broken over lines.
    surroundings = {**os.environ, "COLUMNS": "1000", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    for command in commands:
        try:
            done = subprocess.run(
                [*command, *args],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                env=surroundings,
                timeout=60,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            continue
        if done.returncode == 0:
            return done.stdout
    return None
