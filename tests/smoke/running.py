"""Runs the smoke test as a user does, with faults planted in the framework, and looks after it."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import textwrap
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.cli.runner import environment

SHARED = Path("/dev/shm")
PLANT = '''
"""Changes what scripts of the smoke test import, and no other program."""
import os
with open("/proc/self/cmdline", "rb") as file:
    words = file.read().decode().split("\\0")
def runs(script):
    here = any(word.endswith("/" + script + ".py") for word in words)
    return here and "torch.distributed.run" not in words
'''
NOT_ALONE = """
    import json
    for event in ({"event": "begin"}, {"event": "stage", "outcome": "ok", "seconds": 0.1}):
        event.update(framework="torch", device="cpu", name="import")
        os.write(1, ("envcheck-json:" + json.dumps(event) + "\\n").encode())
    os._exit(0)
"""
"""Leaves out what one process does, for a test of what several do."""


class Run:
    """One run of `envcheck smoke`, whose processes all carry a mark in their environment."""

    def __init__(self, *args: str, python: str | Path, **variables: str) -> None:
        """Prepare it; `variables` are added to the environment."""
        self.mark = f"ENVCHECK_TEST_{uuid.uuid4().hex}"
        self.args = [sys.executable, "-m", "envcheck", "smoke", "--json", "--python", str(python)]
        self.args += args
        self.variables = environment(VIRTUAL_ENV=None, CONDA_PREFIX=None)
        self.variables |= {self.mark: "1", **variables}
        self.shared = shared()

    def finish(self) -> tuple[int, dict[str, Any]]:
        """Run it to its end: exit status and report."""
        done = subprocess.run(
            self.args,
            capture_output=True,
            text=True,
            env=self.variables,
            cwd="/",
            timeout=600,
            check=False,
        )
        assert done.stdout, done.stderr
        assert done.stderr == ""
        return done.returncode, json.loads(done.stdout)

    def start(self) -> subprocess.Popen[bytes]:
        """Start it; the caller ends it."""
        return subprocess.Popen(
            self.args,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=self.variables,
            cwd="/",
            start_new_session=True,
        )

    def alive(self) -> list[str]:
        """Command lines of processes of this run."""
        found = []
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit():
                with contextlib.suppress(OSError):
                    if self.mark.encode() in (folder / "environ").read_bytes():
                        words = (folder / "cmdline").read_bytes().replace(b"\0", b" ")
                        found.append(words.decode("utf-8", "replace"))
        return found

    def left(self) -> tuple[list[str], set[str]]:
        """Processes and shared memory left after it and, given time to end, what ran beside it."""
        wait_until(lambda: not self.alive() and shared() <= self.shared)
        return self.alive(), shared() - self.shared


def shared() -> set[str]:
    """Names in shared memory."""
    return {each.name for each in SHARED.iterdir()}


def wait_until(holds: Callable[[], bool], seconds: float = 20.0) -> bool:
    """Whether a condition comes true in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if holds():
            return True
        time.sleep(0.05)
    return holds()


def planted(folder: Path, **codes: str) -> dict[str, str]:
    """Variables under which scripts of the smoke test, named here, run some code first."""
    text = PLANT
    for script, code in codes.items():
        body = textwrap.indent(textwrap.dedent(code).strip(), "    ")
        text += f"if runs({script!r}):\n{body}\n"
    folder.mkdir(exist_ok=True)
    (folder / "sitecustomize.py").write_text(text, encoding="utf-8")
    paths = [str(folder), environment().get("PYTHONPATH", "")]
    return {"PYTHONPATH": os.pathsep.join(filter(None, paths))}


def outcomes(report: dict[str, Any]) -> dict[str, str]:
    """Outcome of each stage by its name."""
    return {each["name"]: each["outcome"] for each in report["stages"]}


def failed(report: dict[str, Any]) -> list[dict[str, Any]]:
    """Stages that neither worked nor were left out."""
    return [each for each in report["stages"] if each["outcome"] not in {"ok", "skipped"}]
