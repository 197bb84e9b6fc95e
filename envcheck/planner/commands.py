"""The commands that make a stack's environment, for each installer."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from envcheck.rules.install import NEW_ENVIRONMENT

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from envcheck.model.plan import Pin, Stack

CONDA_CHANNEL = "conda-forge"
BUILD_TOOLS = ("setuptools", "wheel", "packaging", "ninja", "psutil")
"""What torch extensions import when they are built."""


def install_commands(
    stack: Stack, built: Collection[str] = ()
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Installer -> commands that make a new environment and put the stack into it.

    conda makes the environment and pip fills it: the wheels are what was judged, and conda's own
    builds are others.

    Args:
        stack: what to install.
        built: names of packages that are built from source, after everything else.
    """
    python, place = f"python{stack.python}", NEW_ENVIRONMENT
    name = place.rpartition("/")[2]
    pip, uv, conda = (
        f"{place}/bin/python -m pip install",
        f"uv pip install --python {place}/bin/python",
        f"conda run --name {name} python -m pip install",
    )
    groups = _groups(stack.pins, built)
    return (
        ("pip", (f"{python} -m venv {place}", *_lines(pip, groups))),
        ("uv", (f"uv venv --python {stack.python} {place}", *_lines(uv, groups))),
        (
            "conda",
            (
                f"conda create --yes --name {name} --channel {CONDA_CHANNEL} python={stack.python}",
                *_lines(conda, groups),
            ),
        ),
    )


def requirement(pin: Pin) -> str:
    """A pin as a requirement line, `jax[cuda12]==0.7.1`."""
    extras = f"[{','.join(pin.extras)}]" if pin.extras else ""
    return f"{pin.name}{extras}=={pin.version}"


Group = tuple[str, tuple["Pin", ...]]


def _groups(pins: Sequence[Pin], built: Collection[str]) -> list[Group]:
    """Options -> pins of one command, in the order of installing."""
    wheels = [pin for pin in pins if pin.name not in built]
    found: list[Group] = []
    for index, run in groupby(wheels, key=lambda pin: pin.index):
        options = f" --index-url {index}" if index else ""
        # What stands is named again, so that no later command may replace it by another build.
        kept = [pin for _, group in found for pin in group if pin.index and not index]
        found.append((options, (*kept, *run)))
    source = tuple(pin for pin in pins if pin.name in built)
    if source:
        # A build that is to see the installed torch does not get its tools from the installer.
        found.append((f" {' '.join(BUILD_TOOLS)}", ()))
        found.append((" --no-build-isolation", source))
    return found


def _lines(command: str, groups: Sequence[Group]) -> tuple[str, ...]:
    return tuple(
        " ".join([f"{command}{options}", *(_quoted(requirement(pin)) for pin in pins)])
        for options, pins in groups
    )


def _quoted(text: str) -> str:
    """A requirement as a shell word; brackets mean something to some shells."""
    return f'"{text}"' if "[" in text else text
