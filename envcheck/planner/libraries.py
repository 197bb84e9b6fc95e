"""Libraries on top of frameworks: for each a release of the table that accepts all the others."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from envcheck.matrix.schema import LibraryRequirement
from envcheck.model.base import model
from envcheck.model.environment import Package
from envcheck.model.plan import Pin
from envcheck.planner.bundle import Bundle, Conflict, bounds_of
from envcheck.planner.options import companions
from envcheck.planner.wants import COMPANIONS, meets
from envcheck.rules.framework.declared import FRAMEWORKS
from envcheck.rules.framework.extensions import NATIVE
from envcheck.rules.requirements import parse
from envcheck.versions import Release

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.planner.options import Option
    from envcheck.planner.wants import Wants

MOST_TRIES = 2000
"""Steps after which a combination of libraries counts as not found."""
_SOURCE_ONLY = "source archives only"

Rows = tuple[LibraryRequirement, ...]


@model
class Known:
    """A release of a library and what it asks for."""

    name: str
    version: str
    rows: Rows

    @property
    def source_only(self) -> bool:
        """Whether there is no wheel of it, so that it is built where it is installed."""
        return any(_SOURCE_ONLY in (row.note or "") for row in self.rows)


def releases(matrix: Matrix, name: str) -> tuple[Known, ...]:
    """Releases of a library, newest first, rows of low confidence left out."""

    def read() -> tuple[Known, ...]:
        rows: dict[str, list[LibraryRequirement]] = {}
        for row in matrix.find(LibraryRequirement, library=name):
            if row.confidence != "low":
                rows.setdefault(row.version, []).append(row)
        found = [Known(name=name, version=each, rows=tuple(rows[each])) for each in rows]
        return tuple(sorted(found, key=lambda each: Release.parse(each.version), reverse=True))

    return matrix.memo(f"planner.library.{name}", read)


def add_libraries(
    matrix: Matrix, bundle: Bundle, wants: Wants, python: str, *, partial: bool = False
) -> Bundle | Conflict:
    """Put companions and libraries on top of frameworks.

    Args:
        matrix: the tables.
        bundle: the frameworks.
        wants: the libraries.
        python: `3.12`.
        partial: more frameworks are to come, so that one that is not there is no reason.

    Returns:
        The fuller bundle; or why the first library that found no release found none.
    """
    torch = next((each for each in bundle.options if each.name == "torch"), None)
    search = _Search(matrix, bundle, wants, python, torch, partial=partial)
    names = wants.companions if torch is not None or not partial else ()
    if names:
        problem = search.companion(names)
        if problem is not None:
            return problem
    chosen = search.fill(list(wants.libraries))
    if chosen is None:
        return search.problem or Conflict(reason="no combination of the libraries was found")
    return search.result(chosen)


class _Search:
    """Backtracking over the releases of each library; what they imply joins in."""

    def __init__(
        self,
        matrix: Matrix,
        bundle: Bundle,
        wants: Wants,
        python: str,
        torch: Option | None,
        *,
        partial: bool,
    ) -> None:
        self.matrix, self.bundle, self.wants, self.python = matrix, bundle, wants, python
        self.torch, self.partial = torch, partial
        self.tries = 0
        self.problem: Conflict | None = None
        # Name -> version with local tag, of everything that stands before libraries are chosen.
        self.fixed = {each.name: each.framework.version for each in bundle.options}
        self.beside: dict[str, Pin] = {}

    def companion(self, names: tuple[str, ...]) -> Conflict | None:
        """Pin companions of torch; why not, where that cannot be."""
        if self.torch is None:
            return Conflict(reason=f"{', '.join(names)} without torch")
        pins = companions(self.matrix, self.torch, names)
        if pins is None:
            return Conflict(
                reason=f"which {' and '.join(names)} belong to {self.torch.label} is not known"
            )
        for pin in pins:
            if not self.wants.allows(pin.name, pin.version):
                return Conflict(
                    reason=f"{pin.name} {pin.version} belongs to {self.torch.label}, and "
                    f"{self.wants.asked(pin.name).line} is wanted",
                    findings=("torch-companion-mismatch",),
                )
            self.beside[pin.name] = pin
            self.fixed[pin.name] = pin.version
        return None

    def fill(self, names: list[str], chosen: tuple[Known, ...] = ()) -> tuple[Known, ...] | None:
        """Choose a release for each name in turn, newest first."""
        left = [name for name in names if name not in {each.name for each in chosen}]
        if not left:
            return chosen
        name = left[0]
        wanted = name in self.wants.libraries
        for known in releases(self.matrix, name):
            if wanted and not self.wants.allows(name, known.version):
                continue
            self.tries += 1
            if self.tries > MOST_TRIES:
                return None
            problem = self._refused(known, chosen)
            if problem is not None:
                self.problem = self.problem or problem
                continue
            found = self.fill(left[1:] + self._implied(known), (*chosen, known))
            if found is not None:
                return found
        if not wanted:
            # The installer finds a release of what a library brings along, if there is one.
            return self.fill(left[1:], chosen)
        return None

    def _implied(self, known: Known) -> list[str]:
        """Other libraries of the table that a library brings along."""
        return [
            row.requires_framework
            for row in self._rows(known)
            if row.requires_framework not in (*FRAMEWORKS, *COMPANIONS)
            and releases(self.matrix, row.requires_framework)
        ]

    def _rows(self, known: Known) -> Rows:
        extras = self.wants.asked(known.name).extras
        return tuple(row for row in known.rows if row.extra is None or row.extra in extras)

    def _refused(self, known: Known, chosen: tuple[Known, ...]) -> Conflict | None:
        label = f"{known.name} {known.version}"
        needs = next((row.requires_python for row in known.rows if row.requires_python), None)
        if needs and bounds_of(needs, "python").allows(self.python) is False:
            return Conflict(
                reason=f"{label} needs Python {needs}", findings=("no-wheel-for-python",)
            )
        here = {**self.fixed, **{each.name: each.version for each in chosen}}
        for row in known.rows:
            # An extra named after a framework says what the library asks of it once it is there.
            plain = row.extra in (None, row.requires_framework)
            if not plain and row.extra not in self.wants.asked(known.name).extras:
                continue
            name = row.requires_framework
            asked = bounds_of(row.specifier, name)
            if name in COMPANIONS and row.extra is None and name not in here:
                if self.torch is None or self.companion((name,)) is not None:
                    continue
                here[name] = self.fixed[name]
            if name in here and not meets(asked, here[name]):
                return Conflict(
                    reason=f"{label} asks for {name}{row.specifier}, not {here[name]}",
                    findings=(
                        "extension-built-for-other-torch"
                        if known.name in NATIVE and name == "torch" and asked.exact
                        else "library-requires-other-framework",
                    ),
                )
            absent = name in FRAMEWORKS and name not in here
            if absent and row.extra is None and not self.partial:
                return Conflict(reason=f"{label} needs {name}")
            if name in FRAMEWORKS and name in here:
                later = self._later(known, row, here[name])
                if later is not None:
                    return Conflict(reason=later, findings=("library-requires-other-framework",))
        for other in chosen:
            for row in self._rows(other):
                asked = bounds_of(row.specifier, known.name)
                if row.requires_framework == known.name and not meets(asked, known.version):
                    return Conflict(
                        reason=f"{other.name} {other.version} asks for "
                        f"{known.name}{row.specifier}, not {known.version}",
                        findings=("library-requires-other-framework",),
                    )
        return None

    def _later(self, known: Known, row: LibraryRequirement, version: str) -> str | None:
        """Why a bound that an old release left open does not count for a framework's new release.

        It was written before that release was known; a later release that asks for an older one
        knew better.
        """
        have = Release.parse(version)
        name = row.requires_framework
        for other in releases(self.matrix, known.name):
            if Release.parse(other.version) <= Release.parse(known.version):
                break
            for each in other.rows:
                if (each.requires_framework, each.extra) != (name, row.extra):
                    continue
                for sign, text in bounds_of(each.specifier, name).bounds:
                    limit = Release.maybe(text)
                    if sign in {"==", "<", "<=", "~="} and limit is not None and have > limit:
                        if meets(bounds_of(f"{sign}{text}", name), version):
                            continue  # 2.1.5 is within ==2.1.* and ~=2.1
                        return (
                            f"{known.name} {known.version} is older than {other.version}, which "
                            f"asks for {name}{each.specifier}, not {version}"
                        )
        return None

    def result(self, chosen: tuple[Known, ...]) -> Bundle:
        """The bundle with what was chosen, wanted libraries in the order asked for."""
        pins = list(self.beside.values())
        packages = [Package(name=pin.name, version=pin.version) for pin in pins]
        notes = list(self.bundle.notes)
        order = {name: at for at, name in enumerate(self.wants.libraries)}
        for known in sorted(chosen, key=lambda each: order.get(each.name, -1)):
            extras = self.wants.asked(known.name).extras
            pins.append(Pin(name=known.name, version=known.version, extras=extras))
            packages.append(
                Package(name=known.name, version=known.version, build=self._build(known))
            )
            if known.source_only:
                notes.append(
                    f"{known.name} {known.version} comes as source: it is built where it is "
                    "installed, with nvcc of the CUDA release of the framework"
                )
        for name in self.wants.exact:
            version = self._exact(name)
            if version is None:
                continue
            extras = self.wants.asked(name).extras
            pins.append(Pin(name=name, version=version, extras=extras))
            packages.append(Package(name=name, version=version))
            notes.append(f"{name} {version} is carried along: no table says what it fits")
        return dataclasses.replace(
            self.bundle,
            extra=(*self.bundle.extra, *packages),
            pins=(*self.bundle.pins, *pins),
            built=tuple(known.name for known in chosen if known.source_only),
            notes=tuple(notes),
        )

    def _exact(self, name: str) -> str | None:
        asked = self.wants.asked(name)
        if asked.exact is not None:
            return asked.exact
        # keras, which TensorFlow brings along: the release that its requirement starts at.
        for option in self.bundle.options:
            for package in option.packages:
                for line in package.requires:
                    parsed = parse(line)
                    if parsed is not None and parsed[0].name == name:
                        return next((t for sign, t in parsed[0].bounds if sign == ">="), None)
        return None

    def _build(self, known: Known) -> str | None:
        """Build tag of a native extension's wheel: the index has it for torch's default variant."""
        if known.name not in NATIVE or known.source_only or self.torch is None:
            return None
        cuda = next(
            (
                row.variant
                for row in self.matrix.torch_builds
                if row.version == self.torch.version
                and row.platform == self.torch.framework.platform
                and row.index_default
            ),
            None,
        )
        return f"{known.version}+{cuda}" if cuda and cuda != "cpu" else None
