"""The picture as metrics, for node_exporter's textfile collector."""

from __future__ import annotations

import datetime
from collections import Counter
from typing import TYPE_CHECKING

from envcheck.fleet import words
from envcheck.fleet.picture import VERDICTS
from envcheck.fleet.stack import part
from envcheck.report.foreign import clean

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from envcheck.fleet.model import Fleet, Node

Sample = tuple[dict[str, str], float]


def render(fleet: Fleet) -> str:
    """Render a picture in Prometheus's text format; every metric is a gauge."""
    verdicts = {each.name: each.count for each in fleet.verdicts}
    kinds: Counter[str] = Counter(each.kind for each in words.unjudged(fleet))
    metrics: tuple[tuple[str, str, Iterable[Sample]], ...] = (
        (
            "envcheck_fleet_hosts",
            "Hosts by verdict; those without a report by why there is none.",
            [
                *(({"verdict": each}, verdicts.get(each, 0)) for each in VERDICTS),
                *(({"verdict": each}, kinds[each]) for each in words.ABSENT),
            ],
        ),
        (
            "envcheck_fleet_damaged_reports",
            "Files that are no report.",
            [({}, len(fleet.damaged))],
        ),
        (
            "envcheck_fleet_stacks",
            "Different stacks.",
            [({}, len(fleet.groups))],
        ),
        (
            "envcheck_fleet_outliers",
            "Hosts whose stack is not the most frequent one of their GPUs.",
            [({}, sum(len(each.hosts) for each in words.outliers(fleet)))],
        ),
        (
            "envcheck_fleet_findings",
            "Hosts that have a finding.",
            [
                ({"id": each.id, "severity": each.severity}, len(each.hosts))
                for each in fleet.findings
            ],
        ),
        ("envcheck_host_verdict", "1 for the verdict of a host.", _verdicts(fleet)),
        ("envcheck_host_finding", "1 for each finding of a host.", _findings(fleet.nodes)),
        (
            "envcheck_host_drift_fields",
            "Fields in which a host differs from its lock.",
            [
                ({"host": each.name}, len(each.drift))
                for each in fleet.nodes
                if each.drift is not None
            ],
        ),
        ("envcheck_host_info", "1; the labels are what a host runs.", _info(fleet.nodes)),
        (
            "envcheck_host_report_timestamp_seconds",
            "When a host's report was taken, in seconds since 1970.",
            _times(fleet.nodes),
        ),
    )
    lines: list[str] = []
    for name, text, samples in metrics:
        lines += [f"# HELP {name} {text}", f"# TYPE {name} gauge"]
        lines += [_line(name, labels, value) for labels, value in samples]
    return "\n".join(lines) + "\n"


def _verdicts(fleet: Fleet) -> Iterator[Sample]:
    for node in fleet.nodes:
        yield {"host": node.name, "verdict": node.verdict}, 1
    for absent in words.unjudged(fleet):
        yield {"host": absent.name, "verdict": absent.kind}, 1


def _findings(nodes: Iterable[Node]) -> Iterator[Sample]:
    for node in nodes:
        # One host may have the same finding for several GPUs, and a series must be unique.
        for id, severity in dict.fromkeys((each.id, each.severity) for each in node.findings):
            yield {"host": node.name, "id": id, "severity": severity}, 1


def _info(nodes: Iterable[Node]) -> Iterator[Sample]:
    for node in nodes:
        yield (
            {
                "host": node.name,
                "system": part(node.stack, "system"),
                "gpus": part(node.stack, "GPUs"),
                "driver": part(node.stack, "driver"),
                "cuda": part(node.stack, "CUDA of the driver"),
                "torch": part(node.stack, "torch"),
                "python": part(node.stack, "Python"),
            },
            1,
        )


def _times(nodes: Iterable[Node]) -> Iterator[Sample]:
    for node in nodes:
        try:
            text = (node.taken_at or "").replace("Z", "+00:00")
            yield {"host": node.name}, datetime.datetime.fromisoformat(text).timestamp()
        except (ValueError, OverflowError, OSError):
            continue


def _line(name: str, labels: dict[str, str], value: float) -> str:
    inside = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
    return f"{name}{{{inside}}} {int(value)}" if inside else f"{name} {int(value)}"


def _escaped(text: str) -> str:
    text = clean(text, lines=True)
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
