"""`envcheck doctor --report`: judge what people pasted, one text or many."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from envcheck.errors import EnvcheckError, UndeterminedError, UsageError

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator

    from envcheck.commands.doctor import Judgement
    from envcheck.model.snapshot import Snapshot

STREAMED = ("text", "markdown", "jsonl")
"""Formats in which several reports can stand one after the other."""
LARGEST = 256 << 20
"""Bytes of the largest text that is read."""


def run(args: Namespace, form: str, judgement: Judgement) -> int:
    """Read and judge each text.

    Returns:
        Of one text its exit status; of several 1 when any has a finding that fails, else 3 when any
        could not be judged, else 0.

    Raises:
        UsageError: a path is not there, or holds no text.
    """
    for flag, given in (("--machine", args.machine), ("--smoke", args.smoke)):
        if given:
            msg = f"--report reads texts: give it without {flag}"
            raise UsageError(msg)
    paths = [each for path in args.report for each in _texts(path)]
    if len(paths) == 1:
        return judgement.report(_snapshot(paths[0], judgement), form)
    if form not in STREAMED:
        msg = f"several reports fit into {', '.join(STREAMED)}, not {form}: give --format jsonl"
        raise UsageError(msg)
    return _many(paths, form, judgement, args.output)


def _texts(path: str) -> list[str]:
    """The texts that a path names: itself, or what a folder holds."""
    if path == "-":
        return [path]
    place = Path(path)
    if place.is_dir():
        found = sorted(
            str(each)
            for each in place.iterdir()
            if each.is_file() and not each.name.startswith(".")
        )
        if not found:
            msg = f"no reports in {path}"
            raise UsageError(msg)
        return found
    if not place.exists():
        msg = f"no such file or folder: {path}"
        raise UsageError(msg)
    if not place.is_file():
        msg = f"{path} is neither a file nor a folder"
        raise UsageError(msg)
    return [path]


def _snapshot(path: str, judgement: Judgement) -> Snapshot:
    from envcheck import intake
    from envcheck.errors import NoTextError

    try:
        return intake.read(contents(path), judgement.matrix, judgement.redact)
    except NoTextError as error:
        name = "standard input" if path == "-" else path
        msg = f"{name}: nothing to judge: {error}"
        raise NoTextError(msg) from error


def contents(path: str) -> bytes:
    """What stands in a file, or on standard input for `-`.

    Raises:
        UsageError: it cannot be read, or is too large.
    """
    try:
        if path == "-":
            data = b"" if sys.stdin is None else sys.stdin.buffer.read(LARGEST + 1)
        else:
            with Path(path).open("rb") as file:
                data = file.read(LARGEST + 1)
    except OSError as error:
        msg = f"cannot read {path}: {error.strerror or error}"
        raise UsageError(msg) from error
    if len(data) > LARGEST:
        msg = f"{path} is larger than {LARGEST >> 20} MiB: cut it down to the run in question"
        raise UsageError(msg)
    return data


def _many(paths: list[str], form: str, judgement: Judgement, output: str | None) -> int:
    from envcheck.commands.output import emit

    codes: set[int] = set()
    if output in (None, "-"):
        # As they come: a thousand reports need not be held, and a reader sees the first at once.
        for text in _rendered(paths, form, judgement, codes):
            emit(text, None)
    else:
        emit("".join(_rendered(paths, form, judgement, codes)), output)
    return next((code for code in (1, UndeterminedError.exit_code) if code in codes), 0)


def _rendered(paths: list[str], form: str, judgement: Judgement, codes: set[int]) -> Iterator[str]:
    from envcheck.commands.output import say

    for path in paths:
        name = "standard input" if path == "-" else Path(path).name
        try:
            report, code = judgement.judged(_snapshot(path, judgement))
        except EnvcheckError as error:
            say(f"envcheck: {error}")
            codes.add(UndeterminedError.exit_code)
            if form == "jsonl":
                yield _failure(name, str(error))
            continue
        codes.add(code)
        head = {"text": f"== {name}\n", "markdown": f"## {name}\n\n"}.get(form, "")
        tail = "" if form == "jsonl" else "\n"
        yield f"{head}{judgement.rendered(report, code, form, name)}{tail}"


def _failure(name: str, message: str) -> str:
    import json

    from envcheck.model.finding import SCHEMA_VERSION

    code = UndeterminedError.exit_code
    error = {"message": message, "exit_code": code}
    return json.dumps({"name": name, "schema_version": SCHEMA_VERSION, "error": error}) + "\n"
