"""Row type of the table of activity: from which figures on a GPU counts as badly used."""

from __future__ import annotations

from envcheck.matrix.row import Row
from envcheck.model.base import model


@model
class ActivityThreshold(Row):
    """A figure that rules on activity compare with.

    Attributes:
        name: what it is compared with, in kebab case.
        value: the figure.
        unit: `%`, `% of a core`, `s`.
        reason: why it stands where it does.
    """

    table = "activity"
    section = "threshold"
    key = ("name",)

    name: str
    value: int
    unit: str
    reason: str
