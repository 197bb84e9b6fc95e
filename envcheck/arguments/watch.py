"""What `envcheck watch` takes."""

from __future__ import annotations

import argparse

from envcheck.arguments.base import EXIT, one_of, output, seconds, tables

DESCRIPTION = """\
Samples the GPUs and the host for a while and says what the time went into: kernels too small, data
too late, links too slow, or a GPU that works near its limit. Utilisation, which nvidia-smi shows,
only says that some kernel ran; this looks at how much of the GPU it used.

With a COMMAND after '--' it runs that and watches until it ends. Its exit status is the command's,
signals are passed on, and nothing is added to what it prints: the report goes to -o, or to standard
error once the command has ended."""

END = f"""\
examples:
  envcheck watch                                 the machine, for 10 seconds
  envcheck watch --pid 4711 --seconds 60
  envcheck watch -- python train.py
  envcheck watch -o watch.txt --plot watch.png -- torchrun --nproc-per-node 8 train.py
  envcheck watch --record watch.jsonl -- python train.py
  envcheck watch --replay watch.jsonl            judge what was recorded, on any machine

{EXIT}
  With a COMMAND: the command's own; 128 and the number of the signal that ended it; 126 or 127 when
  it could not be started."""

INTERVALS = (0.02, 10.0)
"""Shortest and longest time between samples, in seconds."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("--pid", type=_pid, metavar="PID", help="watch a process and its children")
    parser.add_argument(
        "--seconds",
        type=seconds,
        default=None,
        metavar="N",
        help="how long (default: 10; a COMMAND until it ends). Ctrl-C ends it earlier",
    )
    parser.add_argument(
        "--interval",
        type=_interval,
        default=0.1,
        metavar="S",
        help="seconds between samples, 0.02 to 10 (default: 0.1)",
    )
    parser.add_argument(
        "--gpus", type=_indices, default=(), metavar="N,...", help="these GPUs (default: all)"
    )
    parser.add_argument("--json", action="store_true", help="give the report as JSON")
    parser.add_argument("--csv", metavar="FILE", help="write every sample as a table")
    parser.add_argument(
        "--plot", metavar="FILE", help="draw the timeline as PNG (needs envcheck[plot])"
    )
    parser.add_argument("--record", metavar="FILE", help="keep the samples, for --replay")
    parser.add_argument("--replay", metavar="FILE", help="judge recorded samples instead")
    output(parser, "the report")
    parser.add_argument(
        "--fail-on",
        type=one_of(("warning", "error", "never")),
        choices=("warning", "error", "never"),
        default="error",
        metavar="LEVEL",
        help="mildest severity that makes the exit status 1: warning, error (default) or never",
    )
    tables(parser)
    parser.add_argument("--no-color", action="store_true", help="never colour the text")
    parser.add_argument("-v", "--verbose", action="store_true", help="list the tables too")
    parser.add_argument(
        "watched", nargs="*", metavar="COMMAND", help="what to run and watch, after '--'"
    )


def _pid(text: str) -> int:
    if text.isdecimal() and 0 < int(text) < 1 << 31:
        return int(text)
    msg = f"'{text}' is no process number"
    raise argparse.ArgumentTypeError(msg)


def _interval(text: str) -> float:
    value = seconds(text)
    if not INTERVALS[0] <= value <= INTERVALS[1]:
        msg = f"'{text}' is not between {INTERVALS[0]:g} and {INTERVALS[1]:g} seconds"
        raise argparse.ArgumentTypeError(msg)
    return value


def _indices(text: str) -> tuple[int, ...]:
    parts = [each.strip() for each in text.split(",")]
    if all(each.isdecimal() and len(each) < 5 for each in parts):
        return tuple(dict.fromkeys(map(int, parts)))
    msg = f"'{text}' is no list of GPU numbers such as 0,1"
    raise argparse.ArgumentTypeError(msg)
