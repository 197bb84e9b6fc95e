"""Phrases that several formats of the picture share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.errors import RecordingError, UndeterminedError
from envcheck.fleet.stack import NONE
from envcheck.report.foreign import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from envcheck.fleet.model import Absent, Fleet, Group, Tally

SHOWN = 6
"""Host names of a list that a line shows."""


def hosts(count: int) -> str:
    """`1 host`, `12 hosts`."""
    return f"{count} host" if count == 1 else f"{count} hosts"


def equipped(group: Group) -> str:
    """`3 hosts with 8 x NVIDIA H200`."""
    gpus = "without a GPU" if group.gpus == NONE else f"with {one_line(group.gpus)}"
    return f"{hosts(len(group.hosts))} {gpus}"


def listed(names: Sequence[str], most: int | None = SHOWN) -> str:
    """Host names; of many the first ones, and how many more there are."""
    shown = [one_line(each) for each in (names if most is None else names[:most])]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def headline(fleet: Fleet) -> str:
    """`12 hosts judged: 3 error, 9 ok; 1 not judged; 1 damaged report`."""
    counts = ", ".join(f"{each.count} {each.name}" for each in fleet.verdicts)
    parts = [f"{hosts(len(fleet.nodes))} judged" + (f": {counts}" if counts else "")]
    if unjudged(fleet):
        parts.append(f"{len(unjudged(fleet))} not judged")
    if len(fleet.absent) > len(unjudged(fleet)):
        parts.append(f"{len(fleet.absent) - len(unjudged(fleet))} judged by an older report")
    if fleet.damaged:
        plural = "" if len(fleet.damaged) == 1 else "s"
        parts.append(f"{len(fleet.damaged)} damaged report{plural}")
    return "; ".join(parts)


def unjudged(fleet: Fleet) -> tuple[Absent, ...]:
    """Hosts of which there is no report at all."""
    return tuple(each for each in fleet.absent if not each.report)


def period(fleet: Fleet) -> str:
    """When the reports were taken; empty when none says so."""
    if fleet.oldest is None or fleet.newest is None:
        return ""
    if fleet.oldest == fleet.newest:
        return f"taken {one_line(fleet.oldest)}"
    return f"taken {one_line(fleet.oldest)} to {one_line(fleet.newest)}"


def status(fleet: Fleet) -> str:
    """The last line: what it comes to."""
    failing = {"warning": ("error", "warning"), "error": ("error",), "never": ()}[fleet.fail_on]
    worst = [each for each in fleet.findings if each.severity in failing]
    if fleet.exit_code == 1 and worst:
        first = worst[0]
        return f"{first.severity}: {first.id} on {hosts(len(first.hosts))}: {one_line(first.title)}"
    if fleet.exit_code == 1:
        return "error: not all is as in the lock"
    if fleet.exit_code == RecordingError.exit_code:
        return "damaged: some reports could not be read; none of the others fails"
    if fleet.exit_code == UndeterminedError.exit_code:
        if not fleet.nodes:
            return "unknown: nothing could be judged"
        return "unknown: some hosts could not be judged; none of the others fails"
    if fleet.findings or fleet.unknown:
        return "ok: nothing that fails"
    return "ok: no problem found"


def summary(group: Group) -> str:
    """A stack in one line, without what is not there."""
    return "; ".join(
        one_line(f"{each.part} {each.version}")
        for each in group.stack
        if each.part != "GPUs" and each.version != "none"
    )


def outliers(fleet: Fleet) -> tuple[Group, ...]:
    """Groups that differ from the usual stack of their GPUs, the smallest first."""
    return tuple(each for each in fleet.groups if not each.usual)


def usual(fleet: Fleet) -> tuple[Group, ...]:
    """The usual stacks, the largest first."""
    return tuple(reversed([each for each in fleet.groups if each.usual]))


def titled(tally: Tally) -> str:
    """A finding's title, and that there are others."""
    more = tally.titles - 1
    also = f" (and {more} like it)" if more else ""
    return one_line(tally.title) + also


ABSENT = {
    "unreachable": "unreachable",
    "failed": "failed",
    "not-asked": "not asked",
}
"""Words for why a host has no judgement."""
