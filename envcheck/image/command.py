"""An engine by its command: podman, and docker where the SDK is not installed."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from typing import TYPE_CHECKING, Any

from envcheck.image.engine import CDI_DEVICE, LABEL, SHM_SIZE, EngineFacts, GpuRequest, Image, Ran
from envcheck.image.trouble import EngineError, trouble

if TYPE_CHECKING:
    from collections.abc import Iterator
    from subprocess import CompletedProcess
    from typing import IO

ASK_SECONDS = 30.0
"""Seconds for a question that a working engine answers at once."""

_GPU_FLAGS: dict[str, tuple[str, ...]] = {
    "none": (),
    "cdi": ("--device", CDI_DEVICE),
    "runtime": ("--runtime", "nvidia", "--env", "NVIDIA_VISIBLE_DEVICES=all"),
    "gpus": ("--gpus", "all"),
}


def find_program(name: str) -> str | None:
    """Path of an engine's command on PATH; what lies in the working directory is never taken."""
    folders = [f for f in os.environ.get("PATH", "").split(os.pathsep) if f.startswith("/")]
    return shutil.which(name, path=os.pathsep.join(folders)) if folders else None


class CommandEngine:
    """An engine that is asked by its command."""

    def __init__(self, name: str, program: str) -> None:
        """Take the engine's name and the path of its command."""
        self.name = name
        self.program = program

    def facts(self) -> EngineFacts:
        """What `info` says."""
        data = self._json("info", "--format", "{{json .}}")
        return podman_facts(data) if self.name == "podman" else docker_facts(data)

    def image(self, reference: str) -> Image | None:
        """What `image inspect` says."""
        done = self._run("image", "inspect", "--", reference)
        if done.returncode:
            error = self._trouble(done)
            if error.kind in {"no-image", "refused"}:
                return None
            raise error
        return image_of(reference, _parsed(self.name, done.stdout)[0])

    def pull(self, reference: str) -> None:
        """Fetch an image; what the engine prints meanwhile goes to standard error."""
        import subprocess

        done = subprocess.run(
            [self.program, "pull", "--", reference],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            check=False,
        )
        if done.returncode:
            raise trouble(self.name, _text(done.stderr), done.returncode)

    @contextlib.contextmanager
    def exported(self, image: Image) -> Iterator[IO[bytes]]:
        """Create a container, and export it."""
        import subprocess
        import tempfile

        with self._created(image, ("true",), "none") as container, tempfile.TemporaryFile() as said:
            child = subprocess.Popen(
                [self.program, "export", container],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=said,
            )
            try:
                if child.stdout is not None:
                    yield child.stdout
            finally:
                if child.stdout is not None:
                    child.stdout.close()
                child.terminate()
                child.wait()
            if child.returncode > 0:
                said.seek(0)
                raise trouble(self.name, _text(said.read()), child.returncode)

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
        import subprocess
        import time

        try:
            with self._created(image, argv, request) as container:
                if files is not None:
                    self._fill(container, files)
                started = time.monotonic()
                try:
                    done = subprocess.run(
                        [self.program, "start", "--attach", container],
                        stdin=subprocess.DEVNULL,
                        capture_output=True,
                        timeout=timeout,
                        check=False,
                    )
                except subprocess.TimeoutExpired as error:
                    return Ran(
                        started=True,
                        stdout=_text(error.stdout),
                        stderr=_text(error.stderr),
                        seconds=timeout,
                    )
                return Ran(
                    started=self._has_run(container),
                    code=done.returncode,
                    stdout=_text(done.stdout),
                    stderr=_text(done.stderr),
                    seconds=time.monotonic() - started,
                )
        except EngineError as error:
            if error.kind != "refused":
                raise
            # Some requests are refused before there is a container.
            return Ran(started=False, code=error.code, stderr=error.words)

    @contextlib.contextmanager
    def _created(self, image: Image, argv: tuple[str, ...], request: GpuRequest) -> Iterator[str]:
        program, *arguments = argv
        done = self._run(
            "create",
            "--label",
            f"{LABEL}=1",
            "--shm-size",
            SHM_SIZE,
            "--entrypoint",
            program,
            *_GPU_FLAGS[request],
            image.id,
            *arguments,
        )
        if done.returncode:
            raise self._trouble(done)
        container = done.stdout.strip().splitlines()[-1]
        try:
            yield container
        finally:
            self._run("rm", "--force", container)

    def _fill(self, container: str, files: bytes) -> None:
        done = self._run("cp", "-", f"{container}:/", stdin=files)
        if done.returncode:
            raise self._trouble(done)

    def _has_run(self, container: str) -> bool:
        done = self._run("inspect", "--type", "container", container)
        if done.returncode:
            raise self._trouble(done)
        return has_run(_parsed(self.name, done.stdout)[0].get("State") or {})

    def ask(self, *args: str) -> str | None:
        """What a command prints; None when it fails."""
        done = self._run(*args)
        return done.stdout.strip() or None if done.returncode == 0 else None

    def _json(self, *args: str) -> Any:
        done = self._run(*args)
        data = _parsed(self.name, done.stdout) if done.returncode == 0 else None
        # Without a daemon docker's command answers with what it knows itself, and status 0.
        errors = (data or {}).get("ServerErrors") or ()
        if errors:
            raise trouble(self.name, "\n".join(errors), done.returncode or None)
        if data is None:
            raise self._trouble(done)
        return data

    def _run(self, *args: str, stdin: bytes | None = None) -> CompletedProcess[str]:
        import subprocess

        try:
            done = subprocess.run(
                [self.program, *args],
                input=stdin if stdin is not None else b"",
                capture_output=True,
                timeout=ASK_SECONDS if stdin is None else 10 * ASK_SECONDS,
                check=False,
            )
        except OSError as error:
            raise EngineError("missing", self.name, f"{self.program}: {error.strerror}") from error
        except subprocess.TimeoutExpired as error:
            words = f"{self.name} {args[0]}: no answer within {error.timeout:g} s"
            raise EngineError("not-running", self.name, words) from error
        stdout, stderr = _text(done.stdout), _text(done.stderr)
        return subprocess.CompletedProcess(done.args, done.returncode, stdout, stderr)

    def _trouble(self, done: CompletedProcess[str]) -> EngineError:
        return trouble(self.name, done.stderr or done.stdout, done.returncode)


def docker_facts(data: dict[str, Any]) -> EngineFacts:
    """Facts of docker's `info`."""
    found = data.get("DiscoveredDevices")
    options = tuple(str(each) for each in data.get("SecurityOptions") or ())
    return EngineFacts(
        name="docker",
        version=data.get("ServerVersion"),
        runtimes=tuple(sorted(data["Runtimes"])) if data.get("Runtimes") else None,
        default_runtime=data.get("DefaultRuntime"),
        cdi_folders=tuple(data.get("CDISpecDirs") or ()),
        cdi_devices=None
        if found is None
        else tuple(str(each.get("ID")) for each in found if each.get("Source") == "cdi"),
        desktop=data.get("OperatingSystem") == "Docker Desktop",
        rootless=any("rootless" in each for each in options),
        cgroup_driver=data.get("CgroupDriver"),
    )


def podman_facts(data: dict[str, Any]) -> EngineFacts:
    """Facts of podman's `info`."""
    host = data.get("host") or {}
    security = host.get("security") or {}
    return EngineFacts(
        name="podman",
        version=(data.get("version") or {}).get("Version"),
        default_runtime=(host.get("ociRuntime") or {}).get("name"),
        cdi_folders=("/etc/cdi", "/var/run/cdi"),
        rootless=security.get("rootless"),
        cgroup_driver=host.get("cgroupManager"),
    )


def image_of(reference: str, data: dict[str, Any]) -> Image:
    """An image, of what `image inspect` says."""
    config = data.get("Config") or {}
    return Image(
        reference=reference,
        id=str(data.get("Id")),
        variables=tuple(
            (name, value)
            for name, _, value in (str(each).partition("=") for each in config.get("Env") or ())
        ),
        labels=tuple(sorted((config.get("Labels") or {}).items())),
        architecture=data.get("Architecture") or None,
        user=config.get("User") or "",
        size_bytes=data.get("Size"),
    )


def has_run(state: dict[str, Any]) -> bool:
    """Whether a container's program ran, by the state of the container."""
    return not state.get("Error") and str(state.get("Status") or "").lower() not in {
        "created",
        "initialized",
        "configured",
    }


def _parsed(engine: str, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise EngineError("refused", engine, f"not JSON: {text[:200]}") from error


def _text(data: bytes | None) -> str:
    return (data or b"").decode("utf-8", "replace")
