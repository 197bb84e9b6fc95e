"""What the targets can be asked for besides the lock."""

from __future__ import annotations

from typing import Literal

from envcheck.model.base import model

Profile = Literal["runtime", "devel", "ngc"]
Ipc = Literal["private", "shareable", "host"]

PROFILES: tuple[Profile, ...] = ("runtime", "devel", "ngc")
TOOLS = ("nsys", "dcgm", "nvitop")
IPC: tuple[Ipc, ...] = ("private", "shareable", "host")


@model
class Options:
    """Options of all targets; each reads those that concern it.

    Attributes:
        profile: which kind of image: wheels on a plain system, with the CUDA toolkit, or NVIDIA's.
        base: image to start from instead of the one that the tables give.
        tools: of `TOOLS`, to put into the image.
        extensions: packages of the lock to compile in the image.
        shm_size: shared memory of containers, `8g`.
        ipc: whose shared memory containers use.
        gpus: GPUs that containers get, `all` or a number.
        hosts: names of an inventory.
        driver_version: driver to install instead of the one of the lock.
        image: image that the nodes of a cluster pull, with a tag or a digest.
        nodes: how many nodes of a cluster are tried at once.
    """

    profile: Profile = "runtime"
    base: str | None = None
    tools: tuple[str, ...] = ()
    extensions: tuple[str, ...] = ()
    shm_size: str = "8g"
    ipc: Ipc = "private"
    gpus: str = "all"
    hosts: tuple[str, ...] = ()
    driver_version: str | None = None
    image: str | None = None
    nodes: int = 1
