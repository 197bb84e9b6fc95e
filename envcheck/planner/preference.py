"""What is better by each preference, and the driver that a build needs at least."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.matrix import query
from envcheck.rules import arch, builds, drivers
from envcheck.versions import Release

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from envcheck.matrix.loader import Matrix
    from envcheck.matrix.schema import DriverBranch, TorchBuild
    from envcheck.model.plan import Preference
    from envcheck.planner.options import Option

Key = tuple[object, ...]


def option_key(
    matrix: Matrix, prefer: Preference, arches: tuple[str, ...]
) -> Callable[[Option], Key]:
    """The sort key of a framework's builds: the smallest is the best.

    - `newest`: the newest version; of that, the variant that a plain install gives, then the newest
      CUDA.
    - `lts`: before that, releases that a newer minor release has followed, for a CUDA release that
      the newest long-term driver branch offers itself.
    - `oldest-driver`: before that, what the oldest driver runs.

    Args:
        matrix: the tables.
        prefer: the preference.
        arches: compute capabilities of the target.
    """

    def newest(option: Option) -> Key:
        return (
            tuple(-part for part in (*Release.parse(option.version).parts, 0, 0, 0, 0)[:4]),
            # A release with a suffix repairs its namesake.
            "post" not in option.version,
            not option.default,
            _descending(option.cuda),
        )

    if prefer == "lts":
        last = _last_minors(matrix)
        branch = lts_branch(matrix)
        offered = Release.maybe(branch.cuda if branch is not None else None)

        def settled(option: Option) -> Key:
            release = Release.parse(option.version)
            new = release.parts[:2] >= last[option.name]
            cuda = Release.maybe(option.cuda)
            beyond = cuda is not None and offered is not None and cuda > offered
            return (new or beyond, *newest(option))

        return settled
    if prefer == "oldest-driver":

        def undemanding(option: Option) -> Key:
            needed = Release.maybe(min_driver(matrix, (option,), arches))
            return (needed.parts if needed is not None else (), *newest(option))

        return undemanding
    return newest


def _descending(cuda: str | None) -> tuple[int, ...]:
    release = Release.maybe(cuda)
    return tuple(-part for part in release.parts[:2]) if release is not None else ()


def _last_minors(matrix: Matrix) -> dict[str, tuple[int, ...]]:
    """Newest minor release of each framework."""
    versions = {
        "torch": [row.version for row in matrix.torch_builds],
        "tensorflow": [row.version for row in matrix.tensorflow_releases],
        "jax": [row.version for row in matrix.jax_releases],
    }
    return {
        name: max(Release.parse(each).parts[:2] for each in found)
        for name, found in versions.items()
        if found
    }


def lts_branch(matrix: Matrix) -> DriverBranch | None:
    """Newest long-term driver branch that the tables are sure of and that had not ended."""
    day = matrix.date("driver")
    rows = [
        row
        for row in matrix.branches
        if row.kind == "lts" and row.confidence == "high" and not drivers.ended(row, day)
    ]
    return max(rows, key=lambda row: int(row.branch), default=None)


def min_driver(matrix: Matrix, options: Iterable[Option], arches: tuple[str, ...]) -> str | None:
    """Oldest Linux driver that runs some builds on some GPUs; None for CPU builds.

    The floor of each CUDA major; the first branch that knows each GPU; and where a GPU runs a build
    through PTX only, the driver of the CUDA release that made it.
    """
    needed: list[str] = []
    for option in options:
        if option.cuda is None:
            continue
        floor = query.minor_floor(matrix, option.cuda)
        own = query.own_driver(matrix, option.cuda)
        own_text = own.driver_linux if own is not None else None
        if floor is not None:
            needed.append(floor.driver_linux)
        elif own_text:
            needed.append(own_text)
        listed = listed_arches(matrix, option)
        through_ptx = listed is not None and any(
            arch.coverage(listed, cc, tegra=builds.tegra(matrix)).verdict == "yes-ptx"
            for cc in arches
        )
        if option.name == "torch" and through_ptx and own_text:
            needed.append(own_text)
    if not needed:
        return None
    for cc in arches:
        row = query.capability(matrix, cc)
        if row is not None and row.min_driver:
            needed.append(row.min_driver)
    # Of equal releases the text with more parts says more: 525 and 525.60.13 are not equal.
    return max(needed, key=Release.parse)


def listed_arches(matrix: Matrix, option: Option) -> tuple[str, ...] | None:
    """Architectures of a build: of its row, or those that stand for a documented lowest GPU."""
    if option.name == "torch":
        row: TorchBuild = option.row  # type: ignore[assignment]
        return row.arches or None
    return option.framework.arches
