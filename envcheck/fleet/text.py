"""The picture as plain text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.fleet import words
from envcheck.report.describe import titled
from envcheck.report.foreign import clean, one_line
from envcheck.report.plain import labelled, wrap

if TYPE_CHECKING:
    from collections.abc import Iterator

    from envcheck.fleet.model import Cell, Fleet, Group, Tally


def render(fleet: Fleet, *, width: int = 100, verbose: bool = False) -> str:
    """Render a picture.

    Args:
        fleet: the picture.
        width: columns that prose is wrapped to; commands are never wrapped.
        verbose: name every host of every list.
    """
    lines = list(_Page(width, None if verbose else words.SHOWN).lines(fleet))
    return "\n".join(lines) + "\n"


class _Page:
    def __init__(self, width: int, most: int | None) -> None:
        self._width = width
        self._most = most

    def lines(self, fleet: Fleet) -> Iterator[str]:
        yield from wrap(words.headline(fleet), self._width, hanging=2)
        if words.period(fleet):
            yield words.period(fleet)
        for part in (
            self._outliers(fleet),
            self._usual(fleet),
            self._findings(fleet),
            self._drift(fleet),
            self._unknown(fleet),
            matrix(fleet.matrix),
            self._absent(fleet),
            self._damaged(fleet),
        ):
            lines = list(part)
            if lines:
                yield ""
                yield from lines
        yield ""
        yield words.status(fleet)

    def _item(self, label: str, text: str, indent: int = 2, column: int = 12) -> list[str]:
        return labelled(f"{' ' * indent}{label}", text, indent + column, self._width)

    def _outliers(self, fleet: Fleet) -> Iterator[str]:
        groups = words.outliers(fleet)
        if not groups:
            return
        count = sum(len(each.hosts) for each in groups)
        which = "whose stack is not the most frequent one of their GPUs"
        yield f"outliers: {words.hosts(count)} {which}"
        for group in groups:
            yield from self._hosts(group)
            column = max(len(each.part) for each in group.differences) + 2
            for each in group.differences:
                text = one_line(f"{each.here}, usually {each.usual}")
                yield from self._item(one_line(each.part), text, 4, column)

    def _usual(self, fleet: Fleet) -> Iterator[str]:
        groups = words.usual(fleet)
        if groups:
            yield "usual stacks"
        for group in groups:
            yield from self._hosts(group)
            yield from wrap(words.summary(group), self._width, first=4, hanging=4)

    def _hosts(self, group: Group) -> list[str]:
        names = words.listed(group.hosts, self._most)
        text = f"{words.equipped(group)}: {names}"
        return wrap(text, self._width, first=2, hanging=4)

    def _findings(self, fleet: Fleet) -> Iterator[str]:
        if fleet.findings:
            yield "findings"
        for each in fleet.findings:
            yield from self._finding(each)

    def _finding(self, tally: Tally) -> Iterator[str]:
        names = words.listed(tally.hosts, self._most)
        head = f"{tally.severity} {one_line(tally.id)} on {words.hosts(len(tally.hosts))}: {names}"
        yield from wrap(head, self._width, first=2, hanging=4)
        yield from wrap(words.titled(tally), self._width, first=4, hanging=4)
        # The first way out is the least disruptive one.
        for at, fix in enumerate(tally.fix if self._most is None else tally.fix[:1]):
            title = titled(fix, at)
            yield from self._item("fix" if at == 0 else "or", title, 4, 5)
            for command in fix.commands:
                yield f"      {clean(command)}"

    def _drift(self, fleet: Fleet) -> Iterator[str]:
        if fleet.drift is None:
            return
        name = one_line(fleet.lock) if fleet.lock else "the lock"
        if not fleet.drift:
            yield f"no drift from {name}, as far as it was read"
            return
        yield f"drift from {name}"
        for each in fleet.drift:
            names = words.listed(each.hosts, self._most)
            what = one_line(f"{each.field}: locked {each.locked}, found {each.found}")
            text = f"{what} on {words.hosts(len(each.hosts))}: {names}"
            yield from wrap(text, self._width, first=2, hanging=4)

    def _unknown(self, fleet: Fleet) -> Iterator[str]:
        if fleet.unknown:
            yield "could not tell"
        for each in fleet.unknown:
            names = words.listed(each.hosts, self._most)
            text = f"{one_line(each.check)} on {words.hosts(len(each.hosts))}: {names}"
            yield from wrap(text, self._width, first=2, hanging=4)

    def _absent(self, fleet: Fleet) -> Iterator[str]:
        if fleet.absent:
            yield "not answered"
        for each in fleet.absent:
            older = " (an older report is counted)" if each.report else ""
            text = one_line(f"{each.name} {words.ABSENT[each.kind]}: {each.reason}") + older
            yield from wrap(text, self._width, first=2, hanging=4)

    def _damaged(self, fleet: Fleet) -> Iterator[str]:
        if fleet.damaged:
            yield "damaged reports"
        for each in fleet.damaged:
            text = one_line(f"{each.path}: {each.reason}")
            yield from wrap(text, self._width, first=2, hanging=4)


def matrix(cells: tuple[Cell, ...]) -> Iterator[str]:
    """Drivers down, builds of PyTorch and counts beside them."""
    if not cells:
        return
    yield "drivers and torch"
    driver = max(len(one_line(each.driver)) for each in cells)
    torch = max(len(one_line(each.torch)) for each in cells)
    last = None
    for each in cells:
        name = one_line(each.driver) if each.driver != last else ""
        last = each.driver
        count = words.hosts(each.hosts)
        yield f"  {name:<{driver}}  {one_line(each.torch):<{torch}}  {count}"
