"""What installed libraries declare about the frameworks that they work with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.matrix import query
from envcheck.matrix.schema import LibraryRequirement
from envcheck.model.base import model
from envcheck.rules.requirements import Requirement, parse, required

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.model.environment import Package
    from envcheck.model.snapshot import Snapshot

FRAMEWORKS = ("jax", "tensorflow", "torch")
"""Libraries name an extra after the framework that it is for."""


@model
class Declared:
    """What a library asks of another distribution.

    `row` is the table row that says so; None when the library's own metadata does.
    """

    requirement: Requirement
    row: LibraryRequirement | None = None


def declared(snapshot: Snapshot, matrix: Matrix, package: Package) -> list[Declared]:
    """Bounds that an installed library puts on frameworks and on its neighbours.

    Its own metadata decides; where that was not read, the table of libraries does.
    """
    if package.requires:
        listed = matrix.memo(
            "frameworks that libraries require",
            lambda: frozenset(matrix.values(LibraryRequirement, "requires_framework")),
        )
        return [
            Declared(requirement=each)
            for each in required(snapshot, package, extras=FRAMEWORKS)
            if each.name in listed and each.bounds
        ]
    rows = [
        row
        for row in query.requirements_near(matrix, package.name, package.version)
        if row.extra in (None, row.requires_framework) and row.confidence != "low"
    ]
    found = []
    for row in rows:
        parsed = parse(f"{row.requires_framework}{row.specifier}")
        if parsed is not None and parsed[0].bounds:
            found.append(Declared(requirement=parsed[0], row=row))
    return found
