"""A stack that is wanted, the one that was planned, and why others were refused."""

from __future__ import annotations

from typing import Literal

from envcheck.model.base import model

Preference = Literal["newest", "lts", "oldest-driver"]
LOCK_SCHEMA = 1


@model
class Target:
    """The machine that a stack is for."""

    gpus: tuple[str, ...] = ()
    """Product names as NVML gives them; empty when only capabilities are known."""
    arches: tuple[str, ...] = ()
    """Compute capabilities, `9.0`; empty for a machine without a GPU."""
    driver: str | None = None
    """Release of the installed driver; None when the plan is free to choose one."""
    platform: str = "linux_x86_64"
    """`linux_x86_64` or `linux_aarch64`."""
    os: str | None = None
    """Distribution and release, as the distro table spells them: `ubuntu24.04`."""
    python: str | None = None
    """`3.12`; None when the plan is free to choose one."""
    forward_compat: bool | None = None
    """Whether cuda-compat may be used on these GPUs (data-center parts)."""


@model
class Request:
    """What was asked for."""

    want: tuple[str, ...] = ()
    """Requirements as pip writes them: `torch>=2.6`, `transformers`."""
    target: Target = Target()
    prefer: Preference = "newest"


@model
class Pin:
    """One package of exactly one version."""

    name: str
    version: str
    """With its local tag where the wheel has one: `2.8.0+cu128`."""
    index: str | None = None
    """Framework's own index that carries this build; None for the configured package index."""
    extras: tuple[str, ...] = ()


@model
class PlannedFramework:
    """A framework of the stack and what its build brings."""

    name: str
    """torch, tensorflow or jax."""
    version: str
    """Public version, without local tag."""
    variant: str | None = None
    """`cu128`, `cpu`; None where builds have no variants."""
    cuda: str | None = None
    """CUDA release of the build, `12.8`; None for a CPU build."""
    cudnn: str | None = None
    nccl: str | None = None
    triton: str | None = None


@model
class Stack:
    """Everything that one environment holds, exactly."""

    frameworks: tuple[PlannedFramework, ...]
    pins: tuple[Pin, ...]
    """Frameworks, companions and libraries, in the order in which they are installed."""
    python: str
    """`3.12`."""
    platform: str
    os: str | None = None
    min_driver: str | None = None
    """Oldest Linux driver that runs it on the target; None for a CPU stack."""
    driver_branch: str | None = None
    """Supported branch to install where a driver is installed afresh: `580`."""
    driver_module: Literal["open", "proprietary"] | None = None
    """Flavour of the kernel module that the target's GPUs need; None where either will do."""


@model
class Rejection:
    """A candidate that was refused, and the findings that refused it."""

    stack: str
    """In words: `torch 2.15.0+cu132, Python 3.12`."""
    findings: tuple[str, ...] = ()
    reason: str = ""


@model
class Unlock:
    """A change of the machine, and what it would make possible."""

    change: str
    """`driver 580 or newer`."""
    gives: str
    """`torch 2.15.0+cu132`."""


@model
class Plan:
    """The answer to a request."""

    request: Request
    stack: Stack | None = None
    """None when no candidate was accepted."""
    install: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Installer (pip, uv, conda) -> its commands."""
    notes: tuple[str, ...] = ()
    """What has to be known besides: what is built from source, what no table could judge."""
    rejections: tuple[Rejection, ...] = ()
    unlocks: tuple[Unlock, ...] = ()
    tables: tuple[tuple[str, str], ...] = ()
    """(table, date) of each table that was read."""


@model
class Lock:
    """What `envcheck plan -o` writes and the emitters read: a stack and what it was made for."""

    schema: int = LOCK_SCHEMA
    envcheck: str
    """Version that made it."""
    target: Target
    want: tuple[str, ...]
    stack: Stack
    tables: tuple[tuple[str, str], ...] = ()
