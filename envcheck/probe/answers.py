"""What payloads print: one JSON line after a marker, since libraries may write to stdout too."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from envcheck.model.host import ProbeAnswer
from envcheck.probe.shapes import misfit

if TYPE_CHECKING:
    from envcheck.probe.shapes import Shape
    from envcheck.probe.source import Result

MARKER = "envcheck-json:"
_WORDS = 300
"""Characters of foreign words that are kept."""


def payload_answer(result: Result | None, shape: Shape) -> tuple[dict[str, Any] | None, str]:
    """The JSON object of a payload, or None and why there is none.

    Args:
        result: how the payload ended.
        shape: of `shapes`; what does not fit it is no answer.
    """
    if result is None:
        return None, "was not asked"
    for line in reversed(result.stdout.splitlines()):
        if line.startswith(MARKER):
            try:
                data = json.loads(line[len(MARKER) :])
            except (ValueError, RecursionError):
                return None, "printed something that is not JSON"
            wrong = misfit(shape, data)
            return (data, "") if wrong is None else (None, f"printed no answer: {clip(wrong)}")
    return None, why(result)


def why(result: Result) -> str:
    """In words, why a program gave no answer."""
    if result.error:
        return result.error
    if result.outcome == "crash":
        return f"was ended by {signal_name(result.code)}"
    last = first_line("\n".join(reversed(result.stderr.strip().splitlines())))
    return f"ended with exit status {result.code}" + (f": {last}" if last else "")


def signal_name(code: int | None) -> str:
    """`SIGSEGV` for -11."""
    import signal

    try:
        return signal.Signals(-(code or 0)).name
    except ValueError:
        return f"signal {-(code or 0)}"


def clip(text: str) -> str:
    """A text, shortened."""
    return text if len(text) <= _WORDS else f"{text[:_WORDS]}..."


def first_line(text: str) -> str:
    """First line that holds something, shortened."""
    return next((line.strip()[:_WORDS] for line in text.splitlines() if line.strip()), "")


def failed(result: Result, reason: str | None = None) -> ProbeAnswer:
    """The answer of a program that gave none; `reason` where more is known than how it ended."""
    outcome = result.outcome if result.outcome in {"timeout", "crash", "missing"} else "error"
    return ProbeAnswer(outcome=outcome, code=result.code, message=reason or why(result))
