"""The environment of an image, read from its files and never run."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from envcheck.image.source import ImageFiles
from envcheck.image.tree import Tree, unpack
from envcheck.model.base import model

if TYPE_CHECKING:
    from collections.abc import Callable

    from envcheck.image.engine import Engine, Image
    from envcheck.model.environment import Environment
    from envcheck.model.host import Os
    from envcheck.model.snapshot import Gap


@model
class Inside:
    """What is known of an image: its environment and its system, and what could not be read."""

    env: Environment
    os: Os
    gaps: tuple[Gap, ...] = ()


def read_image(
    engine: Engine,
    image: Image,
    *,
    python: str | None = None,
    timeout: float = 10.0,
    progress: Callable[[int], object] = int,
) -> Inside:
    """Unpack what says of what an image is made, and describe it.

    Args:
        engine: has the image.
        image: which one.
        python: interpreter or environment in it; None to choose as for a machine.
        timeout: seconds for each child that reads.
        progress: told how many bytes of the image were read.

    Raises:
        EngineError: the engine gives the files not, or not whole.
        UsageError: `python` names nothing in the image.
    """
    with tempfile.TemporaryDirectory(prefix="envcheck-image-") as folder:
        tree = Tree(Path(folder))
        with engine.exported(image) as stream:
            unpack(stream, tree, engine.name, progress)
        return describe(ImageFiles(tree, image), python, timeout)


def describe(source: ImageFiles, python: str | None, timeout: float) -> Inside:
    """Describe the environment of unpacked files."""
    from envcheck.probe.driver_files import LDCONFIG
    from envcheck.probe.environment import environment_commands, read_environment
    from envcheck.probe.notes import Notes
    from envcheck.probe.operating_system import GETCONF, UNAME, read_os
    from envcheck.probe.quiet import Quiet
    from envcheck.probe.target import choose_target

    notes = Notes()
    target = choose_target(source, python, notes)
    results = {each.name: source.run(each) for each in (LDCONFIG, UNAME, GETCONF)}
    commands = environment_commands(source, target, False, timeout, results[LDCONFIG.name])
    results |= {each.name: source.run(each) for each in commands}
    env = read_environment(source, target, results, notes)
    return Inside(env=env, os=read_os(Quiet(source), results), gaps=notes.gaps)
