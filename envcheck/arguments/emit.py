"""What `envcheck emit` takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.arguments.base import Page, one_of, tables

if TYPE_CHECKING:
    import argparse

PROFILES = ("runtime", "devel", "ngc")
IPC = ("private", "shareable", "host")

DESCRIPTION = """\
Writes files that reproduce the stack of a lock, the same bytes every time. What they pin is what
the plan pinned; what images start from stands in the tables. 'envcheck emit ACTION --help' is about
one action."""

EMIT_EXIT = """\
exit status:
  0    the files are written, or were there already
  2    the command line cannot be followed, or a file that differs would be overwritten
  3    without a lock: this machine could not be read
  4    the lock or a table is damaged; the field is named
  5    without a lock: no plan fits this machine"""

END = f"""\
examples:
  envcheck plan -o envcheck.lock
  envcheck emit dockerfile -o image
  envcheck emit compose --gpus 2 --shm-size 16g -o image
  envcheck emit requirements -o .

{EMIT_EXIT}"""

_IMAGE = """\
Profiles: 'runtime' puts wheels, which bring their own CUDA, on a plain system; 'devel' starts from
NVIDIA's CUDA image with the toolkit that the framework was built with; 'ngc' starts from NVIDIA's
image of the framework and keeps the builds in it. Packages that come as source, such as flash-attn,
are compiled in a stage of their own. envcheck itself goes into the image, as a wheel beside the
Dockerfile."""

_DOCKERFILE_END = f"""\
examples:
  envcheck emit dockerfile -o image
  envcheck emit dockerfile --lock train.lock --profile devel --with nsys,nvitop -o image
  envcheck emit dockerfile --build-extensions flash-attn -o image
  envcheck emit dockerfile --base registry.example.org/base:24.04 -o image
  docker build --tag train image

{EMIT_EXIT}"""


def _end(*examples: str) -> str:
    return "\n".join(["examples:", *(f"  {line}" for line in examples), "", EMIT_EXIT])


ACTIONS = {
    "dockerfile": Page("write a Dockerfile and its context", _IMAGE, _DOCKERFILE_END),
    "compose": Page(
        "write a compose.yaml with its image",
        "A service with GPUs, shared memory and the image of 'emit dockerfile'. " + _IMAGE,
        _end(
            "envcheck emit compose -o image", "envcheck emit compose --gpus 1 --ipc host -o image"
        ),
    ),
    "devcontainer": Page(
        "write a .devcontainer with its image",
        "A folder that editors open in a container with GPUs. " + _IMAGE,
        _end("envcheck emit devcontainer --profile devel -o ."),
    ),
    "requirements": Page(
        "write a requirements.txt",
        "What pip installs, each build named by its local tag and its index. What has to be"
        " compiled against the rest stands in a second file.",
        _end("envcheck emit requirements -o .", "pip install -r requirements.txt"),
    ),
    "conda": Page(
        "write an environment.yml",
        "conda makes the environment and pip fills it with the wheels that the plan judged; conda's"
        " own builds of the frameworks are others.",
        _end("envcheck emit conda -o .", "conda env create --file environment.yml"),
    ),
}

_IN_IMAGES = ("dockerfile", "compose", "devcontainer")
_IN_ENVIRONMENTS = ("requirements", "conda")


def add_action_arguments(made: dict[str, argparse.ArgumentParser]) -> None:
    """Add the arguments of each action."""
    for name in _IN_IMAGES:
        _image(made[name])
    for name in _IN_ENVIRONMENTS:
        _extensions(made[name])
    for each in made.values():
        _common(each)


def _common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--lock",
        metavar="FILE",
        help="what envcheck plan wrote (default: envcheck.lock; if there is none, a plan for this"
        " machine)",
    )
    parser.add_argument(
        "-o", "--output", metavar="DIR", required=True, help="folder to write to, made if need be"
    )
    parser.add_argument(
        "--force", action="store_true", help="overwrite files whose content is another"
    )
    tables(parser)


def _image(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--profile",
        type=one_of(PROFILES),
        choices=PROFILES,
        default="runtime",
        metavar="KIND",
        help="runtime (default), devel or ngc",
    )
    parser.add_argument(
        "--base",
        metavar="IMAGE",
        help="start from this image, with its tag or digest, instead of the one of the tables",
    )
    parser.add_argument(
        "--with",
        dest="tools",
        type=_names,
        action="append",
        default=[],
        metavar="TOOL,...",
        help="put tools in: nsys, dcgm, nvitop",
    )
    _extensions(parser)
    parser.add_argument(
        "--gpus", default="all", metavar="N", help="GPUs that a container gets (default: all)"
    )
    parser.add_argument(
        "--shm-size", default="8g", metavar="SIZE", help="its shared memory (default: 8g)"
    )
    parser.add_argument(
        "--ipc",
        type=one_of(IPC),
        choices=IPC,
        default="private",
        metavar="WHOSE",
        help="whose shared memory it uses: private (default), shareable, host",
    )


def _extensions(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--build-extensions",
        dest="extensions",
        type=_names,
        action="append",
        default=[],
        metavar="NAME,...",
        help="compile these packages of the lock; flash-attn and others without wheels always are",
    )


def _names(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())
