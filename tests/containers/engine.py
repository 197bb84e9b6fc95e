"""A real container engine for tests: a private dockerd, and base images without a registry.

    with running_engine() as engine:
        engine.base_image("python:3.11-slim")
        engine.cli("build", "-t", "example", folder)

The daemon has a socket, data, a network bridge and a pid file of its own below a temporary folder,
and is stopped by its pid. Nothing of the machine's own engine is used or changed.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.containers.base_tree import cached_tree

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

BASE = "envcheck-test/base"
"""Name of the base image in every engine; `base_image` gives it others."""

LABEL = "envcheck-test"
_START_SECONDS = 60.0
_STOP_SECONDS = 30.0


class EngineError(Exception):
    """A command of the engine failed, or the engine did not start; the message has its words."""


def why_not() -> str | None:
    """Why no engine can be had here; None when it can."""
    if os.geteuid() != 0:
        return "a container engine needs root"
    for program, package in (("dockerd", "docker.io"), ("debootstrap", "debootstrap")):
        if shutil.which(program) is None:
            return f"{program} is not installed (apt-get install {package})"
    if client_program() is None:
        return "no docker command with BuildKit is installed (apt-get install docker.io)"
    return None


def client_program() -> str | None:
    """The first docker command on PATH that can build with BuildKit; None when there is none."""
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        path = shutil.which("docker", path=folder) if folder else None
        if path is None:
            continue
        version = _output(path, "version", "--format", "{{.Client.Version}}")
        major = version.partition(".")[0]
        # Old ones have BuildKit built in, newer ones as a plugin that need not be there.
        if (major.isdigit() and int(major) < 23) or _output(path, "buildx", "version"):
            return path
    return None


def _output(*argv: str) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    # Asked for its client's version, docker prints it and then complains about the daemon.
    return done.stdout.strip()


class Engine:
    """A running engine."""

    def __init__(self, state: Path, process: subprocess.Popen[bytes], bridge: _Bridge) -> None:
        """Take a started daemon; use `running_engine` instead."""
        self.state = state
        self.process = process
        self.bridge = bridge
        self.socket = state / "docker.sock"
        self.program = client_program() or "docker"

    @property
    def host(self) -> str:
        """Address of the daemon, as DOCKER_HOST has it."""
        return f"unix://{self.socket}"

    @property
    def gateway(self) -> str:
        """Address at which containers reach this machine."""
        return self.bridge.address

    @property
    def variables(self) -> dict[str, str]:
        """Variables by which docker's command and its SDK find this engine and nothing else."""
        folder = str(Path(self.program).parent)
        path = os.environ.get("PATH", "")
        return {
            "DOCKER_HOST": self.host,
            "DOCKER_BUILDKIT": "1",
            "DOCKER_CONFIG": str(self.state / "client"),
            "PATH": f"{folder}{os.pathsep}{path}",
        }

    def cli(
        self,
        *args: str | Path,
        check: bool = True,
        timeout: float = 300.0,
        variables: Mapping[str, str] | None = None,
        stdin: bytes | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run docker's command against this engine.

        Args:
            args: what stands behind `docker`.
            check: a status other than 0 is an error.
            timeout: seconds.
            variables: set on top of the environment.
            stdin: what the command reads.

        Raises:
            EngineError: it failed and `check` is set; the message has both outputs.
        """
        done = subprocess.run(
            [self.program, *map(str, args)],
            input=stdin if stdin is not None else b"",
            capture_output=True,
            env={**os.environ, **self.variables, **(variables or {})},
            timeout=timeout,
            check=False,
        )
        stdout, stderr = (each.decode("utf-8", "replace") for each in (done.stdout, done.stderr))
        if check and done.returncode:
            words = f"docker {' '.join(map(str, args))}: exit {done.returncode}"
            raise EngineError(f"{words}\n{stdout[-2000:]}\n{stderr[-4000:]}")
        return subprocess.CompletedProcess(done.args, done.returncode, stdout, stderr)

    def client(self) -> Any:
        """The docker SDK, connected to this engine."""
        import docker

        return docker.DockerClient(base_url=self.host, timeout=120)

    def base_image(self, tag: str, files: Mapping[str, str] | None = None) -> None:
        """Give the base image a name, such as the one that a Dockerfile's FROM line has.

        Args:
            tag: name and tag.
            files: text by absolute path, put into the image on top of the base.
        """
        if self.cli("image", "inspect", BASE, check=False).returncode:
            change = 'CMD ["/bin/bash"]'
            self.cli("import", "--change", change, cached_tree(), BASE)
        if not files:
            self.cli("tag", BASE, tag)
            return
        with tempfile.TemporaryDirectory(prefix="envcheck-base-") as folder:
            for path, text in files.items():
                place = Path(folder) / "files" / path.lstrip("/")
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text(text, encoding="utf-8")
            (Path(folder) / "Dockerfile").write_text(f"FROM {BASE}\nCOPY files/ /\n")
            self.cli("build", "-q", "-t", tag, folder)

    @contextlib.contextmanager
    def configured(self, config: Mapping[str, Any]) -> Iterator[None]:
        """Change the daemon's `daemon.json` while it runs, for a while.

        Args:
            config: settings that the daemon takes over without a restart, such as `runtimes`.

        Raises:
            EngineError: it did not take them over.
        """
        place = self.state / "daemon.json"
        before = place.read_text()
        self._reload(json.dumps(dict(config)))
        try:
            yield
        finally:
            # A setting that is merely left out would stay as it is.
            empty: dict[str, Any] = {key: {} for key in config}
            self._reload(json.dumps({**empty, **json.loads(before)}))

    def _reload(self, text: str) -> None:
        done = self.log().count("Reloaded configuration")
        (self.state / "daemon.json").write_text(text)
        self.process.send_signal(signal.SIGHUP)
        deadline = time.monotonic() + _START_SECONDS
        while self.log().count("Reloaded configuration") == done:
            if time.monotonic() > deadline:
                raise EngineError(f"the daemon did not read {text}:\n{self.log()[-1000:]}")
            time.sleep(0.05)

    def log(self) -> str:
        """What the daemon wrote."""
        return (self.state / "dockerd.log").read_text(encoding="utf-8", errors="replace")


@contextlib.contextmanager
def running_engine(
    config: Mapping[str, Any] | None = None,
    *,
    path: Sequence[str | Path] = (),
    daemon: str = "dockerd",
) -> Iterator[Engine]:
    """Start an engine, and stop it and remove all that it made at the end.

    Args:
        config: the daemon's `daemon.json`.
        path: folders put in front of the daemon's PATH.
        daemon: name or path of the daemon's program.

    Raises:
        EngineError: it did not start; the message has the end of its log.
    """
    state = Path(tempfile.mkdtemp(prefix="envcheck-engine-"))
    (state / "client").mkdir()
    (state / "daemon.json").write_text(json.dumps(dict(config or {})))
    try:
        with _bridge() as bridge, _daemon(state, bridge, path, daemon) as process:
            yield Engine(state, process, bridge)
    finally:
        _remove(state)


class _Bridge:
    """A network bridge for one daemon: two daemons on one would each take the other's rules."""

    def __init__(self, name: str | None, address: str) -> None:
        self.name = name
        self.address = address


@contextlib.contextmanager
def _bridge() -> Iterator[_Bridge]:
    ip = shutil.which("ip")
    if ip is None:
        yield _Bridge(None, "172.17.0.1")
        return
    # Of the addresses for private networks some that other software hardly takes; the kernel itself
    # says which of the names is free.
    for number in range(1, 255):
        name, address = f"ectest{number}", f"10.213.{number}.1"
        made = subprocess.run(
            [ip, "link", "add", "name", name, "type", "bridge"], capture_output=True, check=False
        )
        if made.returncode == 0:
            break
    else:
        raise EngineError(f"no network bridge: {made.stderr.decode('utf-8', 'replace')}")
    try:
        subprocess.run([ip, "addr", "add", f"{address}/24", "dev", name], check=True)
        subprocess.run([ip, "link", "set", name, "up"], check=True)
        yield _Bridge(name, address)
    finally:
        subprocess.run([ip, "link", "delete", name], check=False)


@contextlib.contextmanager
def _daemon(
    state: Path, bridge: _Bridge, path: Sequence[str | Path], program: str
) -> Iterator[subprocess.Popen[bytes]]:
    variables = dict(os.environ)
    variables["PATH"] = os.pathsep.join((*map(str, path), variables.get("PATH", "")))
    with (state / "dockerd.log").open("wb") as log:
        process = subprocess.Popen(
            [
                # Whoever ends the tests ends the daemon too, however roughly.
                *(("setpriv", "--pdeathsig", "TERM") if shutil.which("setpriv") else ()),
                shutil.which(program, path=variables["PATH"]) or program,
                "--config-file",
                str(state / "daemon.json"),
                "--host",
                f"unix://{state / 'docker.sock'}",
                "--data-root",
                str(state / "data"),
                "--exec-root",
                str(state / "exec"),
                "--pidfile",
                str(state / "dockerd.pid"),
                *(("--bridge", bridge.name) if bridge.name else ()),
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=variables,
            start_new_session=True,
        )
    try:
        _wait_until_answering(state, process)
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_until_answering(state: Path, process: subprocess.Popen[bytes]) -> None:
    import socket

    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as line:
            line.settimeout(5.0)
            line.connect(str(state / "docker.sock"))
            line.sendall(b"GET /_ping HTTP/1.0\r\n\r\n")
            if b" 200 " in line.recv(200):
                return
        time.sleep(0.1)
    log = (state / "dockerd.log").read_text(encoding="utf-8", errors="replace")
    raise EngineError(f"dockerd did not start:\n{log[-3000:]}")


def _remove(state: Path) -> None:
    """Remove the daemon's folder; what it left mounted is unmounted first, innermost first."""
    text = Path("/proc/mounts").read_text(encoding="utf-8", errors="replace")
    places = [line.split()[1] for line in text.splitlines() if f" {state}/" in line]
    for place in sorted(places, key=len, reverse=True):
        subprocess.run(["umount", "-l", place], check=False, capture_output=True)
    shutil.rmtree(state, ignore_errors=True)
