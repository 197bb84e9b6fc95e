"""What `envcheck image` takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.arguments.base import FORMATS, Page, judging, one_of, output, seconds, tables

if TYPE_CHECKING:
    import argparse

DESCRIPTION = """\
Builds what 'envcheck emit dockerfile' wrote, or any other Dockerfile, and checks an image in a
container on this machine, with its GPUs. 'envcheck doctor --image REF' judges an image without
running it. Used is docker or podman, whichever answers. 'envcheck image ACTION --help' is about one
action."""

_EXIT = """\
exit status:
  0    built; checked, and no finding at or above --fail-on
  1    the build failed; at least one such finding
  2    the command line cannot be followed
  3    no engine can be used, or the image cannot be had
  4    a table or a lock is damaged
  130  interrupted"""

END = f"""\
examples:
  envcheck image build image/
  envcheck image check image
  envcheck image check registry.example/train:7 --smoke

{_EXIT}

environment:
  DOCKER_HOST, DOCKER_CONTEXT, DOCKER_CONFIG, CONTAINER_HOST
                   which engine is talked to, as its own command reads them
  XDG_STATE_HOME   where logs are kept: envcheck/ below it, else below ~/.local/state"""

_BUILD = """\
Runs the engine's own build command with BuildKit and shows what it prints on standard error.
Everything is kept in a log. When the build fails, the last lines say at which step and why, in the
engine's words."""

_BUILD_END = f"""\
examples:
  envcheck image build image/ -t train:7
  envcheck image build image/ --build-arg MAX_JOBS=2
  envcheck image build image/ --json | python3 -m json.tool

{_EXIT}"""

_CHECK = """\
Starts a container of the image with the GPUs of this machine, in the way that this engine is set up
for (a CDI device, NVIDIA's runtime, or --gpus), and runs 'envcheck doctor' in it: the one of the
image where that is of this release, else this one, copied into the container. The container is
removed afterwards. Where the engine refuses GPUs, its words become a finding, and the image's
environment is judged with the driver of this machine."""

_CHECK_END = f"""\
examples:
  envcheck image check train:7
  envcheck image check train:7 --smoke
  envcheck image check train:7 --against envcheck.lock
  envcheck image check train:7 --format markdown -o image.md

{_EXIT}"""

ACTIONS = {
    "build": Page("build a Dockerfile", _BUILD, _BUILD_END),
    "check": Page("run the doctor in a container of an image", _CHECK, _CHECK_END),
}
GPUS = ("auto", "all", "none")
ENGINES = ("docker", "podman")


def add_action_arguments(made: dict[str, argparse.ArgumentParser]) -> None:
    """Add the arguments of each action."""
    _build(made["build"])
    _check(made["check"])
    for each in made.values():
        each.add_argument(
            "--engine",
            type=one_of(ENGINES),
            choices=ENGINES,
            default=None,
            metavar="NAME",
            help="docker or podman (default: the first that answers)",
        )


def _build(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", help="folder with a Dockerfile")
    parser.add_argument(
        "-t",
        "--tag",
        metavar="TAG",
        help="name of the image (default: the folder's name)",
    )
    parser.add_argument(
        "--build-arg",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="value of an ARG of the Dockerfile; repeatable",
    )
    parser.add_argument("--log", metavar="FILE", help="where to keep the log")
    parser.add_argument("--json", action="store_true", help="print what came of it as JSON")


def _check(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("image", metavar="REF", help="name or id of an image; fetched when absent")
    parser.add_argument(
        "--gpus",
        type=one_of(GPUS),
        choices=GPUS,
        default="auto",
        metavar="WHICH",
        help="ask the engine for GPUs: auto (default: where this machine has one, or the engine is"
        " set up for them), all, or none",
    )
    parser.add_argument(
        "--smoke", action="store_true", help="also run a tiny training step in the container"
    )
    parser.add_argument(
        "--against",
        metavar="LOCK",
        help="also compare with a lock of 'envcheck plan'; drift makes the exit status 1",
    )
    parser.add_argument(
        "--python", metavar="PATH", help="interpreter or environment in the image to judge"
    )
    parser.add_argument(
        "--timeout",
        type=seconds,
        default=10.0,
        metavar="S",
        help="seconds that each child process in the container gets (default: 10)",
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
    parser.add_argument(
        "--require-gpu", action="store_true", help="a container without a GPU is an error"
    )
    tables(parser)
    parser.add_argument("--no-color", action="store_true", help="never colour the text")
    parser.add_argument(
        "-v",
        "--verbose",
        action="store_true",
        help="list also what could not be read and the tables that were used",
    )
