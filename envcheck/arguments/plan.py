"""What `envcheck plan` takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.arguments.base import EXIT, one_of, seconds, tables

if TYPE_CHECKING:
    import argparse

PREFERENCES = ("newest", "lts", "oldest-driver")

DESCRIPTION = """\
Goes through what the tables know was published, from the best on, puts each candidate into a
machine like the target and lets the doctor's own rules judge it. The first that they accept is the
plan: versions, commands for pip, uv and conda, why better ones were refused, and what a newer
driver or Python would unlock. It installs nothing and needs no network.

The target is this machine with its active environment's Python, a recorded one, a pasted report,
or a line of text: GPUs by name ('8xH100', '4090') or compute capability, 'driver 570', 'cuda 12.4'
(what nvidia-smi says), 'python 3.12', an operating system, 'aarch64', 'cpu'. What it leaves out the
plan is free to choose.

preferences:
  newest         the newest framework; of it, the build that a plain install gives
  lts            releases that another minor release has followed, on the CUDA of the newest
                 long-term driver branch
  oldest-driver  what the oldest driver runs, then the newest of that"""

END = f"""\
examples:
  envcheck plan
  envcheck plan --target "RTX 5090, driver 570, python 3.12"
  envcheck plan --want "torch>=2.6" --want torchvision --want transformers
  envcheck plan --want torch --want "jax[cuda12]" --prefer lts -o envcheck.lock
  envcheck plan --machine recorded-node --json

{EXIT}"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "--want",
        action="append",
        default=[],
        metavar="REQUIREMENT",
        help="a framework or library, as pip writes it; repeatable (default: torch)",
    )
    parser.add_argument("--target", metavar="TEXT", help="the machine, in words")
    parser.add_argument(
        "--machine", metavar="DIR", help="plan for a recorded machine instead of this one"
    )
    parser.add_argument(
        "--report", metavar="FILE", help="plan for the machine of a pasted report ('-': stdin)"
    )
    parser.add_argument("--python", metavar="3.N", help="the Python to plan for")
    parser.add_argument(
        "--os", metavar="NAME", help="the operating system to plan for, such as ubuntu24.04"
    )
    parser.add_argument(
        "--prefer",
        type=one_of(PREFERENCES),
        choices=PREFERENCES,
        default="newest",
        metavar="WHAT",
        help="newest (default), lts or oldest-driver",
    )
    parser.add_argument(
        "-o",
        "--output",
        dest="lock",
        metavar="FILE",
        help="write the lock, such as envcheck.lock, as a whole or not at all"
        " ('-': on standard output, instead of the plan)",
    )
    parser.add_argument("--json", action="store_true", help="print the plan as JSON")
    tables(parser)
    parser.add_argument(
        "--timeout",
        type=seconds,
        default=10.0,
        metavar="S",
        help="seconds that each child process gets (default: 10)",
    )
