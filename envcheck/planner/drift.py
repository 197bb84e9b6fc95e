"""Where a machine and its environment differ from a lock, field by field.

What could not be read is no difference; it is said as unknown. What a lock leaves open is not
compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.matrix import query
from envcheck.model.finding import Drift, Unknown
from envcheck.rules import facts, install
from envcheck.rules.requirements import normal
from envcheck.versions import Release

if TYPE_CHECKING:
    from collections.abc import Iterator

    from envcheck.matrix.loader import Matrix
    from envcheck.model.environment import Framework
    from envcheck.model.plan import Lock, Pin, PlannedFramework
    from envcheck.model.snapshot import Snapshot

ABSENT = "not installed"
CHECK = "lock"
"""Name under which a field that could not be compared is unknown."""


def compare(
    lock: Lock, snapshot: Snapshot, matrix: Matrix
) -> tuple[tuple[Drift, ...], tuple[Unknown, ...]]:
    """Differences between a lock and a snapshot, and what could not be compared."""
    drifts = tuple(
        Drift(field=field, locked=locked, found=found)
        for field, locked, found in (
            *_machine(lock, snapshot, matrix),
            *_interpreter(lock, snapshot),
            *_packages(lock, snapshot),
            *_frameworks(lock, snapshot),
        )
        if locked != found
    )
    unknown = []
    if snapshot.env.packages is None:
        reason = snapshot.gap("env.packages") or "the installed distributions were not read"
        unknown.append(Unknown(check=CHECK, reason=f"the pins could not be compared: {reason}"))
    return drifts, tuple(unknown)


Compared = tuple[str, str, str]
"""Field, what is locked, what was found."""


def _machine(lock: Lock, snapshot: Snapshot, matrix: Matrix) -> Iterator[Compared]:
    """GPUs, driver and system; an image has none of its own."""
    if snapshot.source.startswith("image"):
        return
    here = sorted(_gpu(each.name, matrix) for each in facts.gpus(snapshot) if each.name)
    wanted = sorted(_gpu(name, matrix) for name in lock.target.gpus)
    if here and wanted:
        yield "gpus", _counted(wanted), _counted(here)
    driver = facts.driver_version(snapshot)
    if driver is not None:
        locked = Release.maybe(lock.target.driver)
        if locked is not None and not driver.starts_like(locked):
            yield "driver", locked.text, driver.text
        lowest = Release.maybe(lock.stack.min_driver)
        # A Windows driver counts in numbers of its own.
        if lowest is not None and driver < lowest and not snapshot.host.wsl:
            yield "min_driver", f"{lowest} or newer", driver.text
    system = snapshot.host.os
    if lock.stack.os and system.id and system.version and not facts.in_container(snapshot):
        row = query.distro(matrix, system.id, system.version)
        found = f"{row.id}{row.version}" if row is not None else f"{system.id}{system.version}"
        yield "os", lock.stack.os, found


def _gpu(name: str | None, matrix: Matrix) -> str:
    row = query.product(matrix, name) if name else None
    return row.name if row is not None else name or ""


def _counted(names: list[str]) -> str:
    return ", ".join(
        f"{names.count(each)}x {each}" if names.count(each) > 1 else each
        for each in dict.fromkeys(names)
    )


def _interpreter(lock: Lock, snapshot: Snapshot) -> Iterator[Compared]:
    python = snapshot.env.python
    version = Release.maybe(python.version)
    if version is not None:
        yield "python", lock.stack.python, version.series
    if python.platform is not None:
        yield "platform", lock.stack.platform, python.platform


def _packages(lock: Lock, snapshot: Snapshot) -> Iterator[Compared]:
    if snapshot.env.packages is None:
        return
    for pin in lock.stack.pins:
        package = snapshot.env.package(normal(pin.name))
        framework = snapshot.env.framework(pin.name)
        if package is None:
            yield pin.name, pin.version, framework.version if framework else ABSENT
        else:
            yield pin.name, *_versions(lock, pin, package.version, framework)


def _versions(lock: Lock, pin: Pin, version: str, framework: Framework | None) -> tuple[str, str]:
    """Both versions with the same parts: a build's own index adds its variant, others do not.

    A framework whose plain wheel was replaced by another variant keeps its public version, so where
    the files say which variant it is, that is compared.
    """
    found = version
    if framework is not None and "+" in framework.version:
        found = framework.version
    planned = next((each for each in lock.stack.frameworks if each.name == pin.name), None)
    locked = pin.version
    if "+" not in locked and "+" in found:
        if planned is not None and planned.variant is not None:
            locked = f"{locked}+{planned.variant}"
        else:
            found = install.public_version(found)
    elif "+" in locked and "+" not in found:
        locked = install.public_version(locked)
    if Release.maybe(locked) == Release.maybe(found) and _tail(locked) == _tail(found):
        return locked, locked  # 2.0 is 2.0.0
    return locked, found


def _tail(version: str) -> str:
    """What follows the numbers: `.post1`, `+cu128`."""
    release = Release.maybe(version)
    return version[len(release.text) :] if release is not None else version


def _frameworks(lock: Lock, snapshot: Snapshot) -> Iterator[Compared]:
    for planned in lock.stack.frameworks:
        found = snapshot.env.framework(planned.name)
        if found is None:
            continue
        if planned.cuda and found.cuda:
            cuda, here = Release.parse(planned.cuda), Release.maybe(found.cuda)
            if here is not None and not here.starts_like(cuda):
                yield f"{planned.name}.cuda", planned.cuda, found.cuda
        elif planned.cuda is None and found.cuda:
            yield f"{planned.name}.cuda", "cpu", found.cuda
        elif planned.cuda and found.cpu_only:
            yield f"{planned.name}.cuda", planned.cuda, "cpu"
        yield from _brought(planned, found, snapshot)


def _brought(planned: PlannedFramework, found: Framework, snapshot: Snapshot) -> Iterator[Compared]:
    """cuDNN and NCCL: the installed wheel of the framework's CUDA major, else what it pins."""
    major = Release.maybe(planned.cuda)
    for stem, locked, pinned in (
        ("cudnn", planned.cudnn, found.cudnn),
        ("nccl", planned.nccl, found.nccl),
    ):
        if locked is None or major is None:
            continue
        package = snapshot.env.package(f"nvidia-{stem}-cu{major.major}")
        here = package.version if package is not None else pinned
        have, want = Release.maybe(here), Release.maybe(locked)
        if have is not None and want is not None and not have.starts_like(want):
            yield f"{planned.name}.{stem}", locked, have.text
