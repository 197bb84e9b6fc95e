"""Docker by its SDK."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from envcheck.image.command import docker_facts, has_run, image_of
from envcheck.image.engine import (
    CDI_DEVICE,
    LABEL,
    SHM_SIZE,
    EngineFacts,
    GpuRequest,
    Image,
    Ran,
    pieces,
)
from envcheck.image.trouble import EngineError, trouble

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO

ASK_SECONDS = 60
_EXPORT_PIECE = 4 << 20


class SdkEngine:
    """The daemon that DOCKER_HOST names, or the usual one."""

    name = "docker"

    def __init__(self) -> None:
        """Connect.

        Raises:
            EngineError: the daemon cannot be reached.
        """
        import docker

        with _told():
            self._client: Any = docker.from_env(timeout=ASK_SECONDS)
            self._client.ping()

    def facts(self) -> EngineFacts:
        """What the daemon says of itself."""
        with _told():
            return docker_facts(self._client.info())

    def image(self, reference: str) -> Image | None:
        """An image of the daemon."""
        from docker.errors import ImageNotFound, NullResource

        with _told():
            try:
                return image_of(reference, self._client.images.get(reference).attrs)
            except (ImageNotFound, NullResource):
                return None

    def pull(self, reference: str) -> None:
        """Fetch an image; without a tag the one that docker's command takes."""
        with _told():
            self._client.images.pull(reference)

    @contextlib.contextmanager
    def exported(self, image: Image) -> Iterator[IO[bytes]]:
        """Create a container, and export it."""
        with _told(), self._created(image, ("true",), "none") as container:
            yield pieces(iter(container.export(chunk_size=_EXPORT_PIECE)))

    def run(
        self,
        image: Image,
        argv: tuple[str, ...],
        *,
        request: GpuRequest,
        files: bytes | None,
        timeout: float,
    ) -> Ran:
        """Create, fill, start, wait, remove; see `Engine.run`."""
        import time

        from docker.errors import APIError
        from requests.exceptions import ConnectionError as LostError
        from requests.exceptions import ReadTimeout

        with _told(), contextlib.ExitStack() as stack:
            try:
                container = stack.enter_context(self._created(image, argv, request))
                if files is not None:
                    container.put_archive("/", files)
                started = time.monotonic()
                container.start()
            except APIError as error:
                if trouble(self.name, _words(error)).kind != "refused":
                    raise
                return Ran(started=False, code=_status(error), stderr=_words(error))
            code: int | None = None
            try:
                code = int(container.wait(timeout=timeout)["StatusCode"])
            except (ReadTimeout, LostError):
                container.kill()
            stdout, stderr = (
                container.logs(stdout=out, stderr=not out).decode("utf-8", "replace")
                for out in (True, False)
            )
            container.reload()
            return Ran(
                started=has_run(container.attrs["State"]),
                code=code,
                stdout=stdout,
                stderr=stderr,
                seconds=time.monotonic() - started,
            )

    @contextlib.contextmanager
    def _created(self, image: Image, argv: tuple[str, ...], request: GpuRequest) -> Iterator[Any]:
        from docker.errors import APIError
        from docker.types import LogConfig

        program, *arguments = argv
        container = self._client.containers.create(
            image.id,
            arguments,
            entrypoint=[program],
            labels={LABEL: "1"},
            shm_size=SHM_SIZE,
            # The daemon's own choice may be one that gives no logs back.
            log_config=LogConfig(type=LogConfig.types.JSON),
            **_gpu_settings(request),
        )
        try:
            yield container
        finally:
            with contextlib.suppress(APIError):
                container.remove(force=True)


def _gpu_settings(request: GpuRequest) -> dict[str, Any]:
    from docker.types import DeviceRequest

    if request == "cdi":
        return {"device_requests": [DeviceRequest(driver="cdi", device_ids=[CDI_DEVICE])]}
    if request == "runtime":
        return {"runtime": "nvidia", "environment": {"NVIDIA_VISIBLE_DEVICES": "all"}}
    if request == "gpus":
        return {"device_requests": [DeviceRequest(count=-1, capabilities=[["gpu"]])]}
    return {}


@contextlib.contextmanager
def _told() -> Iterator[None]:
    """Turn what the SDK raises into an error that has the engine's words."""
    from docker.errors import APIError, DockerException
    from requests.exceptions import RequestException

    try:
        yield
    except APIError as error:
        raise trouble("docker", _words(error)) from error
    except (DockerException, RequestException) as error:
        words = str(error)
        kind = trouble("docker", words).kind
        if kind == "refused":
            # The daemon answers refusals by itself: this came before it could.
            raise EngineError("not-running", "docker", words) from error
        raise trouble("docker", words) from error


def _words(error: Any) -> str:
    return str(error.explanation or error)


def _status(error: Any) -> int | None:
    return error.response.status_code if error.response is not None else None
