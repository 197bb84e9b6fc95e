"""One environment to judge: builds of frameworks, the wheels they share, what is on top."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from envcheck.matrix import query
from envcheck.model.base import model
from envcheck.model.environment import Package
from envcheck.model.plan import Pin
from envcheck.rules import pins as nvidia_pins
from envcheck.rules.requirements import Requirement, parse, required
from envcheck.versions import Release

if TYPE_CHECKING:
    from collections.abc import Sequence

    from envcheck.matrix.loader import Matrix
    from envcheck.model.plan import PlannedFramework
    from envcheck.model.snapshot import Snapshot
    from envcheck.planner.options import Option

_MISMATCH = {
    "cudnn": "cudnn-version-mismatch",
    "nccl": "nccl-version-mismatch",
    "cuda-runtime": "cuda-runtime-mismatch",
}
"""Stem of an NVIDIA wheel that frameworks share -> finding of a wrong one."""
_SHOWN = {"cudnn": "cuDNN", "nccl": "NCCL", "cuda-runtime": "CUDA runtime"}


@model
class Conflict:
    """Why packages cannot be installed together."""

    reason: str
    findings: tuple[str, ...] = ()


@model
class Bundle:
    """What one environment would hold.

    Attributes:
        options: the frameworks' builds.
        nvidia: wheels of NVIDIA that they share, in the version that all of them accept.
        extra: packages on top, companions and libraries.
        pins: of companions and libraries, in the order in which they are installed.
        built: names of pins that come as source, and are built where they are installed.
        notes: what has to be known besides.
    """

    options: tuple[Option, ...]
    nvidia: tuple[Package, ...] = ()
    extra: tuple[Package, ...] = ()
    pins: tuple[Pin, ...] = ()
    built: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def packages(self) -> tuple[Package, ...]:
        """Every package that is known of."""
        own = tuple(package for option in self.options for package in option.packages)
        return own + self.nvidia + self.extra

    def all_pins(self) -> tuple[Pin, ...]:
        """Everything to install by name.

        NVIDIA's wheels are pinned where no framework pins them exactly: torch does.
        """
        torch = next((each for each in self.options if each.name == "torch"), None)
        beside = [pin for pin in self.pins if pin.name in ("torchvision", "torchaudio")]
        found = [*torch.pins, *beside] if torch is not None else []
        found += [pin for each in self.options if each is not torch for pin in each.pins]
        if torch is None:
            found += [Pin(name=each.name, version=each.version) for each in self.nvidia]
        found += [pin for pin in self.pins if pin not in beside]
        return tuple(found)

    def planned(self) -> tuple[PlannedFramework, ...]:
        """The frameworks as plans show them, with the cuDNN and NCCL that they get."""
        found = []
        for option in self.options:
            own = {
                stem: package.version
                for package in self.nvidia
                if (stem := _stem(package.name)) is not None
                and any(
                    line.startswith(package.name) for p in option.packages for line in p.requires
                )
            }
            planned = option.planned
            found.append(
                dataclasses.replace(
                    planned,
                    cudnn=planned.cudnn or own.get("cudnn"),
                    nccl=planned.nccl or own.get("nccl"),
                )
            )
        return tuple(found)


def _stem(name: str) -> str | None:
    parts = nvidia_pins.split(name)
    return parts[0] if parts is not None else None


def environment(base: Snapshot, bundle: Bundle, python: str) -> Snapshot:
    """A machine with this environment in it."""
    interpreter = dataclasses.replace(
        base.env.python, version=python, tag=f"cp{python.replace('.', '')}"
    )
    return dataclasses.replace(
        base,
        env=dataclasses.replace(
            base.env,
            python=interpreter,
            packages=bundle.packages,
            frameworks=tuple(option.framework for option in bundle.options),
        ),
    )


Asks = tuple[tuple[str, Requirement], ...]
"""Who asks for a package, and how."""


def share(
    matrix: Matrix, base: Snapshot, options: Sequence[Option]
) -> tuple[Package, ...] | Conflict:
    """The NVIDIA wheels that all of some builds accept.

    A wheel that one build asks for exactly is of that version; where all give ranges, the newest
    release of the table that they allow. What no table lists is left to the installer.
    """
    asked: dict[str, list[tuple[str, Requirement]]] = {}
    for option in options:
        for ask in asks_of(matrix, base, option):
            asked.setdefault(ask.name, []).append((option.label, ask))
    found = []
    for name, asks in asked.items():
        stem = _stem(name) or ""
        silent = _silent(options, name, asks)
        if silent is not None:
            return Conflict(reason=f"which {_SHOWN[stem]} {silent} asks for is not known")
        if stem == "cuda-runtime":
            if (clash := _runtime_clash(options, asks)) is not None:
                return clash
            continue
        version = next((ask.exact for _, ask in asks if ask.exact), None)
        if version is None:
            version = _newest(matrix, base, stem, name, tuple(ask for _, ask in asks))
        if version is None:
            continue
        refusing = [(who, ask) for who, ask in asks if ask.allows(version) is False]
        if refusing:
            exact = next((each for each in asks if each[1].exact), asks[0])
            return _clash(stem, exact, refusing[0])
        found.append(Package(name=name, version=version))
    return tuple(found)


def asks_of(matrix: Matrix, base: Snapshot, option: Option) -> tuple[Requirement, ...]:
    """What a build asks of the wheels that frameworks share; none depends on the Python."""

    def read() -> tuple[Requirement, ...]:
        return tuple(
            ask
            for package in option.packages
            for ask in required(base, package, extras=nvidia_pins.CUDA_EXTRAS)
            if _stem(ask.name) in _MISMATCH
        )

    return matrix.memo(
        f"planner.asks.{option.framework.platform}.{option.label}.{option.cuda}", read
    )


def _silent(
    options: Sequence[Option], name: str, asks: list[tuple[str, Requirement]]
) -> str | None:
    """A torch build of the same CUDA major whose row does not say what it pins."""
    parts = nvidia_pins.split(name)
    if parts is None or parts[0] == "cuda-runtime":
        return None
    askers = {who for who, _ in asks}
    return next(
        (
            each.label
            for each in options
            if each.name == "torch"
            and each.label not in askers
            and (release := Release.maybe(each.cuda)) is not None
            and release.major == parts[1]
        ),
        None,
    )


def _runtime_clash(
    options: Sequence[Option], asks: list[tuple[str, Requirement]]
) -> Conflict | None:
    """torch pins the CUDA runtime of its own release: some patch of it must be allowed."""
    torch = next((each for each in options if each.name == "torch" and each.cuda), None)
    if torch is None:
        return None
    series = Release.parse(torch.cuda or "").series
    for who, ask in asks:
        parts = nvidia_pins.split(ask.name)
        if parts is None or parts[1] != Release.parse(torch.cuda or "").major:
            continue  # two majors are another finding
        patches = [f"{series}.0", f"{series}.9999", ask.exact or ""]
        if not any(p.startswith(f"{series}.") and ask.allows(p) is not False for p in patches):
            line = f"{ask.name}=={series}.*"
            mine = (torch.label, Requirement(name=ask.name, line=line))
            return _clash("cuda-runtime", mine, (who, ask))
    return None


def _clash(stem: str, one: tuple[str, Requirement], other: tuple[str, Requirement]) -> Conflict:
    lines = [ask.line.partition(";")[0].strip() for _, ask in (one, other)]
    return Conflict(
        reason=f"{one[0]} asks for {lines[0]}, {other[0]} for {lines[1]}",
        findings=(_MISMATCH[stem],),
    )


def _newest(
    matrix: Matrix, base: Snapshot, stem: str, name: str, asks: tuple[Requirement, ...]
) -> str | None:
    """Newest release of the table that all bounds allow, and that names the GPUs of the target."""
    arches = frozenset(gpu.arch for gpu in base.host.gpus or () if gpu.arch)
    bounds = frozenset(bound for ask in asks for bound in ask.bounds)
    key = f"planner.newest.{name}.{sorted(bounds)}.{sorted(arches)}"
    return matrix.memo(key, lambda: _newest_now(matrix, stem, name, asks, arches))


def _newest_now(
    matrix: Matrix, stem: str, name: str, asks: tuple[Requirement, ...], arches: frozenset[str]
) -> str | None:
    parts = nvidia_pins.split(name)
    major = str(parts[1]) if parts is not None else ""
    if stem == "cudnn":
        versions = [
            row.cudnn
            for row in matrix.cudnn_releases
            if major in row.cuda_majors and not row.yanked and row.confidence != "low"
        ]
    else:
        versions = [
            row.nccl
            for row in matrix.nccl_releases
            if major in row.cuda_majors and row.confidence != "low"
        ]
    allowed = [text for text in versions if all(ask.allows(text) is True for ask in asks)]
    if stem == "cudnn":
        naming = [text for text in allowed if arches <= _capabilities(matrix, text, major)]
        allowed = naming or allowed
    # The last of equal releases: a `.post1` repairs its namesake.
    return max(reversed(allowed), key=Release.parse) if allowed else None


def _capabilities(matrix: Matrix, cudnn: str, major: str) -> set[str]:
    rows = query.cudnn_support(matrix, cudnn, major)
    return {cc for row in rows for cc in row.capabilities}


def inconsistent(snapshot: Snapshot) -> Conflict | None:
    """What an installer would refuse: a neighbour outside of a package's own requirement."""
    extras = nvidia_pins.CUDA_EXTRAS
    for package in snapshot.env.packages or ():
        for ask in required(snapshot, package, extras=extras):
            other = snapshot.env.package(ask.name)
            if other is not None and ask.allows(other.version) is False:
                stem = _stem(ask.name) or ""
                return Conflict(
                    reason=f"{package.name} {package.version} asks for "
                    f"{ask.line.partition(';')[0].strip()}, not {other.name} {other.version}",
                    findings=(_MISMATCH[stem],) if stem in _MISMATCH else (),
                )
    return None


def bounds_of(specifier: str, name: str) -> Requirement:
    """A specifier as a requirement of a distribution."""
    parsed = parse(f"{name}{specifier}")
    return parsed[0] if parsed is not None else Requirement(name=name)
