"""Text from outside - device names, error messages, paths - made harmless before it is shown.

A GPU name, a kernel log line or a file name may hold anything: an escape sequence that repaints the
terminal, a bidirectional override that reorders a command, a lone surrogate that no encoder takes.
"""

from __future__ import annotations

import math
import re
from typing import Any

_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\ufffe\uffff\U000e0000-\U000e007f]"
)
_BREAK = re.compile(r"[\t\n]")


def clean(text: str, *, lines: bool = False) -> str:
    """Replace every character that steers a terminal, hides text or breaks an encoder.

    Args:
        text: any text.
        lines: keep line ends and tabs, for places where they cannot be mistaken for structure.

    Returns:
        The text with each such character written as a visible escape, backslash and code.
    """
    text = _CONTROL.sub(_escape, text)
    return text if lines else _BREAK.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x100:
        return {9: "\\t", 10: "\\n", 13: "\\r"}.get(code, f"\\x{code:02x}")
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def one_line(text: str) -> str:
    """The text as one harmless line: runs of white space become one space."""
    return clean(" ".join(text.split()))


def clean_all(value: Any) -> Any:
    """Plain data (dicts, lists, scalars) with every string in it cleaned, line ends kept.

    A number that JSON has no form for (NaN, infinity) becomes None.
    """
    if isinstance(value, str):
        return clean(value, lines=True)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, list):
        return [clean_all(each) for each in value]
    if isinstance(value, dict):
        return {clean(name): clean_all(each) for name, each in value.items()}
    return value


_ASCII = str.maketrans(
    {
        "\u2013": "-",
        "\u2014": "-",
        "\u2018": "'",
        "\u2019": "'",
        "\u201c": '"',
        "\u201d": '"',
        "\u2026": "...",
        "\u2190": "<-",
        "\u2192": "->",
        "\u2194": "<->",
        "\u2264": "<=",
        "\u2265": ">=",
        "\u2260": "!=",
        "\u00a0": " ",
        "\u00b7": "-",
        "\u00d7": "x",
        "\u00b0": " deg ",
        # The frame that rich draws.
        "\u2500": "-",
        "\u2502": "|",
        **dict.fromkeys("\u252c\u2534\u253c\u251c\u2524\u256d\u256e\u256f\u2570", "+"),
    }
)


def fit(text: str, encoding: str) -> str:
    """The text in characters that an encoding has: a plain spelling, else a visible escape."""
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return (
            text.translate(_ASCII)
            .encode(encoding, errors="backslashreplace")
            .decode(encoding, errors="replace")
        )
    except LookupError:
        return fit(text, "ascii")
    return text
