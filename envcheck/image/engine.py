"""What envcheck asks of a container engine, whichever it is and however it is reached."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal, Protocol

from envcheck.image.trouble import EngineError
from envcheck.model.base import model

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from typing import IO

ENGINES = ("docker", "podman")
"""Engines that can be used, in the order in which they are tried."""

LABEL = "io.envcheck.check"
"""Label of the containers that envcheck makes, and removes again."""

SHM_SIZE = "8g"
"""Shared memory of those containers, as much as emitted images ask for: engines give 64 MB, which
would be a finding about this command and not about the image."""

GpuRequest = Literal["none", "cdi", "runtime", "gpus"]
"""How GPUs are asked for: not, as a CDI device, by NVIDIA's runtime, or by `--gpus`."""

CDI_DEVICE = "nvidia.com/gpu=all"


@model
class EngineFacts:
    """What an engine says of itself; None is not known."""

    name: str
    version: str | None = None
    runtimes: tuple[str, ...] | None = None
    default_runtime: str | None = None
    cdi_folders: tuple[str, ...] = ()
    """Folders in which it looks for CDI specifications; none when it does not."""
    cdi_devices: tuple[str, ...] | None = None
    """Devices of CDI that it found itself; None where it does not say."""
    desktop: bool | None = None
    rootless: bool | None = None
    cgroup_driver: str | None = None


@model
class Image:
    """An image as its engine describes it."""

    reference: str
    id: str
    variables: tuple[tuple[str, str], ...] = ()
    labels: tuple[tuple[str, str], ...] = ()
    architecture: str | None = None
    """As images have it: `amd64`, `arm64`."""
    user: str = ""
    size_bytes: int | None = None


@model
class Ran:
    """How a container ended.

    Attributes:
        started: whether it ran at all; the engine's refusal is in `stderr` when not.
        code: exit status of its program, None when it did not end in its time.
    """

    started: bool
    code: int | None = None
    stdout: str = ""
    stderr: str = ""
    seconds: float = 0.0


class Engine(Protocol):
    """A container engine that can be used. Every method may raise `EngineError`."""

    @property
    def name(self) -> str:
        """`docker` or `podman`."""

    def facts(self) -> EngineFacts:
        """What it says of itself."""

    def image(self, reference: str) -> Image | None:
        """An image that is there; None when it is not."""

    def pull(self, reference: str) -> None:
        """Fetch an image."""

    def exported(self, image: Image) -> AbstractContextManager[IO[bytes]]:
        """The files of an image as a tar stream, from a container that is never started."""

    def run(
        self,
        image: Image,
        argv: tuple[str, ...],
        *,
        request: GpuRequest,
        files: bytes | None,
        timeout: float,
    ) -> Ran:
        """Run a program in a new container and remove that again.

        Args:
            image: what to run.
            argv: program and arguments; the image's own entry point is left out.
            request: how GPUs are asked for.
            files: a tar that is unpacked at `/` before it starts.
            timeout: seconds after which the container is removed.
        """


def open_engine(name: str | None = None, reference: str | None = None) -> Engine:
    """The engine to use: the named one, else the first that answers.

    Args:
        name: `docker` or `podman`; None to choose.
        reference: an image; of several engines one that has it is preferred.

    Raises:
        EngineError: there is none that can be used.
    """
    usable: list[Engine] = []
    troubles: list[EngineError] = []
    for each in ENGINES if name is None else (name,):
        try:
            engine = _open(each)
        except EngineError as error:
            troubles.append(error)
            continue
        if reference is None or name is not None or engine.image(reference) is not None:
            return engine
        usable.append(engine)
    # An engine that is there and does not work says more than one that is not there; it may be the
    # one that has the image.
    told = next((each for each in troubles if each.kind != "missing"), None)
    if told is None and usable:
        return usable[0]
    raise told or troubles[0]


def _open(name: str) -> Engine:
    from envcheck.image.command import CommandEngine, find_program

    program = find_program(name)
    if name == "docker" and not _other_context():
        try:
            sdk = _sdk()
        except EngineError:
            # Without docker's command there need not be a docker that could run.
            if program is not None or os.environ.get("DOCKER_HOST"):
                raise
            sdk = None
        if sdk is not None:
            return sdk
    if program is None:
        words = f"looked for {name} on PATH" if name != "docker" else "looked for docker, podman"
        raise EngineError("missing", name, f"{words}: not found")
    engine = CommandEngine(name, program)
    engine.facts()
    return engine


def _sdk() -> Engine | None:
    """Docker by its SDK; None where that is not installed."""
    import importlib.util

    try:
        if importlib.util.find_spec("docker.client") is None:
            return None
    except (ImportError, ValueError):
        return None
    from envcheck.image.sdk import SdkEngine

    return SdkEngine()


def _other_context() -> bool:
    """Whether docker's command talks to another daemon than the SDK, which knows no contexts."""
    import json
    from pathlib import Path

    if os.environ.get("DOCKER_HOST"):
        return False
    context = os.environ.get("DOCKER_CONTEXT")
    if not context:
        folder = os.environ.get("DOCKER_CONFIG") or str(Path.home() / ".docker")
        try:
            data = json.loads((Path(folder) / "config.json").read_text(encoding="utf-8"))
            context = data.get("currentContext")
        except (OSError, ValueError, AttributeError):
            context = None
    return context not in (None, "", "default")


def pieces(stream: Iterator[bytes]) -> IO[bytes]:
    """A stream of byte strings as a file that can be read."""
    import io

    class Pieces(io.RawIOBase):
        def __init__(self) -> None:
            self._left = b""

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: object) -> int:
            view = memoryview(buffer)  # type: ignore[arg-type]
            while not self._left:
                piece = next(stream, None)
                if piece is None:
                    return 0
                self._left = piece
            size = min(len(view), len(self._left))
            view[:size] = self._left[:size]
            self._left = self._left[size:]
            return size

    return io.BufferedReader(Pieces(), 1 << 20)
