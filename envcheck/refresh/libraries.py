"""Rows of the table of libraries from the wheels of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from envcheck.refresh.client import AbsentError
from envcheck.refresh.derived import Derived, DerivedRow, by_release, typical, version, withdrawn
from envcheck.refresh.metadata import environment

if TYPE_CHECKING:
    from envcheck.refresh.derived import Scope
    from envcheck.refresh.metadata import Metadata, Requirement
    from envcheck.refresh.wheel_index import WheelIndex

SOURCE = "library-wheels"
TITLE = "METADATA of the wheels of each library on the Python package index"

LIBRARIES = (
    "accelerate",
    "bitsandbytes",
    "flax",
    "lightning",
    "nemo-toolkit",
    "pytorch-lightning",
    "transformers",
    "vllm",
    "xformers",
)
"""Those whose releases come as wheels; source archives state nothing that can be read."""

ASKED = frozenset(
    {
        "accelerate",
        "jax",
        "lightning",
        "pytorch-lightning",
        "tensorflow",
        "torch",
        "torchaudio",
        "torchvision",
        "transformers",
        "xformers",
    }
)
"""Distributions that a requirement is kept for: frameworks, and libraries of the table itself."""

_FRAMEWORKS = ("jax", "tensorflow", "torch")


def listed(_section: str, _row: dict[str, Any]) -> bool:
    """Never: a row ends a run of equal releases, and a newer release ends the run elsewhere."""
    return False


def derive(index: WheelIndex, scope: Scope) -> Derived:
    """Read what each release asks of frameworks.

    Of releases in a row that ask for the same, only the first and the last become rows.

    Raises:
        UnreachableError: the index does not answer.
    """
    result = Derived()
    for library in LIBRARIES:
        runs: list[list[tuple[str, list[dict[str, Any]]]]] = []
        try:
            releases = by_release(index.wheels(library))
        except AbsentError as error:
            result.leave_out("", library, error)
            continue
        for release, wheels in releases:
            if version(release).is_prerelease or withdrawn(wheels) or not scope.wants(release):
                continue
            try:
                rows = _rows(library, release, index.metadata(typical(wheels)))
            except AbsentError as error:
                result.leave_out(f"{library} {release}", "METADATA", error)
                continue
            if runs and _said(runs[-1][-1][1]) == _said(rows):
                runs[-1].append((release, rows))
            else:
                runs.append([(release, rows)])
        for run in runs:
            for _, rows in (run[0], *run[1:][-1:]):
                result.rows += [DerivedRow("requirement", row, SOURCE, TITLE) for row in rows]
    return result


def _rows(library: str, release: str, metadata: Metadata) -> list[dict[str, Any]]:
    where = environment("linux_x86_64", "cp312")
    plain = metadata.applying(where)
    asked: list[tuple[str | None, Requirement]] = [(None, each) for each in plain]
    for extra in _FRAMEWORKS:
        asked += [(extra, each) for each in metadata.of_extra(extra, where) if each.name == extra]
    found: dict[tuple[str, str | None], dict[str, Any]] = {}
    for of_extra, each in asked:
        if each.name in ASKED - {library} and (each.specifier or each.name in _FRAMEWORKS):
            found.setdefault(
                (each.name, of_extra),
                {
                    "library": library,
                    "version": release,
                    "requires_framework": each.name,
                    "specifier": each.specifier,
                    "extra": of_extra,
                    "requires_python": metadata.requires_python,
                },
            )
    return list(found.values())


def _said(rows: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    return sorted(
        tuple(str(value) for name, value in row.items() if name != "version") for row in rows
    )
