"""A folder as a reader of the README has it, and the programs that its examples name."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from envcheck.fleet.journal import Journal
from tests.cli.runner import environment
from tests.fleet.recorded import report_text
from tests.image import tars

ROOT = Path(__file__).resolve().parents[3]
HOSTS = dict.fromkeys((f"gpu{number}" for number in range(1, 7)), "h200-toolkit-on-library-path")
HOSTS |= {"gpu7": "h200-r610-torch215", "gpu8": "h200-nccl-of-two-majors"}
UNREACHABLE = (
    "Failed to connect to the host via ssh: ssh: connect to host gpu9 port 22: No route to host"
)
TRAINING = """\
import time
class Batch:
    def to(self, device, non_blocking):
        return self
loader = [Batch() for _ in range(3)]
def train(batch):
    time.sleep(0.01)
"""
"""What the loop in the README stands in; its batch goes to a GPU that is imitated."""

_ENGINE = """\
#!{python}
import json, shutil, sys
if sys.argv[1:2] == ["info"]:
    print(json.dumps({{"host": {{}}, "version": {{"Version": "5.4.0"}}}}))
elif sys.argv[1:3] == ["image", "inspect"]:
    venv = ["PATH=/opt/venv/bin:/usr/bin", "VIRTUAL_ENV=/opt/venv"]
    print(json.dumps([{{"Id": "sha256:0", "Architecture": "amd64", "Config": {{"Env": venv}}}}]))
elif sys.argv[1:2] == ["create"]:
    print("made")
elif sys.argv[1:2] == ["export"]:
    with open({tar!r}, "rb") as stream:
        shutil.copyfileobj(stream, sys.stdout.buffer)
elif sys.argv[1:2] != ["rm"]:
    sys.exit("this engine holds images and does not run")
"""
_SITE = "opt/venv/lib/python3.11/site-packages"
_NCCL = {"cu12": "2.27.3", "cu13": "2.28.9"}
_IMAGE: tars.Files = {
    "usr/lib/os-release": tars.RELEASE,
    "usr/bin/python3.11": tars.ELF,
    "opt/venv/bin/python3": ("link", "/usr/bin/python3.11"),
    "opt/venv/pyvenv.cfg": "home = /usr/bin\nversion = 3.11.2\n",
    f"{_SITE}/torch/version.py": "__version__ = '2.11.0+cu130'\ncuda = '13.0'\nhip = None\n",
    f"{_SITE}/torch-2.11.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: torch\n"
    "Version: 2.11.0\nRequires-Dist: nvidia-nccl-cu13==2.28.9\n",
    f"{_SITE}/nvidia/nccl/lib/libnccl.so.2": "",
    **{
        f"{_SITE}/nvidia_nccl_{cuda}-{version}.dist-info/METADATA": "Metadata-Version: 2.1\n"
        f"Name: nvidia-nccl-{cuda}\nVersion: {version}\n"
        for cuda, version in _NCCL.items()
    },
    **{
        f"{_SITE}/nvidia_nccl_{cuda}-{version}.dist-info/RECORD": "nvidia/nccl/lib/libnccl.so.2,,\n"
        for cuda, version in _NCCL.items()
    },
}
"""Files of an image in which wheels of two CUDA majors own one library."""


def furnish(folder: Path) -> None:
    """Put there what the examples read."""
    shutil.copy(Path(__file__).parent / "issue.txt", folder)
    (folder / "train.py").write_text("print('trained')\n", encoding="utf-8")
    (folder / "inventory.ini").write_text("gpu1\n", encoding="utf-8")
    shutil.copytree(ROOT / "tests" / "watch" / "series", folder / "tests" / "watch" / "series")
    reports = folder / "reports"
    reports.mkdir()
    journal = Journal(str(reports))
    journal.begin((*HOSTS, "gpu9"), {}, anew=False)
    for host, machine in HOSTS.items():
        (reports / f"{host}.json").write_text(report_text(machine), encoding="utf-8")
        journal.note(host, "ok")
    journal.note("gpu9", "unreachable", UNREACHABLE)
    programs = folder / "programs"
    programs.mkdir()
    _program(programs / "envcheck", f'#!/bin/sh\nexec {sys.executable} -m envcheck "$@"\n')
    _program(programs / "python", f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    _program(programs / "srun", '#!/bin/sh\nshift 2\nexec "$@"\n')
    _program(
        programs / "ansible-playbook",
        f'#!/bin/sh\nexec {sys.executable} -m ansible playbook --syntax-check "$@"\n',
    )
    tar = folder / "image.tar"
    tar.write_bytes(tars.tar(_IMAGE).getvalue())
    _program(programs / "podman", _ENGINE.format(python=sys.executable, tar=str(tar)))


def _program(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


def run(folder: Path, command: str, **changes: str | None) -> subprocess.CompletedProcess[str]:
    """Type a command there, in a terminal of a hundred columns.

    Of engines only one can be had that holds an image and runs nothing, and no docker.
    """
    return subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environment(
            PATH=f"{folder / 'programs'}{os.pathsep}/usr/bin{os.pathsep}/bin",
            COLUMNS="100",
            DOCKER_HOST="unix:///nonexistent.sock",
            HOME=str(folder),
            VIRTUAL_ENV=None,
            CONDA_PREFIX=None,
            **changes,
        ),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def stages(text: str) -> list[tuple[str, str, str]]:
    """(framework, device, stage) of each stage in a recording of the smoke test."""
    return [
        (each["framework"], each["device"], each["name"]) for each in json.loads(text)["stages"]
    ]
