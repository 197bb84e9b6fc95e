"""Takes off what a text was wrapped in on its way: encodings, quotes, prefixes of logs."""

from __future__ import annotations

import html
import re
import string

from envcheck.errors import NoTextError
from envcheck.intake.locales import english

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_QUOTE = re.compile(r"^[ \t]{0,3}(?:>[ \t]?){1,6}", re.MULTILINE)
_FENCE = re.compile(
    r"^[ \t]*(?:```|~~~)`*(?:[ \t]*[\w+.#-]{0,24}[ \t]*$)?|```[ \t]*$", re.MULTILINE
)
"""A fence with the name of its language; the words of one that shares its line with text stay."""
_JOURNAL = re.compile(
    r"^(?:<\d+>)?(?:[^\W\d]{3,4}\.? {1,2}\d{1,2} [\d:]{8}|\d{4}-\d\d-\d\dT[\d:.,+-]{8,30}Z?)"
    r" (?:[\w.-]{1,64} )?(?:[\w.@/()-]{1,64}(?:\[\d+\])?: )",
    re.MULTILINE,
)
_POD = re.compile(
    r"^\d{4}-\d\d-\d\dT[\d:.]{8,20}(?:Z|[+-]\d\d:\d\d) (?:(?:stdout|stderr) [FP] )?", re.MULTILINE
)
_SERVICE = re.compile(r"^[A-Za-z0-9][\w.-]{0,60}[-_]\d+ +\| ?", re.MULTILINE)
_WORKER = re.compile(
    r"^(?:\((?=[^)\n]{0,80}pid=)[^)\n]{1,80}\) ?|\[?rank ?\d+\]?: ?|\[\d+\]: )+",
    re.MULTILINE | re.IGNORECASE,
)
_RANK = re.compile(r"^ ?\d{1,4}: ", re.MULTILINE)
_PERCENT = re.compile(r"%20|%22|%27|%2F|%3A|%28|%29", re.IGNORECASE)
_CELLS = re.compile(
    r"^[ \t]*\|[ \t]*([A-Z][\w ()?/-]{2,40}?)[ \t]*\|[ \t]*([^|\n]{1,200}?)[ \t]*\|[ \t]*$",
    re.MULTILINE,
)
"""A row of a table of two columns, as somebody typed what a report says."""
_PROMPT = re.compile(r"^(?:>>> |\.\.\. |In \[\d+\]: |Out\[\d+\]: )", re.MULTILINE)
_TAG = re.compile(r"</?(?:details|summary|pre|code|p|br|div|span|b|i|strong|em)\b[^>\n]{0,80}>")
_ESCAPED_LINES = re.compile(r"(?:\\n[^\n\\]{0,2000}?){3,}")
# Full-width forms that Chinese and Japanese keyboards put in place of ASCII, and wide spaces.
_NARROW = {0xFF01 + at: 0x21 + at for at in range(94)} | {
    0x3000: 0x20,
    0xA0: 0x20,
    0x2007: 0x20,
    0x202F: 0x20,
    0x200B: None,
    0xFEFF: None,
    0x2502: 0x7C,
    0x2503: 0x7C,
    0x2019: 0x27,
    0x2018: 0x27,
    0x201C: 0x22,
    0x201D: 0x22,
}

LONGEST_LINE = 4000
"""Characters of a line that are kept: messages stand at its start, or are found apart from this."""
_BINARY = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"%PDF", b"PK\x03\x04", b"\x1f\x8b", b"\x7fELF")
_TELLING = (
    "nvidia",
    "cuda",
    "cudnn",
    "nccl",
    "nvrm",
    "torch",
    "tensorflow",
    "jaxlib",
    "driver",
    "gpu",
    "error",
    "failed",
)
_ASCII_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
"""Unlike `str.lower`, this leaves every letter at its place."""
_LINES_A_WORD = 4000
"""Lines that a telling word may keep of the middle of a long text."""


def decoded(data: bytes | str) -> str:
    """Text of bytes in UTF-8, UTF-16 or, failing both, Latin-1.

    Raises:
        NoTextError: it is empty or no text.
    """
    if isinstance(data, bytes):
        data = _text(data)
    if not data.strip():
        msg = "it is empty"
        raise NoTextError(msg)
    return data


def _text(data: bytes) -> str:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace")
    if data.startswith(_BINARY):
        msg = "it is an image, an archive or a program, not a text"
        raise NoTextError(msg)
    head = data[:8192]
    if b"\0" in head:
        if head[1::2].count(0) > len(head) // 3:
            return data.decode("utf-16-le", "replace")
        msg = "it is not a text"
        raise NoTextError(msg)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        # A few odd bytes are somebody's locale; many are no text at all.
        odd = sum(byte < 9 or (14 <= byte < 32 and byte != 27) for byte in head)
        if odd > len(head) // 10:
            msg = "it is not a text"
            raise NoTextError(msg) from error
        return (
            data.decode("utf-8", "replace" if error.start > len(data) - 4 else "surrogateescape")
            .encode("utf-8", "surrogateescape")
            .decode("latin-1")
        )


def shortened(text: str, largest: int) -> str:
    """A text of at most about `largest` characters: both ends, and telling lines between."""
    if len(text) <= largest:
        return text
    part = largest // 4
    places = sorted(_telling(text, part, len(text) - part))
    middle: list[str] = []
    room = largest - 2 * part
    for start, end in places:
        middle.append(text[start:end])
        room -= end - start
        if room < 0:
            break
    return "\n".join((text[:part], *middle, text[-part:]))


def _telling(text: str, first: int, last: int) -> set[tuple[int, int]]:
    """Where lines with a telling word start and end; plain searches, since the text is long."""
    lower = text.lower() if text.isascii() else text.translate(_ASCII_LOWER)
    places: set[tuple[int, int]] = set()
    for word in _TELLING:
        at = lower.find(word, first, last)
        for _ in range(_LINES_A_WORD):
            if at < 0:
                break
            start = max(lower.rfind("\n", max(0, at - LONGEST_LINE), at) + 1, at - LONGEST_LINE)
            end = lower.find("\n", at, at + LONGEST_LINE)
            end = at + LONGEST_LINE if end < 0 else end
            places.add((start, end))
            at = lower.find(word, end, last)
    return places


def _labelled(text: str) -> bool:
    """Whether a launcher wrote the number of a process before each line, as `srun --label`."""
    labels = sum(1 for _ in _RANK.finditer(text))
    return labels > 2 and labels * 3 >= 2 * (text.strip().count("\n") + 1)


def lines(text: str) -> tuple[str, ...]:
    """Lines of a text without what carried it."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("#012", "\n")
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    text = _CONTROL.sub("", text)
    if not text.isascii():
        text = text.translate(_NARROW)
    if "&" in text:
        text = html.unescape(text)
    if "\\n" in text:
        text = _ESCAPED_LINES.sub(lambda match: match.group().replace("\\n", "\n"), text)
    if "%20" in text:
        text = _PERCENT.sub(lambda match: chr(int(match.group()[1:], 16)), text)
    text = english(text)
    if "| " in text:
        text = _CELLS.sub(r"\1: \2", text)
    if _labelled(text):
        text = _RANK.sub("", text)
    if "<" in text:
        text = _TAG.sub("", text)
    for pattern, mark in (
        (_QUOTE, ">"),
        (_FENCE, "```"),
        (_POD, "T"),
        (_JOURNAL, ": "),
        (_SERVICE, "|"),
        (_WORKER, ")"),
        (_PROMPT, " "),
    ):
        if mark in text or pattern is _WORKER:
            text = pattern.sub("", text)
    return tuple(line[:LONGEST_LINE].rstrip() for line in text.split("\n"))
