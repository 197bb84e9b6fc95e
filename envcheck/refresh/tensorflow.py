"""Rows of the tensorflow table from tensorflow wheels."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from envcheck.refresh.client import AbsentError
from envcheck.refresh.derived import Derived, DerivedRow, platforms, python_tags, typical, withdrawn
from envcheck.refresh.metadata import environment

if TYPE_CHECKING:
    from envcheck.refresh.derived import Scope
    from envcheck.refresh.metadata import Metadata, Requirement
    from envcheck.refresh.page import Wheel
    from envcheck.refresh.wheel_index import WheelIndex

SOURCE = "tensorflow-wheels"
TITLE = "METADATA of the tensorflow wheels on the Python package index"

_EXTRA = "and-cuda"
_RUNTIME = re.compile(r"nvidia-cuda-runtime(?:-cu(\d+))?\Z")


def listed(section: str, _row: dict[str, Any]) -> bool:
    """Whether the index should list what a row of the table describes."""
    return section == "release"


def derive(index: WheelIndex, scope: Scope) -> Derived:
    """Read what each release asks for.

    Raises:
        UnreachableError: the index does not answer.
    """
    result = Derived()
    for release, wheels in scope.of_interest(index.wheels("tensorflow"), "release"):
        linux = [wheel for wheel in wheels if platforms([wheel])]
        if not linux:
            continue
        try:
            result.rows.append(_release(index, release, linux))
        except AbsentError as error:
            result.leave_out(release, "METADATA", error)
    return result


def _release(index: WheelIndex, release: str, linux: list[Wheel]) -> DerivedRow:
    where = platforms(linux)[-1]
    wheel = typical([wheel for wheel in linux if wheel.platform == where])
    metadata = index.metadata(wheel)
    extra = metadata.of_extra(_EXTRA, environment(wheel.platform, wheel.python))
    values = {
        "version": release,
        "requires_python": metadata.requires_python or "",
        "python": python_tags(linux),
        "platforms": platforms(linux),
        "cuda_major": _cuda_major(extra),
        "cudnn": _pin(extra, r"nvidia-cudnn(-cu\d+)?\Z"),
        "nccl": _pin(extra, r"nvidia-nccl(-cu\d+)?\Z"),
        "runtime": _pin(extra, _RUNTIME.pattern),
        "keras": _plain(metadata, "keras"),
        "numpy": _plain(metadata, "numpy"),
    }
    note = "withdrawn" if withdrawn(linux) else None
    return DerivedRow("release", values, SOURCE, TITLE, note=note)


def _pin(requires: tuple[Requirement, ...], name: str) -> str | None:
    return next((each.exact for each in requires if re.match(name, each.name)), None)


def _cuda_major(requires: tuple[Requirement, ...]) -> str | None:
    for each in requires:
        match = _RUNTIME.match(each.name)
        if match is not None:
            # From CUDA 13 on the name carries no number, but its versions do.
            number = re.search(r"\d+", match[1] or each.specifier)
            return number.group() if number else None
    return None


def _plain(metadata: Metadata, name: str) -> str | None:
    """The first requirement of a name with its marker, as written but for spaces."""
    for each in metadata.requires:
        if each.name == name:
            marker = re.sub(r"\s+", "", each.marker)
            return f"{each.specifier};{marker}" if marker else each.specifier
    return None
