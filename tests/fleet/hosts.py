"""Hosts to ask: containers with sshd on ports of this machine, each with a stack of its own.

What is real is what `fleet run` is about: ssh, Ansible, another file system, another Python. Only
the GPU is imitated: stub libraries for NVML and libcuda, and what the kernel shows of a card.
"""

from __future__ import annotations

import contextlib
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

from envcheck.model.base import model
from tests.containers.engine import BASE, Engine

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

IMAGE = "envcheck-test/fleet-host"
SITE = "/opt/venv/lib/python3.11/site-packages"
"""Package folder of the environment on each host; the interpreter's version is the base image's."""

_DOCKERFILE = f"""\
FROM {BASE}
ENV DEBIAN_FRONTEND=noninteractive
RUN apt-get update && apt-get install -y --no-install-recommends openssh-server \\
 && rm -f /etc/ssh/ssh_host_* && mkdir -p /root/.ssh /run/sshd && chmod 700 /root/.ssh \\
 && python3 -m venv --without-pip /opt/venv && ls -d {SITE}
"""
_START = """\
set -e
rm -f /.dockerenv
mkdir -p /run/sshd
ssh-keygen -q -t ed25519 -N '' -f /etc/ssh/ssh_host_ed25519_key
cat /files/environment >> /etc/ssh/sshd_config
cp -r /files/site/. {site}/
exec /usr/sbin/sshd -D -e -o StrictModes=no -o PasswordAuthentication=no
"""
_SECONDS = 30.0


@model
class Machine:
    """What a host is like.

    Attributes:
        packages: distribution -> version, as files of the environment.
        files: text of further files below the package folder, by path.
        driver: release that the stub libraries say, None for a host without driver.
        cuda: CUDA interface of that driver, as `13000`.
        on_bus: device id of a card that the kernel shows, None for what it really shows.
    """

    packages: tuple[tuple[str, str], ...] = ()
    files: tuple[tuple[str, str], ...] = ()
    driver: str | None = "580.95.05"
    cuda: int = 13000
    on_bus: str | None = None


class Fleet:
    """Running hosts, and an inventory of them."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        """Take what `running` started."""
        self.engine = engine
        self.folder = folder
        self.inventory = folder / "inventory.ini"

    def write_inventory(self, names: Mapping[str, str | int]) -> None:
        """An inventory of these hosts, each with its port."""
        ssh = f"-o UserKnownHostsFile={self.folder}/known_hosts -o ConnectTimeout=5"
        lines = [
            *(f"{name} ansible_port={port}" for name, port in names.items()),
            "",
            "[all:vars]",
            "ansible_host=127.0.0.1",
            "ansible_user=root",
            f"ansible_ssh_private_key_file={self.folder}/id",
            f"ansible_ssh_common_args={ssh}",
            "envcheck_python=/opt/venv",
        ]
        self.inventory.write_text("\n".join(lines) + "\n")


@contextlib.contextmanager
def running(
    engine: Engine, folder: Path, stubs: Path, machines: Mapping[str, Machine]
) -> Iterator[Fleet]:
    """Start hosts, and take them away at the end.

    Args:
        engine: to run them.
        folder: for keys, inventory and the files of hosts.
        stubs: holds the stub libraries of NVML and libcuda.
        machines: what each is like, by name.
    """
    _image(engine, folder)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / "id"], check=True)
    fleet = Fleet(engine, folder)
    try:
        for name, machine in machines.items():
            _start(engine, folder, stubs, name, machine)
        ports = {name: _port(engine, name) for name in machines}
        _wait(engine, folder, ports)
        fleet.write_inventory(ports)
        yield fleet
    finally:
        engine.cli("rm", "--force", *map(_container, machines), check=False)


def _image(engine: Engine, folder: Path) -> None:
    engine.base_image(BASE)
    context = folder / "image"
    context.mkdir()
    (context / "Dockerfile").write_text(_DOCKERFILE)
    engine.cli("build", "-q", "-t", IMAGE, context)


def _container(name: str) -> str:
    return f"envcheck-fleet-{name}"


def _start(engine: Engine, folder: Path, stubs: Path, name: str, machine: Machine) -> None:
    place = folder / "hosts" / name
    (place / "site").mkdir(parents=True)
    for package, version in machine.packages:
        info = place / "site" / f"{package.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n"
        )
        (info / "INSTALLER").write_text("pip\n")
    for path, text in machine.files:
        target = place / "site" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    settings = (
        ""
        if machine.driver is None
        else f"SetEnv NVIDIA_STUB_DRIVER={machine.driver} NVIDIA_STUB_CUDA={machine.cuda}"
        f" CUDA_STUB_VERSION={machine.cuda}\n"
    )
    (place / "environment").write_text(settings)
    volumes = [f"{place}:/files:ro", f"{folder / 'id.pub'}:/root/.ssh/authorized_keys:ro"]
    options = ["--shm-size=8g"]
    if machine.driver is not None:
        for library in ("libnvidia-ml.so.1", "libcuda.so.1"):
            volumes.append(f"{stubs / library}:/usr/lib/x86_64-linux-gnu/{library}:ro")
        for node in ("/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm"):
            options.append(f"--device=/dev/null:{node}")
    if machine.on_bus is not None:
        bus = place / "pci" / "0000:01:00.0"
        bus.mkdir(parents=True)
        for fact, value in (
            ("vendor", "0x10de"),
            ("class", "0x030200"),
            ("device", machine.on_bus),
        ):
            (bus / fact).write_text(f"{value}\n")
        volumes.append(f"{bus.parent}:/sys/bus/pci/devices:ro")
    engine.cli(
        *("run", "--detach", "--name", _container(name), "--hostname", f"secret-{name}"),
        *("--publish", "127.0.0.1::22"),
        *options,
        *(f"--volume={each}" for each in volumes),
        *(IMAGE, "sh", "-c", _START.format(site=SITE)),
    )


def _port(engine: Engine, name: str) -> int:
    answer = engine.cli("port", _container(name), "22/tcp").stdout
    return int(answer.split()[0].rpartition(":")[2])


def _wait(engine: Engine, folder: Path, ports: Mapping[str, int]) -> None:
    deadline = time.monotonic() + _SECONDS
    lines = []
    for name, port in ports.items():
        while True:
            done = subprocess.run(
                ["ssh-keyscan", "-t", "ed25519", "-p", str(port), "127.0.0.1"],
                capture_output=True,
                text=True,
                check=False,
            )
            if done.stdout.strip():
                lines.append(done.stdout)
                break
            if time.monotonic() > deadline:
                said = engine.cli("logs", _container(name), check=False)
                raise TimeoutError(f"{name}: {said.stdout}{said.stderr}")
            time.sleep(0.2)
    (folder / "known_hosts").write_text("".join(lines))
