"""Hosts to manage: containers of Debian with systemd and sshd, on ports of this machine.

    with running_hosts(engine, folder, ("h1", "h2")) as hosts:
        hosts.inventory  # a file for ansible -i

Each mounts the archive of `tests.ansible.archive` and has, below /srv/sys, what a kernel with an
NVIDIA GPU shows.
"""

from __future__ import annotations

import contextlib
import shlex
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.containers.engine import Engine

IMAGE = "envcheck-test/host"
_DOCKERFILE = """\
FROM envcheck-test/base
ENV DEBIAN_FRONTEND=noninteractive
RUN apt-get update && apt-get install -y --no-install-recommends \
    kmod openssh-server systemd systemd-sysv python3-apt \
 && rm -rf /etc/ssh/ssh_host_* /var/lib/apt/lists/* \
 && rm -rf /etc/apt/sources.list /etc/apt/sources.list.d/* \
 && mkdir -p /root/.ssh && chmod 700 /root/.ssh \
 && systemctl mask systemd-logind.service getty.target systemd-networkd-wait-online.service \
 && echo StrictModes no > /etc/ssh/sshd_config.d/test.conf \
 && mkdir -p /etc/systemd/system/ssh.service.d \
 && printf '[Service]\\nExecStartPre=\\nExecStartPre=/usr/bin/ssh-keygen -A\\n' \
    > /etc/systemd/system/ssh.service.d/keys.conf
CMD ["/sbin/init"]
"""
_START_SECONDS = 60.0


class Hosts:
    """Running hosts."""

    def __init__(self, engine: Engine, folder: Path, names: Sequence[str]) -> None:
        """Take what `running_hosts` started."""
        self.engine = engine
        self.folder = folder
        self.names = tuple(names)
        self.ports = {name: _port(engine, name) for name in names}
        self.inventory = folder / "inventory.yml"

    def run(self, name: str, command: str, *, check: bool = True) -> str:
        """Output of a shell command on a host, both streams."""
        done = self.engine.cli("exec", name, "bash", "-c", command, check=check)
        return done.stdout + done.stderr

    def versions(self, name: str, *packages: str) -> dict[str, str]:
        """Version of each package that is installed and set up."""
        text = self.run(
            name,
            "dpkg-query -W -f '${Package} ${Version} ${db:Status-Abbrev}\\n' "
            + " ".join(map(shlex.quote, packages))
            + " 2>/dev/null || true",
        )
        rows = [line.split() for line in text.splitlines()]
        return {row[0]: row[1] for row in rows if row[2][1] == "i"}

    def reset(self, name: str) -> None:
        """Take a host away and start it anew, as it was at first."""
        self.engine.cli("rm", "--force", name, check=False)
        _start(self.engine, self.folder, name, self.ports[name])
        _wait(self.engine, name)
        _write_known_hosts(self)


def _port(engine: Engine, name: str) -> int:
    return int(engine.cli("port", name, "22/tcp").stdout.split()[0].rpartition(":")[2])


@contextlib.contextmanager
def running_hosts(engine: Engine, folder: Path, names: Sequence[str]) -> Iterator[Hosts]:
    """Start hosts, write an inventory of them, and take them away at the end.

    Args:
        engine: to run them.
        folder: has the archive in `archive/`; keys and the inventory are written to it.
        names: of the hosts.
    """
    if engine.cli("image", "inspect", IMAGE, check=False).returncode:
        engine.base_image("envcheck-test/base")
        context = folder / "image"
        context.mkdir(exist_ok=True)
        (context / "Dockerfile").write_text(_DOCKERFILE)
        engine.cli("build", "-q", "-t", IMAGE, context)
    if not (folder / "id").exists():
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / "id"], check=True
        )
    try:
        for name in names:
            _start(engine, folder, name)
        for name in names:
            _wait(engine, name)
        hosts = Hosts(engine, folder, names)
        _write_known_hosts(hosts)
        _write_inventory(hosts)
        yield hosts
    finally:
        engine.cli("rm", "--force", *names, check=False)


def _start(engine: Engine, folder: Path, name: str, port: int = 0) -> None:
    engine.cli(
        "run",
        "--detach",
        "--name",
        name,
        "--hostname",
        name,
        "--publish",
        f"127.0.0.1:{port or ''}:22",
        # What systemd needs; full privileges are not to be had everywhere.
        "--cap-add=SYS_ADMIN",
        "--security-opt=seccomp=unconfined",
        "--tmpfs=/run",
        "--tmpfs=/run/lock",
        "--volume=/sys/fs/cgroup:/sys/fs/cgroup:ro",
        f"--volume={folder / 'archive'}:/srv/archive:ro",
        f"--volume={folder / 'id.pub'}:/root/.ssh/authorized_keys:ro",
        IMAGE,
    )
    engine.cli("exec", name, "bash", "-c", _KERNEL)


_KERNEL = """\
set -e
gpu=/srv/sys/bus/pci/devices/0000:01:00.0
mkdir -p $gpu /srv/sys/module/nvidia /srv/sys/efivars
echo 0x10de > $gpu/vendor; echo 0x030200 > $gpu/class; echo 0x2330 > $gpu/device
"""
"""A GPU on the bus: 2330 is an H100."""


def _wait(engine: Engine, name: str) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        done = engine.cli(
            "exec",
            name,
            "bash",
            "-c",
            "systemctl is-active ssh && exec 3<>/dev/tcp/127.0.0.1/22",
            check=False,
        )
        if done.returncode == 0:
            return
        time.sleep(0.2)
    raise TimeoutError(
        f"{name} did not start: {engine.cli('logs', name, check=False).stdout[-2000:]}"
    )


def _write_known_hosts(hosts: Hosts) -> None:
    lines = []
    for name, port in hosts.ports.items():
        key = hosts.run(name, "cat /etc/ssh/ssh_host_ed25519_key.pub").split()
        lines.append(f"[127.0.0.1]:{port} {key[0]} {key[1]}\n")
    (hosts.folder / "known_hosts").write_text("".join(lines))


def _write_inventory(hosts: Hosts) -> None:
    folder = hosts.folder
    lines = [
        "all:",
        "  vars:",
        "    ansible_host: 127.0.0.1",
        "    ansible_user: root",
        f"    ansible_ssh_private_key_file: {folder / 'id'}",
        "    ansible_ssh_common_args: >-",
        f"      -o UserKnownHostsFile={folder / 'known_hosts'} -o ConnectTimeout=10",
        "    ansible_python_interpreter: /usr/bin/python3",
        "  hosts:",
        *(f"    {name}: {{ansible_port: {port}}}" for name, port in hosts.ports.items()),
    ]
    hosts.inventory.write_text("\n".join([*lines, ""]))
