"""What envcheck says: findings, unknowns, and the report that holds them."""

from __future__ import annotations

from typing import Literal

from envcheck.model.base import model
from envcheck.model.snapshot import Snapshot

Severity = Literal["error", "warning", "info"]
VerdictName = Literal["ok", "warning", "error", "unknown"]
UnknownKind = Literal["missing", "newer-than-table", "crashed"]

SCHEMA_VERSION = "1"


@model
class Evidence:
    """One fact that a finding rests on, and where it was read."""

    label: str
    value: str
    via: str = ""


@model
class Fix:
    """One way out: a sentence, and commands to type (none when there is nothing to type)."""

    title: str
    commands: tuple[str, ...] = ()


@model
class Citation:
    """Where a requirement comes from."""

    title: str
    url: str = ""
    retrieved: str = ""


@model
class Finding:
    """One cause that a person can act on; `id` is an id of the public catalogue."""

    id: str
    severity: Severity
    component: str
    """driver, gpu, cuda, cudnn, nccl, framework, container, smoke, activity."""
    subject: str
    """What it is about: `torch 2.8.0+cu128`, `GPU 1: NVIDIA H200`, `driver 470.57.02`."""
    title: str
    found: str
    needed: str
    why: str
    fix: tuple[Fix, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    sources: tuple[Citation, ...] = ()
    consequences: tuple[str, ...] = ()
    """Ids of findings that follow from this one and were folded under it."""


@model
class Unknown:
    """A check that could not answer.

    `kind` is `missing` (a fact could not be read), `newer-than-table` (a version beyond the tables,
    or of a build that no table row describes) or `crashed` (the check itself failed).
    """

    check: str
    reason: str
    kind: UnknownKind = "missing"


@model
class Drift:
    """A field of a lock that the machine or the environment no longer agrees with."""

    field: str
    """`python`, `driver`, `torch`, `torch.cudnn`."""
    locked: str
    found: str
    """`not installed` for a package that is gone."""


@model
class Report:
    """The judgement of one snapshot."""

    verdict: VerdictName
    findings: tuple[Finding, ...]
    ask: tuple[Fix, ...]
    unknown: tuple[Unknown, ...]
    snapshot: Snapshot
    tables: tuple[tuple[str, str], ...]
    """(table, date) of each table that was read."""
    notes: tuple[str, ...] = ()
    """What a reader should know of the tables: that they are old, or older than the stack."""
    drift: tuple[Drift, ...] | None = None
    """Where this differs from a lock; None when it was compared with none."""
