"""Finds the messages of the table in lines of text.

A line is cut into words once, and the words are looked up in one dictionary; only rows that have a
word in the line are looked at more closely, and only those whose needle is there are tried. So the
time grows with the length of the text, whatever stands in it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from envcheck.errors import TableError
from envcheck.model.symptom import Capture, Symptom

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from envcheck.matrix.loader import Matrix
    from envcheck.matrix.schema import SymptomRow

LONGEST_LINE = 2000
"""Characters of a line that are looked at in one piece."""
OVERLAP = 500
"""Characters that neighbouring pieces of a longer line share; no message is longer."""
SHOWN = 240
"""Characters of a line that a symptom keeps."""
PER_ROW = 24
"""Symptoms of one row that differ in their captures."""
TRIES_PER_ROW = 4000
"""Lines on which a row's pattern is tried before the row is left out of a scan."""

_LETTERS = bytes(
    ord(chr(code).lower()) if chr(code).isalnum() and code < 128 else ord(" ")
    for code in range(256)
)


def _cut(text: str) -> list[bytes]:
    """The words of a text: ASCII letters and digits in lower case; all else separates them."""
    return text.encode("ascii", "replace").translate(_LETTERS).split()


def _spaced(parts: list[bytes]) -> bytes:
    """Words with one space around each, so that a phrase can be looked for."""
    return b" " + b" ".join(parts) + b" "


class Scanner:
    """The table prepared for scanning; make it once per `Matrix` with `scanner`."""

    def __init__(self, rows: Iterable[SymptomRow]) -> None:
        """Index rows by the rarest word of each of their needles."""
        self.rows = tuple(rows)
        self._patterns: dict[str, re.Pattern[str]] = {}
        uses: dict[bytes, int] = {}
        for row in self.rows:
            for word in {word for needle in row.needles for word in _cut(needle)}:
                uses[word] = uses.get(word, 0) + 1
        self.keys: dict[bytes, tuple[tuple[SymptomRow, bytes], ...]] = {}
        for row in self.rows:
            for needle in row.needles:
                parts = _cut(needle)
                key = max(parts, key=lambda word: (len(word) > 2, -uses[word], len(word)))
                self.keys[key] = (*self.keys.get(key, ()), (row, _spaced(parts)))
        self.every = frozenset(self.keys)

    def pattern(self, row: SymptomRow) -> re.Pattern[str]:
        """The compiled pattern of a row; compiling waits until a needle was seen."""
        found = self._patterns.get(row.name)
        if found is None:
            try:
                found = self._patterns[row.name] = re.compile(row.pattern)
            except re.error as error:  # in a table of the user's own
                msg = f"symptoms.toml: {row.name}: pattern: {error}"
                raise TableError(msg) from error
        return found


def scanner(matrix: Matrix) -> Scanner:
    """The scanner of these tables, made once."""
    return matrix.memo("symptoms.scanner", lambda: Scanner(matrix.symptoms))


def scan(lines: Iterable[str], matrix: Matrix, via: str = "") -> tuple[Symptom, ...]:
    """Recognise known messages.

    Args:
        lines: text, without markup; line ends are ignored.
        matrix: the tables.
        via: where the lines were read, `kernel log`.

    Returns:
        Symptoms in the order of their first appearance; messages of one row that capture the same
        are one symptom, and a row gives at most `PER_ROW`.
    """
    return _Scan(scanner(matrix), via).run(lines)


class _Scan:
    def __init__(self, table: Scanner, via: str) -> None:
        self.table = table
        self.via = via
        self.found: dict[tuple[str, tuple[Capture, ...]], Symptom] = {}
        self.tries: dict[str, int] = {}
        self.kept: dict[str, int] = {}

    def run(self, lines: Iterable[str]) -> tuple[Symptom, ...]:
        every = self.table.every
        before, line, hit = "", "", False
        for after in _pieces(lines):
            if hit:
                self._look(before, line, after)
            before, line = line, after
            hit = not every.isdisjoint(_cut(line))
        if hit:
            self._look(before, line, "")
        return tuple(self.found.values())

    def _look(self, before: str, line: str, after: str) -> None:
        """Try the rows whose words stand in a line: on it alone, then with its neighbours."""
        present = _cut(line)
        alone = _spaced(present)
        around = b""
        tried = set()
        for word in dict.fromkeys(present):
            for row, needle in self.table.keys.get(word, ()):
                if row.name in tried or self.tries.get(row.name, 0) > TRIES_PER_ROW:
                    continue
                if needle not in alone:
                    around = around or _spaced(_cut(f"{before} {line} {after}"))
                    if needle not in around:
                        continue
                tried.add(row.name)
                self._try(row, before, line, after)

    def _try(self, row: SymptomRow, before: str, line: str, after: str) -> None:
        self.tries[row.name] = self.tries.get(row.name, 0) + 1
        pattern = self.table.pattern(row)
        matched = False
        for match in pattern.finditer(line):
            matched = True
            self._keep(row, match, line)
        if matched:
            return
        left, middle, right = before.rstrip(), line.strip(), after.lstrip()
        joined = [f"{line.rstrip()} {right}", f"{line.rstrip()}{right}"] if right else []
        if left:
            joined += [f"{left} {middle}", f"{left}{middle}"]
        if left and right:
            joined.append(f"{left} {middle} {right}")
        for text in joined:
            match = pattern.search(text)
            if match is not None:
                self._keep(row, match, text)
                return

    def _keep(self, row: SymptomRow, match: re.Match[str], text: str) -> None:
        captures = tuple(
            Capture(name=name, value=value.strip())
            for name, value in match.groupdict().items()
            if value is not None and value.strip()
        )
        key = (row.name, captures)
        if key in self.found or self.kept.get(row.name, 0) >= PER_ROW:
            return
        self.kept[row.name] = self.kept.get(row.name, 0) + 1
        self.found[key] = Symptom(
            name=row.name, text=_shown(text, match.start(), match.end()), via=self.via,
            captures=captures,
        )


def _pieces(lines: Iterable[str]) -> Iterator[str]:
    """Lines, long ones in overlapping pieces."""
    for line in lines:
        if len(line) <= LONGEST_LINE:
            yield line.rstrip("\r\n")
            continue
        for start in range(0, max(len(line) - OVERLAP, 1), LONGEST_LINE - OVERLAP):
            yield line[start : start + LONGEST_LINE]


def _shown(text: str, start: int, end: int) -> str:
    """A line, shortened around what matched."""
    if len(text) > SHOWN:
        room = max(SHOWN - (end - start), 0) // 2
        first = max(0, min(start - room, len(text) - SHOWN))
        last = first + SHOWN
        text = ("…" if first else "") + text[first:last] + ("…" if last < len(text) else "")
    return " ".join(text.split())
