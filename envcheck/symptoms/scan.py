"""Finds the messages of the table in lines of text.

A line is cut into words once, and the words are looked up in one dictionary; only rows that have a
word in the line are looked at more closely, and only those whose needle is there are tried. So the
time grows with the length of the text, whatever stands in it.
"""

from __future__ import annotations

import itertools
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
BEFORE = 30
"""Characters kept before what matched, when a line is shortened."""
PER_ROW = 24
"""Symptoms of one row that differ in their captures."""
FRUITLESS = 120_000
"""Characters on which a row's pattern is tried in vain, or to find the same again, before the row
is left out of the rest of a scan."""

COMMON = frozenset(
    b"a an any api are call can cannot could cuda device driver error exc failed file for found "
    b"from gpu have import in info is lib library load loaded local may memory module name net no "
    b"not nvidia of open read run runtime set so such support the this to torch unable usr version "
    b"warn warning was with yet you your".split()
)
"""Words that stand in many lines of any log; a needle is looked up by another one if it has one."""

_LETTERS = bytes(
    ord(chr(code).lower()) if chr(code).isalnum() and code < 128 else ord(" ")
    for code in range(256)
)


_CONTINUED = re.compile(r"^.{0,80}?\bNVRM:\s")
"""What the kernel puts in front of each line of one message."""


def _cut(text: str) -> list[bytes]:
    """The words of a text: ASCII letters and digits in lower case; all else separates them."""
    return text.encode("ascii", "replace").translate(_LETTERS).split()


def _spaced(parts: list[bytes]) -> bytes:
    """Words with one space around each, so that a phrase can be looked for."""
    return b" " + b" ".join(parts) + b" "


class Needle:
    """A phrase to look for among the words of a line."""

    __slots__ = ("heads", "tails", "text")

    def __init__(self, parts: list[bytes]) -> None:
        """Prepare a phrase, given as its words."""
        self.text = _spaced(parts)
        self.heads = frozenset(parts[:-1])
        self.tails = frozenset(parts[1:])

    def broken(self, line: list[bytes]) -> bool:
        """Whether the phrase may begin at the end of a line, or end at its beginning."""
        return line[-1] in self.heads or line[0] in self.tails


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
        self.keys: dict[bytes, tuple[tuple[SymptomRow, Needle], ...]] = {}
        for row in self.rows:
            for needle in row.needles:
                parts = _cut(needle)
                key = max(
                    parts,
                    key=lambda word: (
                        word not in COMMON,
                        len(word) > 2 and not word.isdigit(),
                        -uses[word],
                        len(word),
                    ),
                )
                self.keys[key] = (*self.keys.get(key, ()), (row, Needle(parts)))

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
    """One run over a text."""

    def __init__(self, table: Scanner, via: str) -> None:
        self.table = table
        self.via = via
        self.found: dict[tuple[str, tuple[Capture, ...]], Symptom] = {}
        self.fruitless: dict[str, int] = {}
        self.kept: dict[str, int] = {}
        self.done: set[str] = set()
        self.active = set(table.keys)

    def run(self, lines: Iterable[str]) -> tuple[Symptom, ...]:
        """Look at every line, and at lines with a known word together with their neighbours."""
        active = self.active
        before, line = "", ""
        present: list[bytes] = []
        for after in _pieces(lines):
            if present:
                self._look(before, line, after, present)
            before, line, present = line, after, _cut(after)
            if active.isdisjoint(present):
                present = []
        if present:
            self._look(before, line, "", present)
        return tuple(self.found.values())

    def _look(self, before: str, line: str, after: str, present: list[bytes]) -> None:
        """Try the rows whose needles stand in a line of these words, or begin or end in it."""
        alone = _spaced(present)
        around = b""
        tried: set[str] = set()
        active = self.active
        for word in dict.fromkeys(each for each in present if each in active):
            for row, needle in self.table.keys[word]:
                if row.name in tried or row.name in self.done:
                    continue
                if needle.text not in alone:
                    if not needle.broken(present):
                        continue
                    around = around or _spaced(_cut(f"{before} {line} {after}"))
                    if needle.text not in around:
                        continue
                tried.add(row.name)
                if not self._try(row, before, line, after):
                    self._give_up(row)

    def _try(self, row: SymptomRow, before: str, line: str, after: str) -> bool:
        """Search a row's pattern; whether it can still find something new."""
        pattern = self.table.pattern(row)
        work = len(line)
        fresh = False
        matched = False
        for match in itertools.islice(pattern.finditer(line), PER_ROW):
            matched = True
            fresh |= self._keep(row, match, line)
        if not matched:
            for text in _joined(before, line, after):
                work += len(text)
                found = pattern.search(text)
                if found is not None:
                    fresh = self._keep(row, found, text)
                    break
        if fresh:
            return pattern.groups > 0 and self.kept[row.name] < PER_ROW
        self.fruitless[row.name] = self.fruitless.get(row.name, 0) + work
        return self.fruitless[row.name] < FRUITLESS

    def _give_up(self, row: SymptomRow) -> None:
        """Leave a row out from here on, and the words that led to it alone."""
        self.done.add(row.name)
        for needle in row.needles:
            for word in _cut(needle):
                rows = self.table.keys.get(word, ())
                if rows and all(each.name in self.done for each, _ in rows):
                    self.active.discard(word)

    def _keep(self, row: SymptomRow, match: re.Match[str], text: str) -> bool:
        """Keep a match unless one like it was kept before; whether it was."""
        captures = tuple(
            Capture(name=name, value=value.strip())
            for name, value in match.groupdict().items()
            if value is not None and value.strip()
        )
        key = (row.name, captures)
        if key in self.found or self.kept.get(row.name, 0) >= PER_ROW:
            return False
        self.kept[row.name] = self.kept.get(row.name, 0) + 1
        self.found[key] = Symptom(
            name=row.name,
            text=_shown(text, match.start(), match.end()),
            via=self.via,
            captures=captures,
        )
        return True


def _joined(before: str, line: str, after: str) -> Iterator[str]:
    """A line with its neighbours, as one message that was broken: at a blank, or anywhere."""
    left, right = before.rstrip(), _CONTINUED.sub("", after, count=1).lstrip()
    if right:
        yield f"{line.rstrip()} {right}"
    if left:
        yield f"{left} {line.lstrip()}"
    if left and right:
        yield f"{left} {line.strip()} {right}"
    if right:
        yield f"{line.rstrip()}{right}"
    if left:
        yield f"{left}{line.lstrip()}"


def _pieces(lines: Iterable[str]) -> Iterator[str]:
    """Lines, long ones in overlapping pieces."""
    for line in lines:
        if len(line) <= LONGEST_LINE:
            yield line.rstrip("\r\n")
            continue
        for start in range(0, max(len(line) - OVERLAP, 1), LONGEST_LINE - OVERLAP):
            yield line[start : start + LONGEST_LINE]


def _shown(text: str, start: int, end: int) -> str:
    """A line as it is shown; a longer one from shortly before what matched."""
    if len(text) > SHOWN:
        first = max(0, min(start - BEFORE, len(text) - SHOWN)) if end > SHOWN else 0
        last = first + SHOWN
        text = ("…" if first else "") + text[first:last] + ("…" if last < len(text) else "")
    return " ".join(text.split())
