"""What `envcheck emit` takes."""

from __future__ import annotations

import argparse

from envcheck.arguments.base import Page, one_of, tables

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
    "ansible": Page(
        "write a playbook with everything that it needs",
        "A folder for 'ansible-playbook site.yml': driver, container toolkit and Python environment"
        " of the lock on every host, then envcheck itself, which ends the play where something is"
        " not as planned. The collection and wheels of envcheck are in it, for hosts without a way"
        " to the outside.",
        _end(
            "envcheck emit ansible --inventory gpu01,gpu02 -o fleet",
            "envcheck emit ansible --driver-version 580.95.05 -o fleet",
            "ansible-playbook site.yml --check --diff          in that folder",
        ),
    ),
    "kubernetes": Page(
        "write manifests that judge every node of a cluster",
        "A DaemonSet whose pods are ready while their nodes are in order and which takes no GPU"
        " from anybody, a Job that runs a tiny training step on nodes, and a ConfigMap with the"
        " lock.",
        _end(
            "envcheck emit kubernetes --image registry.example.org/train:1 -o cluster",
            "kubectl apply -f cluster/configmap.yaml -f cluster/daemonset.yaml",
        ),
    ),
    "slurm": Page(
        "write the health check and the prologue of Slurm's nodes",
        "The health check drains a node with findings, the reason says which, and resumes it once"
        " they are gone; the prologue keeps jobs with GPUs off such a node.",
        _end("envcheck emit slurm -o slurm"),
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
    _fleet(made["ansible"])
    _cluster(made["kubernetes"])
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


def _fleet(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--inventory",
        dest="hosts",
        type=_names,
        action="append",
        default=[],
        metavar="HOST,...",
        help="hosts, or ranges such as gpu[01:16] (default: a skeleton to fill in)",
    )
    parser.add_argument(
        "--driver-version",
        metavar="V",
        help="driver to install, 580.95.05, or a branch, 580 (default: the driver of the lock's"
        " target, else the newest of its branch)",
    )


def _cluster(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--image",
        metavar="IMAGE",
        required=True,
        help="image of 'emit dockerfile' where nodes pull it, with its tag or digest",
    )
    parser.add_argument(
        "--nodes",
        type=_number,
        default=1,
        metavar="N",
        help="nodes that the Job tries, each with a pod of its own (default: 1)",
    )
    parser.add_argument(
        "--gpus", default="all", metavar="N", help="GPUs that a pod of the Job gets (default: 1)"
    )
    parser.add_argument(
        "--shm-size", default="8g", metavar="SIZE", help="its shared memory (default: 8g)"
    )


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= 10_000):
        msg = f"'{text}' is not a number between 1 and 10000"
        raise argparse.ArgumentTypeError(msg)
    return int(text)


def _names(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())
