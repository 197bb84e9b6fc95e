"""A folder of `envcheck emit ansible`, and runs of the playbook in it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envcheck.model.base import model

if TYPE_CHECKING:
    from tests.ansible.hosts import Hosts

LOCK = """\
schema = 1
envcheck = "0.1.0"
want = ["torch"]

[target]
platform = "linux_x86_64"
os = "debian12"
python = "3.11"

[stack]
python = "3.11"
platform = "linux_x86_64"
os = "debian12"

[[stack.frameworks]]
name = "torch"
version = "2.15.0"
variant = "cpu"

[[stack.pins]]
name = "torch"
version = "2.15.0+cpu"
index = "https://download.pytorch.org/whl/cpu"
"""


@model
class Played:
    """How a run of a playbook ended.

    Attributes:
        code: exit status.
        text: all of its output.
        recap: host -> counts of the last lines: ok, changed, unreachable, failed, ...
    """

    code: int
    text: str
    recap: dict[str, dict[str, int]]

    def said(self, host: str) -> str:
        """What the tasks that ended the play for a host said, in one line."""
        lines = [
            line
            for line in self.text.splitlines()
            if re.match(rf"(fatal|failed): \[{host}\]", line)
        ]
        return "\n".join(lines)


class Fleet:
    """The folder, and the hosts it is for."""

    def __init__(self, hosts: Hosts, folder: Path, playbook: str) -> None:
        """Take running hosts, the folder to write to, and the program ansible-playbook."""
        self.hosts = hosts
        self.folder = folder
        self.playbook = playbook

    def emit(self, *args: str) -> None:
        """Write the folder."""
        lock = self.hosts.folder / "test.lock"
        lock.write_text(LOCK)
        subprocess.run(
            [
                *(sys.executable, "-m", "envcheck", "emit", "ansible"),
                *("--lock", str(lock), *args, "--output", str(self.folder)),
            ],
            check=True,
            stdout=subprocess.DEVNULL,
        )

    def settings(self, place: str, values: dict[str, Any]) -> None:
        """Write variables: `all/x` of every host, or `h1` of one."""
        folder = "group_vars" if "/" in place else "host_vars"
        path = self.folder / folder / f"{place}.yml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(values))

    def play(self, *args: str, inventory: Path | None = None) -> Played:
        """Run the playbook."""
        done = subprocess.run(
            [self.playbook, "site.yml", "-i", inventory or self.hosts.inventory, *args],
            cwd=self.folder,
            env={**os.environ, "NO_COLOR": "1", "ANSIBLE_NOCOLOR": "1", "LC_ALL": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=900,
        )
        recap = {
            line.split()[0]: {key: int(n) for key, n in re.findall(r"(\w+)=(\d+)", line)}
            for line in done.stdout.splitlines()
            if re.match(r"\S+\s+: ok=\d+", line)
        }
        return Played(code=done.returncode, text=done.stdout, recap=recap)
