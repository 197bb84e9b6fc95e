"""What a misspelt word was probably meant to be."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


_OTHER_NAMES = {"gpu": "cuda", "md": "markdown", "pytorch": "torch"}
"""Words that people use for others, which look nothing like them or more like a third."""


def nearest(word: str, known: Iterable[str], likeness: float = 0.5) -> str | None:
    """The known word that a misspelt one is nearest to, None when none is near.

    Args:
        word: what was typed.
        known: words that would have been understood.
        likeness: what counts as near, from 0 to 1.
    """
    import difflib

    known = tuple(known)
    if _OTHER_NAMES.get(word) in known:
        return _OTHER_NAMES[word]
    near = difflib.get_close_matches(word, known, n=1, cutoff=likeness)
    return near[0] if near else None


def suggestion(word: str, known: Iterable[str], likeness: float = 0.5) -> str | None:
    """`did you mean ...?` for a misspelt word, None when no known word is near."""
    near = nearest(word, known, likeness)
    return f"did you mean '{near}'?" if near is not None else None
