"""Rows of the torch table from torch, torchvision and torchaudio wheels."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Any

from envcheck.refresh.client import AbsentError
from envcheck.refresh.derived import (
    PLATFORMS,
    Derived,
    DerivedRow,
    by_release,
    python_tags,
    typical,
    version,
    withdrawn,
)
from envcheck.refresh.metadata import environment

if TYPE_CHECKING:
    from envcheck.refresh.derived import Scope
    from envcheck.refresh.metadata import Requirement
    from envcheck.refresh.page import Wheel
    from envcheck.refresh.wheel_index import WheelIndex

WHEELS = "torch-wheels"
WHEELS_TITLE = (
    "METADATA, torch/version.py and torch/lib/libtorch_python.so of the torch wheels on the Python"
    " package index"
)
COMPANIONS = "torch-companion-wheels"
COMPANIONS_TITLE = "METADATA of the torchvision and torchaudio wheels"

_VERSION_FILE = "torch/version.py"
_LIBRARIES = ("torch/lib/libtorch_python.so", "torch/lib/libtorch_cuda.so")
"""Where the list of architectures is compiled in: the first one as `get_arch_list` gives it."""
_ARCHES = re.compile(rb"(?:(?:sm|compute)_\d{2,3}[af]? )+(?:sm|compute)_\d{2,3}[af]?")
_CUDNN = re.compile(r"nvidia-cudnn(-cu\d+)?\Z")
_NCCL = re.compile(r"nvidia-nccl(-cu\d+)?\Z")
_TRITON = re.compile(r"(pytorch-)?triton\Z")


def listed(section: str, row: dict[str, Any]) -> bool:
    """Whether the index should list what a row of the table describes."""
    return section == "build" and row.get("index_default") is True


def derive(index: WheelIndex, scope: Scope) -> Derived:
    """Read the builds that a plain `pip install torch` gets, and what belongs to them.

    Raises:
        UnreachableError: the index does not answer.
    """
    result = Derived()
    for release, wheels in scope.of_interest(index.wheels("torch"), "build"):
        for platform in PLATFORMS:
            files = [wheel for wheel in wheels if wheel.platform == platform]
            if not files:
                continue
            try:
                result.rows.append(_build(index, scope, release, files))
            except AbsentError as error:
                result.leave_out(release, platform, error)
    _companions(index, scope, result)
    return result


def version_facts(text: str) -> dict[str, str | None]:
    """Plain assignments of `torch/version.py`, such as `cuda` and `git_version`.

    Raises:
        AbsentError: the text is not Python.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError) as error:
        msg = f"{_VERSION_FILE} cannot be read: {error}"
        raise AbsentError(msg) from error
    found: dict[str, str | None] = {}
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.AnnAssign):
            targets = [node.target]
        value = getattr(node, "value", None)
        for target in targets:
            if isinstance(target, ast.Name) and isinstance(value, ast.Constant):
                found[target.id] = value.value if isinstance(value.value, str) else None
    return found


def arch_order(arch: str) -> tuple[bool, int, str]:
    """Machine code before PTX, then by number."""
    kind, _, number = arch.partition("_")
    digits = re.match(r"\d+", number)
    return (kind != "sm", int(digits.group()) if digits else 0, number)


def _build(index: WheelIndex, scope: Scope, release: str, files: list[Wheel]) -> DerivedRow:
    wheel = typical(files)
    text = index.member(wheel, _VERSION_FILE)
    if text is None:
        msg = f"{wheel.filename} has no {_VERSION_FILE}"
        raise AbsentError(msg)
    facts = version_facts(text)
    requires = index.metadata(wheel).applying(environment(wheel.platform, wheel.python))
    cuda = facts.get("cuda")
    values: dict[str, Any] = {
        "version": release,
        "platform": wheel.platform,
        "variant": "cu" + cuda.replace(".", "") if cuda else "cpu",
        "cuda": cuda or "cpu",
        "index_default": True,
        "cudnn": _pin(requires, _CUDNN),
        "nccl": _pin(requires, _NCCL),
        "triton": _pin(requires, _TRITON),
        "python": python_tags(files),
        "glibc": wheel.glibc,
        "git_version": facts.get("git_version"),
    }
    measured = False
    if not cuda:
        values["arches"] = []
    elif scope.arches:
        values["arches"] = _arches(index, wheel)
        measured = True
    return DerivedRow(
        section="build",
        values=values,
        source=WHEELS,
        title=WHEELS_TITLE,
        measured=measured,
        note="withdrawn" if withdrawn(files) else None,
    )


def _pin(requires: tuple[Requirement, ...], name: re.Pattern[str]) -> str | None:
    return next((each.exact for each in requires if name.match(each.name)), None)


def _arches(index: WheelIndex, wheel: Wheel) -> list[str]:
    for library in _LIBRARIES:
        keep = library.rpartition("/")[2] + ".arches.txt"
        found = index.search(wheel, library, _ARCHES, keep)
        if found and len(found) == 1:
            return sorted(found[0].split(), key=arch_order)
    msg = f"{wheel.filename}: no library says which GPUs it was compiled for"
    raise AbsentError(msg)


def _companions(index: WheelIndex, scope: Scope, result: Derived) -> None:
    """Which torchvision and torchaudio pin which torch."""
    pairs: dict[str, dict[str, str]] = {}
    for project in ("torchvision", "torchaudio"):
        for torch, release in _pinned(index, scope, project, result).items():
            pairs.setdefault(torch, {})[project] = release
    builds = {str(row.values["version"]) for row in result.rows}
    for torch in sorted(builds, key=version):
        if torch in pairs:
            values = {"torch": torch, **pairs[torch]}
            row = DerivedRow("companion", values, COMPANIONS, COMPANIONS_TITLE)
            result.rows.append(row)
    known = {row["torch"] for row in scope.rows("companion")}
    for torch in sorted(builds - set(pairs) - known, key=version):
        result.notes.append(
            f"torch {torch}: no torchvision or torchaudio names exactly this torch; its companion"
            " row has to be written by hand"
        )


def _pinned(index: WheelIndex, scope: Scope, project: str, result: Derived) -> dict[str, str]:
    """The newest release of a companion that names exactly one torch, by that torch."""
    rows = scope.rows("companion")
    wanted = {row.get(project) for row in rows if scope.wants(row["torch"])}
    known = {row.get(project) for row in rows} - {None}
    oldest = min((version(each) for each in known if each), default=None)
    found: dict[str, str] = {}
    try:
        wheels = index.wheels(project)
    except AbsentError as error:
        result.leave_out("", project, error)
        return {}
    for release, files in by_release(wheels):
        linux = [wheel for wheel in files if wheel.platform == PLATFORMS[-1]]
        key = version(release)
        # With a choice of releases, those that the table pairs with others need not be read.
        if not linux or key.is_prerelease or (oldest is not None and key < oldest):
            continue
        if scope.releases and release in known - wanted:
            continue
        wheel = typical(linux)
        try:
            requires = index.metadata(wheel).applying(environment(wheel.platform, wheel.python))
        except AbsentError as error:
            result.leave_out("", f"{project} {release}", error)
            continue
        for each in requires:
            if each.name == "torch" and each.exact != each.specifier:
                found[each.exact] = release
    return found
