"""Many reports into one picture, one report at a time."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import envcheck
from envcheck.errors import RecordingError, UndeterminedError
from envcheck.fleet.model import (
    Absent,
    Cell,
    Count,
    Damaged,
    Difference,
    Drifted,
    Fleet,
    Group,
    Mark,
    Node,
    Open,
    Part,
    Tally,
)
from envcheck.fleet.reading import fixes_of
from envcheck.fleet.stack import NONE, part

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Literal

    from envcheck.model.finding import Drift

_Key = tuple[str, tuple[Part, ...]]
"""Hardware and stack."""

VERDICTS = ("error", "warning", "unknown", "ok")
"""The gravest first."""
_SEVERITIES = ("error", "warning", "info")
_FAILING = {"warning": ("error", "warning"), "error": ("error",), "never": ()}


class Collection:
    """Reports added one by one, and the picture of all that were added."""

    def __init__(self) -> None:
        """Start empty."""
        self._nodes: list[Node] = []
        self._fixes: dict[tuple[str, str], list[Any]] = {}
        self._absent: list[Absent] = []
        self._damaged: list[Damaged] = []

    def add(self, node: Node, fixes: dict[Mark, list[Any]]) -> None:
        """Add a report, with the ways out of its findings."""
        self._nodes.append(node)
        for mark, data in fixes.items():
            self._fixes.setdefault((mark.id, mark.title), data)

    def add_absent(self, absent: Absent) -> None:
        """Add a host without a judgement."""
        self._absent.append(absent)

    def add_damaged(self, damaged: Damaged) -> None:
        """Add a file that is no report."""
        self._damaged.append(damaged)

    def picture(
        self, fail_on: Literal["warning", "error", "never"] = "error", lock: str | None = None
    ) -> Fleet:
        """The picture.

        Args:
            fail_on: the mildest severity that fails.
            lock: name of the lock that all were compared with; None when each report says itself.
        """
        nodes = sorted(self._nodes, key=_gravity)
        times = sorted(each.taken_at for each in nodes if each.taken_at)
        return Fleet(
            envcheck=envcheck.__version__,
            exit_code=exit_code(nodes, self._absent, self._damaged, fail_on),
            fail_on=fail_on,
            lock=lock,
            oldest=times[0] if times else None,
            newest=times[-1] if times else None,
            verdicts=_verdicts(nodes),
            groups=_groups(nodes),
            findings=self._tallies(nodes),
            unknown=_open(nodes),
            drift=_drifted(nodes),
            matrix=_matrix(nodes),
            absent=tuple(sorted(self._absent, key=lambda each: (each.kind, each.name))),
            damaged=tuple(sorted(self._damaged, key=lambda each: each.path)),
            nodes=tuple(nodes),
        )

    def _tallies(self, nodes: Sequence[Node]) -> tuple[Tally, ...]:
        marks: dict[str, list[tuple[Mark, str]]] = {}
        for node in nodes:
            for mark in node.findings:
                marks.setdefault(mark.id, []).append((mark, node.name))
        tallies = []
        for id, found in marks.items():
            titles = Counter(mark.title for mark, _ in found)
            title = min(titles, key=lambda each: (-titles[each], each))
            worst = min((mark for mark, _ in found), key=lambda m: _SEVERITIES.index(m.severity))
            tallies.append(
                Tally(
                    id=id,
                    severity=worst.severity,
                    component=worst.component,
                    title=title,
                    titles=len(titles),
                    fix=fixes_of(self._fixes.get((id, title), [])),
                    hosts=tuple(dict.fromkeys(name for _, name in found)),
                )
            )
        return tuple(
            sorted(
                tallies,
                key=lambda each: (_SEVERITIES.index(each.severity), -len(each.hosts), each.id),
            )
        )


def exit_code(
    nodes: Iterable[Node],
    absent: Sequence[Absent],
    damaged: Sequence[Damaged],
    fail_on: Literal["warning", "error", "never"],
) -> int:
    """The exit status that a fleet stands for.

    Returns:
        1 when any host has a finding that fails, or drifts from a lock; else 4 when any report is
        damaged; else 3 when any host could not be judged, or none was; else 0.
    """
    failing = _FAILING[fail_on]
    judged = undetermined = False
    for node in nodes:
        judged = True
        if any(each.severity in failing for each in node.findings):
            return 1
        if node.drift and fail_on != "never":
            return 1
        undetermined |= node.exit_code == UndeterminedError.exit_code
    if damaged:
        return RecordingError.exit_code
    return UndeterminedError.exit_code if absent or undetermined or not judged else 0


def _gravity(node: Node) -> tuple[Any, ...]:
    errors = sum(each.severity == "error" for each in node.findings)
    drifted = len(node.drift or ())
    return VERDICTS.index(node.verdict), -errors, -drifted, _natural(node.name)


def _natural(name: str) -> tuple[tuple[int, int | str], ...]:
    """Order in which node10 comes after node9."""
    import re

    return tuple(
        (0, int(each)) if each.isascii() and each.isdigit() else (1, each)
        for each in re.split(r"([0-9]+)", name[:300])
    )


def _verdicts(nodes: Iterable[Node]) -> tuple[Count, ...]:
    counts: Counter[str] = Counter(each.verdict for each in nodes)
    return tuple(Count(name=each, count=counts[each]) for each in VERDICTS if counts[each])


def _groups(nodes: Sequence[Node]) -> tuple[Group, ...]:
    members_of: dict[_Key, list[Node]] = {}
    for node in nodes:
        members_of.setdefault((node.hardware, node.stack), []).append(node)
    usual: dict[str, tuple[Part, ...]] = {}
    # The largest is the usual one; of equal ones that with the fewest grave findings.
    for hardware, stack in sorted(members_of, key=lambda key: _order(key[1], members_of[key])):
        usual.setdefault(hardware, stack)
    groups = []
    for (hardware, stack), members in members_of.items():
        groups.append(
            Group(
                gpus=part(stack, "GPUs"),
                usual=usual[hardware] == stack,
                stack=stack,
                differences=_differences(usual[hardware], stack),
                verdicts=_verdicts(members),
                hosts=tuple(sorted((each.name for each in members), key=_natural)),
            )
        )
    groups.sort(key=_rarity)
    return tuple(groups)


def _rarity(group: Group) -> tuple[Any, ...]:
    worst = VERDICTS.index(group.verdicts[0].name)
    return group.usual, len(group.hosts), worst, group.gpus, group.hosts


def _order(stack: tuple[Part, ...], members: Sequence[Node]) -> tuple[Any, ...]:
    # One whose driver shows nothing is nobody's model.
    blind = part(stack, "GPUs").endswith("none through the driver")
    worst = sum(each.verdict == "error" for each in members)
    return blind, -len(members), worst, [(each.part, each.version) for each in stack]


def _differences(usual: tuple[Part, ...], stack: tuple[Part, ...]) -> tuple[Difference, ...]:
    names = dict.fromkeys(each.part for each in (*usual, *stack))
    return tuple(
        Difference(part=name, usual=part(usual, name), here=part(stack, name))
        for name in names
        if part(usual, name) != part(stack, name)
    )


def _open(nodes: Iterable[Node]) -> tuple[Open, ...]:
    hosts: dict[str, list[str]] = {}
    for node in nodes:
        for check in node.unknown:
            hosts.setdefault(check, []).append(node.name)
    return tuple(
        Open(check=check, hosts=tuple(names))
        for check, names in sorted(hosts.items(), key=lambda each: (-len(each[1]), each[0]))
    )


def _drifted(nodes: Iterable[Node]) -> tuple[Drifted, ...] | None:
    hosts: dict[Drift, list[str]] = {}
    compared = False
    for node in nodes:
        compared |= node.drift is not None
        for drift in node.drift or ():
            hosts.setdefault(drift, []).append(node.name)
    if not compared:
        return None
    ordered = sorted(hosts.items(), key=lambda each: (-len(each[1]), each[0].field, each[0].found))
    return tuple(
        Drifted(field=drift.field, locked=drift.locked, found=drift.found, hosts=tuple(names))
        for drift, names in ordered
    )


def _matrix(nodes: Iterable[Node]) -> tuple[Cell, ...]:
    cells: Counter[tuple[str, str]] = Counter()
    for node in nodes:
        driver, cuda = part(node.stack, "driver"), part(node.stack, "CUDA of the driver")
        label = f"{driver.partition(',')[0]} (CUDA {cuda})" if cuda[:1].isdigit() else driver
        cells[label, part(node.stack, "torch", NONE)] += 1
    return tuple(
        Cell(driver=driver, torch=torch, hosts=count)
        for (driver, torch), count in sorted(
            cells.items(), key=lambda each: (_natural(each[0][0]), _natural(each[0][1]))
        )
    )
