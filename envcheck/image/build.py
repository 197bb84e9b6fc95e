"""Builds an image by an engine's command, which alone has BuildKit; the SDK has the old builder."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

from envcheck.image.command import CommandEngine, find_program
from envcheck.image.trouble import EngineError, kind_of
from envcheck.model.base import model

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from envcheck.image.engine import Image
    from envcheck.image.trouble import Kind

TAIL = 12
"""Lines of a failed step's output that are shown."""

_STEP = re.compile(r"^#(?P<number>\d+) (?P<time>\d+\.\d+ )?(?P<text>.*)$")
_DIGEST = re.compile(r"^#\d+ sha256:[0-9a-f]{64}$")
_FAILED = re.compile(
    r'process "(?P<new>.*)" did not complete|executor failed running \[(?P<old>.*)\]: exit code'
    r'|building at STEP "RUN (?P<podman>.*)": while running runtime'
)
_FROM = re.compile(r"load metadata for (\S+?):?$|FROM (\S+)", re.MULTILINE)
_WHERE = re.compile(r"^(Dockerfile|Containerfile|\S*[Dd]ockerfile\S*):(\d+)$", re.MULTILINE)
_ERROR = re.compile(
    r"^(?:ERROR: )?failed to solve(?:[\w .]*:)?\s*(.+)$"
    r"|^error(?: response from daemon)?:\s*(.+)$",
    re.MULTILINE | re.IGNORECASE,
)
_OLD_BUILDKIT = 23
"""Release of docker's command from which on BuildKit comes as a plugin."""


@model
class Failure:
    """Why a build failed.

    Attributes:
        kind: what it is about: `step` for a step of the Dockerfile, else as for engines.
        title: one line.
        words: the engine's own words, or the last lines of the step.
        code: exit status of the engine's command.
    """

    kind: Kind | str
    title: str
    words: tuple[str, ...]
    code: int


@model
class Built:
    """An image that was built."""

    image: Image
    seconds: float


def builder(name: str | None) -> CommandEngine:
    """The command of an engine that can build what emitters write.

    Raises:
        EngineError: there is none, or it lacks BuildKit, or the engine does not answer.
    """
    names = ("docker", "podman") if name is None else (name,)
    for each in names:
        program = find_program(each)
        if program is not None:
            engine = CommandEngine(each, program)
            engine.facts()
            return engine
    raise EngineError("missing", names[0], f"looked for {' and '.join(names)} on PATH: not found")


def build(
    engine: CommandEngine,
    folder: Path,
    tag: str,
    options: tuple[str, ...],
    log: Path,
    show: Callable[[str], None],
) -> Built | Failure:
    """Build a folder.

    Args:
        engine: of `builder`.
        folder: with a Dockerfile, and everything that it copies.
        tag: name of the image.
        options: more arguments of the engine's build command.
        log: file that gets everything that is printed.
        show: gets each line as it comes.

    Raises:
        EngineError: the engine cannot build.
    """
    import subprocess

    started = time.monotonic()
    argv, variables = _command(engine)
    command = [*argv, *options, "--tag", tag, str(folder)]
    lines: list[str] = []
    with log.open("w", encoding="utf-8", buffering=1) as file:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=variables,
        )
        try:
            if child.stdout is not None:
                for raw in child.stdout:
                    line = raw.decode("utf-8", "replace").rstrip("\r\n")
                    file.write(f"{line}\n")
                    lines.append(line)
                    if not _DIGEST.match(line):
                        show(line)
            code = child.wait()
        except BaseException:
            child.terminate()
            child.wait()
            raise
    if code:
        return failure(lines, code)
    image = engine.image(tag)
    if image is None:
        words = f"built, but there is no image {tag}"
        raise EngineError("refused", engine.name, words)
    return Built(image=image, seconds=time.monotonic() - started)


def _command(engine: CommandEngine) -> tuple[list[str], dict[str, str]]:
    """The build command with BuildKit, and the environment that it takes."""
    import os

    variables = dict(os.environ)
    if engine.name == "podman":
        # Without this format a HEALTHCHECK is left out.
        return [engine.program, "build", "--format", "docker"], variables
    if engine.ask("buildx", "version"):
        return [engine.program, "buildx", "build", "--load", "--progress", "plain"], variables
    version = engine.ask("version", "--format", "{{.Client.Version}}") or ""
    major = version.partition(".")[0]
    if not major.isdigit() or int(major) >= _OLD_BUILDKIT:
        raise EngineError("no-buildkit", engine.name, f"{engine.program} is release {version}")
    variables["DOCKER_BUILDKIT"] = "1"
    return [engine.program, "build", "--progress", "plain"], variables


def failure(lines: list[str], code: int) -> Failure:
    """Why a build failed, by what it printed."""
    text = "\n".join(lines)
    errors = [match.group(1) or match.group(2) for match in _ERROR.finditer(text)]
    last = errors[-1] if errors else next((e for e in reversed(lines) if e.strip()), "")
    where = _WHERE.search(text)
    place = f" ({where.group(1)}, line {where.group(2)})" if where else ""
    step = next(iter(_FAILED.finditer(text)), None)
    output = _step_output(lines)
    if kind_of("\n".join((*output, last))) == "disk-full":
        title = "the engine's disk is full"
        return Failure(kind="disk-full", title=title, words=(*output, last), code=code)
    if step is not None:
        command = _short(next(each for each in step.groups() if each is not None))
        title = f"a step failed{place}: {command}"
        return Failure(kind="step", title=title, words=(*output, last), code=code)
    kind = kind_of(last)
    if kind == "pull-refused":
        names = [match.group(1) or match.group(2) for match in _FROM.finditer(text)]
        title = f"{names[-1] if names else 'an image that it starts from'} could not be had{place}"
        return Failure(kind=kind, title=title, words=(last,), code=code)
    return Failure(kind=kind, title=f"the engine refused it{place}", words=(last,), code=code)


def _short(command: str) -> str:
    """A step's command in one line that a person can recognise."""
    text = re.sub(r"\s+", " ", command.removeprefix("/bin/sh -c ").replace("\\n", " ")).strip()
    return text if len(text) <= 160 else f"{text[:157]}..."


def _step_output(lines: list[str]) -> tuple[str, ...]:
    """The last lines that the failed step printed, else those of the last step."""
    steps = [match for line in lines if (match := _STEP.match(line))]
    if not steps:
        return tuple(line for line in lines if line.strip())[-TAIL:]
    failed = [each["number"] for each in steps if not each["time"] and each["text"][:6] == "ERROR:"]
    number = (failed or [steps[-1]["number"]])[-1]
    # What a step prints stands behind the time; without one it is BuildKit that talks.
    output = [each["text"] for each in steps if each["number"] == number and each["time"]]
    return tuple(output[-TAIL:])
