"""Fake environments on disk, and how the probe describes them."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envcheck.probe.driver_files import LDCONFIG
from envcheck.probe.environment import environment_commands, read_environment
from envcheck.probe.live import Live
from envcheck.probe.notes import Notes
from envcheck.probe.source import Result
from envcheck.probe.target import choose_target

if TYPE_CHECKING:
    from collections.abc import Mapping

    from envcheck.model.environment import Environment

TAG = f"python{sys.version_info.major}.{sys.version_info.minor}"
NO_CACHE = Result(outcome="ok", code=0, stdout="0 libs found in cache\n")


def write(path: Path, text: str = "") -> Path:
    """Write a file, with the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def venv(prefix: Path, extra: str = "") -> Path:
    """A virtual environment of this interpreter, without pip; returns its site folder."""
    write(
        prefix / "pyvenv.cfg",
        f"home = {Path(sys.base_prefix) / 'bin'}\n"
        "include-system-site-packages = false\n"
        f"version = {sys.version.split()[0]}\n{extra}",
    )
    site = prefix / "lib" / TAG / "site-packages"
    site.mkdir(parents=True)
    (prefix / "bin").mkdir()
    for name in ("python", "python3"):
        (prefix / "bin" / name).symlink_to(os.path.realpath(sys.executable))
    return site


def dist(
    site: Path,
    name: str,
    version: str,
    *,
    requires: tuple[str, ...] = (),
    record: tuple[str, ...] = (),
    tag: str | None = "cp311-cp311-manylinux_2_28_x86_64",
    installer: str | None = "pip",
    direct_url: dict[str, Any] | None = None,
) -> Path:
    """Metadata of an installed wheel."""
    folder = site / f"{name.replace('-', '_')}-{version}.dist-info"
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    lines += [f"Requires-Dist: {each}" for each in requires]
    write(folder / "METADATA", "\n".join(lines) + "\n\nVersion: 0.0 of the description\n")
    write(folder / "RECORD", "".join(f"{each},,\n" for each in record))
    if tag is not None:
        write(folder / "WHEEL", f"Wheel-Version: 1.0\nTag: {tag}\n")
    if installer is not None:
        write(folder / "INSTALLER", installer + "\n")
    if direct_url is not None:
        write(folder / "direct_url.json", json.dumps(direct_url))
    return folder


def torch_version(site: Path, version: str, **constants: str | None) -> None:
    """`torch/version.py` as builds write it; it must only ever be read."""
    values = {"cuda": None, "hip": None, "git_version": "abc123", **constants}
    lines = [f"{name}: Optional[str] = {value!r}" for name, value in values.items()]
    text = "from typing import Optional\n__all__ = ['__version__']\n"
    write(
        site / "torch" / "version.py",
        f"{text}__version__ = {version!r}\ndebug = False\n" + "\n".join(lines) + "\n",
    )
    write(site / "torch" / "__init__.py", "raise SystemExit('torch was imported')\n")


def described(
    variables: Mapping[str, str],
    *,
    python: str | None = None,
    notes: Notes | None = None,
    cache: Result = NO_CACHE,
    deep: bool = False,
    timeout: float = 30.0,
) -> Environment:
    """What the probe says of the environment that these variables, or `python`, lead to."""
    live = Live(variables={"PATH": "/usr/bin:/bin", **variables})
    notes = notes or Notes()
    target = choose_target(live, python, notes)
    commands = environment_commands(live, target, deep, timeout, cache)
    answers = live.run_all(commands)
    results = {each.name: answer for each, answer in zip(commands, answers, strict=True)}
    return read_environment(live, target, {**results, LDCONFIG.name: cache}, notes)
