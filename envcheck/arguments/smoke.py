"""What `envcheck smoke` takes, and what `doctor --smoke` shares with it."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from envcheck.arguments.base import (
    ENVIRONMENT,
    EXIT,
    FORMATS,
    judging,
    one_of,
    output,
    seconds,
    tables,
)

if TYPE_CHECKING:
    from collections.abc import Callable

DESCRIPTION = """\
Runs something small with every framework of the environment, stage by stage, in child processes:
copies both ways, products in each type that the GPU has units for, a convolution, and a training
step - model and batch to the GPU, forward, loss, backward, optimizer step - compared with the same
step on the CPU in float64. With several GPUs also copies between them and a distributed step over
all, through torchrun.

A stage that crashes or hangs is ended with everything it started, and judged like any other fact.
Takes seconds and less than 1.5 GB of each GPU's memory; nothing stays behind."""

END = f"""\
examples:
  envcheck smoke                                        everything on every GPU
  envcheck smoke --device cpu                           try it without a GPU
  envcheck smoke --framework torch --gpus 1             one framework on one GPU
  envcheck smoke --framework cuda                       the driver alone
  srun -N2 --ntasks-per-node=1 envcheck smoke --nnodes 2 --rdzv-backend c10d \\
    --rdzv-endpoint node1:29500                         over two machines

{EXIT}

{ENVIRONMENT}"""

FRAMEWORKS = ("torch", "jax", "tensorflow", "cuda")
LAUNCHER = {
    "--nnodes": ("N", "machines that take part, or MIN:MAX"),
    "--node-rank": ("N", "number of this machine among them"),
    "--rdzv-backend": ("NAME", "how they find each other: c10d, static, ..."),
    "--rdzv-endpoint": ("HOST:PORT", "where they find each other"),
    "--rdzv-id": ("ID", "name of the run, the same on all machines"),
    "--rdzv-conf": ("KEY=VALUE,...", "further settings of the backend"),
}
"""Arguments that are handed to torchrun as they are."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "--framework",
        type=_list_of(FRAMEWORKS),
        default=None,
        metavar="NAME,...",
        help="torch, jax, tensorflow, or cuda for the driver's library alone (default: every "
        "framework of the environment, cuda where there is none)",
    )
    parser.add_argument(
        "--gpus",
        type=_gpus,
        default=None,
        metavar="all|N,...",
        help="GPUs as the frameworks count them, which is after CUDA_VISIBLE_DEVICES "
        "(default: all)",
    )
    parser.add_argument(
        "--device",
        type=one_of(("cuda", "cpu")),
        choices=("cuda", "cpu"),
        default="cuda",
        metavar="DEVICE",
        help="cuda (default), or cpu for the same stages without a GPU",
    )
    parser.add_argument(
        "--timeout",
        dest="stage_timeout",
        type=seconds,
        default=None,
        metavar="S",
        help="seconds that one stage may take before it counts as hanging (default: 120)",
    )
    parser.add_argument(
        "--compile", action="store_true", help="also try torch.compile, which takes a compiler"
    )
    parser.add_argument(
        "--distributed",
        type=one_of(("auto", "off")),
        choices=("auto", "off"),
        default="auto",
        metavar="auto|off",
        help="auto (default): a distributed step over all GPUs where there are several, over two "
        "processes on the CPU",
    )
    parser.add_argument(
        "--nproc-per-node",
        type=_count,
        default=None,
        metavar="N",
        help="processes on this machine (default: one per GPU)",
    )
    for flag, (metavar, text) in LAUNCHER.items():
        parser.add_argument(
            flag, action=_Pass, dest="launcher", metavar=metavar, help=f"for torchrun: {text}"
        )
    parser.set_defaults(launcher=())
    parser.add_argument(
        "--python",
        metavar="PATH",
        help="interpreter, or folder of an environment, to run with"
        " (default: the active environment, else python3 on PATH, else envcheck's own)",
    )
    parser.add_argument(
        "--format",
        type=one_of(FORMATS),
        choices=FORMATS,
        default=None,
        metavar="FORMAT",
        help="text (default), json, markdown, junit or sarif",
    )
    parser.add_argument("--json", action="store_true", help="the same as --format json")
    output(parser, "the report")
    judging(parser)
    tables(parser)
    parser.add_argument("--no-color", action="store_true", help="never colour the text")
    parser.add_argument(
        "-v",
        "--verbose",
        action="store_true",
        help="list also what could not be read and the tables that were used",
    )


class _Pass(argparse.Action):
    """Keeps a flag with its value for torchrun."""

    def __call__(
        self,
        _parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        kept = getattr(namespace, self.dest) or ()
        setattr(namespace, self.dest, (*kept, f"{option_string}={values}"))


def _list_of(names: tuple[str, ...]) -> Callable[[str], tuple[str, ...]]:
    check = one_of(names)

    def split(text: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(check(each.strip()) for each in text.split(",")))

    return split


def _gpus(text: str) -> tuple[int, ...] | None:
    if text == "all":
        return None
    parts = [each.strip() for each in text.split(",")]
    if not all(each.isascii() and each.isdigit() for each in parts):
        msg = f"'{text}' is neither 'all' nor a list of numbers such as 0,1"
        raise argparse.ArgumentTypeError(msg)
    return tuple(dict.fromkeys(int(each) for each in parts))


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= 1024):
        msg = f"'{text}' is not a number of processes between 1 and 1024"
        raise argparse.ArgumentTypeError(msg)
    return int(text)
