"""Reads what people paste into an issue, in any mix, as facts of the same snapshot as a machine's.

`read` cleans a text of what carried it (quotes, log prefixes, colours), lets one reader per format
collect facts, and assembles them. What no format explains is searched for known messages.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from envcheck.intake import assemble, cleaning
from envcheck.intake.collected import Collected

if TYPE_CHECKING:
    from collections.abc import Callable

    from envcheck.matrix.loader import Matrix
    from envcheck.model.snapshot import Snapshot
    from envcheck.model.symptom import Symptom

LARGE = 1 << 20
"""Characters beyond which only the ends of a text, and lines that speak of GPUs, are read as facts;
messages are searched for everywhere."""


def read(
    data: bytes | str, matrix: Matrix, redact: Callable[[str], str] = lambda text: text
) -> Snapshot:
    """Facts of a pasted text.

    Args:
        data: the text, in any encoding.
        matrix: tables, which know GPUs by name and messages by pattern.
        redact: takes names, addresses and serial numbers out of a text.

    Returns:
        A snapshot whose source is `report`. What the text does not say stays unknown.

    Raises:
        NoTextError: it holds no text: empty, an image, an archive.
    """
    text = cleaning.decoded(data)
    found = Collected(cleaning.lines(redact(cleaning.shortened(text, LARGE))))
    for reader in assemble.readers():
        reader(found)
    snapshot = assemble.snapshot(found, matrix, text if len(text) > LARGE else None)
    symptoms = tuple(_redacted(each, redact) for each in snapshot.symptoms)
    return dataclasses.replace(snapshot, symptoms=symptoms)


def _redacted(symptom: Symptom, redact: Callable[[str], str]) -> Symptom:
    captures = tuple(
        dataclasses.replace(each, value=redact(each.value)) for each in symptom.captures
    )
    return dataclasses.replace(symptom, text=redact(symptom.text), captures=captures)
