"""What is kept of each report, and the picture that all of them make."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from envcheck.model.base import model

if TYPE_CHECKING:
    from envcheck.model.finding import Drift, Fix, Severity, VerdictName

SCHEMA_VERSION = "1"

AbsentKind = Literal["unreachable", "failed", "not-asked"]


@model
class Part:
    """A part of a stack and its version."""

    part: str
    version: str


@model
class Mark:
    """A finding of one report, as far as a picture of many needs it."""

    id: str
    severity: Severity
    component: str
    title: str


@model
class Node:
    """One host's report, reduced."""

    name: str
    verdict: VerdictName
    exit_code: int
    taken_at: str | None = None
    hardware: str = ""
    """Its GPUs as the bus shows them, also to a host whose driver does not."""
    stack: tuple[Part, ...] = ()
    findings: tuple[Mark, ...] = ()
    unknown: tuple[str, ...] = ()
    """Checks that could not tell."""
    drift: tuple[Drift, ...] | None = None


@model
class Damaged:
    """A file that is no report."""

    path: str
    reason: str


@model
class Absent:
    """A host without a judgement."""

    name: str
    kind: AbsentKind
    reason: str
    report: bool = False
    """An older report of it is there, and counted."""


@model
class Difference:
    """A part in which a stack differs from the usual one of its GPUs."""

    part: str
    usual: str
    here: str


@model
class Count:
    """How often something is there."""

    name: str
    count: int


@model
class Group:
    """Hosts whose stacks are identical."""

    gpus: str
    usual: bool
    """It is the largest group with such GPUs, and the others with them are compared with it."""
    stack: tuple[Part, ...]
    differences: tuple[Difference, ...] = ()
    verdicts: tuple[Count, ...] = ()
    hosts: tuple[str, ...] = ()


@model
class Tally:
    """A finding and the hosts that have it."""

    id: str
    severity: Severity
    """The gravest that any host has it with."""
    component: str
    title: str
    """Of most of the hosts."""
    titles: int
    """How many different titles there are."""
    fix: tuple[Fix, ...]
    """Of the first host with that title."""
    hosts: tuple[str, ...]


@model
class Open:
    """A check that could not tell on some hosts."""

    check: str
    hosts: tuple[str, ...]


@model
class Drifted:
    """A field that differs from the lock in the same way on some hosts."""

    field: str
    locked: str
    found: str
    hosts: tuple[str, ...]


@model
class Cell:
    """How many hosts have a driver and a build of PyTorch together."""

    driver: str
    """`580.95.05 (CUDA 13.0)`."""
    torch: str
    """`2.8.0+cu128 (CUDA 12.8)`."""
    hosts: int


@model
class Fleet:
    """The picture."""

    schema_version: str = SCHEMA_VERSION
    envcheck: str
    exit_code: int = 0
    fail_on: Literal["warning", "error", "never"] = "error"
    lock: str | None = None
    """The lock that drift is against; None when that is what the reports say themselves."""
    oldest: str | None = None
    newest: str | None = None
    """When the first and the last report were taken."""
    verdicts: tuple[Count, ...] = ()
    groups: tuple[Group, ...] = ()
    """Outliers first, the smallest and of those the gravest first; then the usual stacks."""
    findings: tuple[Tally, ...] = ()
    unknown: tuple[Open, ...] = ()
    drift: tuple[Drifted, ...] | None = None
    """None when no report was compared with a lock."""
    matrix: tuple[Cell, ...] = ()
    absent: tuple[Absent, ...] = ()
    damaged: tuple[Damaged, ...] = ()
    nodes: tuple[Node, ...] = ()
    """All hosts, the gravest first."""
