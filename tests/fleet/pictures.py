"""A picture that holds everything a picture can hold, some of it hostile."""

from __future__ import annotations

from envcheck.fleet.model import Absent, Damaged, Fleet, Mark, Node, Part
from envcheck.fleet.picture import Collection
from envcheck.model.finding import Drift, Severity, VerdictName

HOSTILE = "<script>alert('x')</script>\"&|`\n\x1b[31m\u202e{{ 7*7 }}"
"""Opens tags, ends attributes and cells, repaints a terminal, turns text round, is a template."""


def node(
    name: str,
    *findings: tuple[str, Severity],
    driver: str = "580.95.05, open",
    verdict: VerdictName = "ok",
    drift: tuple[Drift, ...] | None = None,
) -> Node:
    """A host."""
    return Node(
        name=name,
        verdict=verdict,
        exit_code=0,
        taken_at="2026-12-01T03:01:07Z",
        hardware="8 x 10de:2335",
        stack=tuple(
            Part(part=part, version=version)
            for part, version in (
                ("system", "ubuntu 24.04 x86_64"),
                ("GPUs", "8 x NVIDIA H200"),
                ("driver", driver),
                ("CUDA of the driver", "13.0"),
                ("Python", "3.12"),
                ("torch", "2.9.0+cu130 (CUDA 13.0)"),
            )
        ),
        findings=tuple(
            Mark(id=id, severity=severity, component="driver", title=f"Title of {id}")
            for id, severity in findings
        ),
        unknown=("gpu-throttled",) if verdict == "unknown" else (),
        drift=drift,
    )


def full(hostile: str = HOSTILE) -> Fleet:
    """Every section of a picture has something in it."""
    collection = Collection()
    fix = [{"title": f"Do {hostile}", "commands": [f"echo {hostile}", "reboot"]}]
    drift = Drift(field="driver", locked=hostile, found="580.95.05")
    for each in (
        *(node(f"n{at}") for at in range(1, 9)),
        node("sick", ("driver-too-old", "error"), driver="470.57.02, proprietary", verdict="error"),
        node("warm", ("gpu-throttled", "warning"), ("gpu-xid", "info"), verdict="warning"),
        node("dark", verdict="unknown", drift=()),
        node(f"evil{hostile}", (f"id{hostile}", "error"), driver=hostile, verdict="error"),
        node("drifted", drift=(drift,)),
    ):
        collection.add(each, dict.fromkeys(each.findings, fix))
    collection.add_absent(Absent(name="gone", kind="unreachable", reason=f"No route {hostile}"))
    collection.add_absent(Absent(name="n1", kind="failed", reason="no Python", report=True))
    collection.add_damaged(Damaged(path=f"reports/{hostile}.json", reason="empty"))
    return collection.picture(lock=f"stack{hostile}.lock")
