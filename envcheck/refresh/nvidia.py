"""Rows of the cuDNN and NCCL tables from NVIDIA's wheels."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from envcheck.refresh.client import AbsentError
from envcheck.refresh.derived import PLATFORMS, Derived, DerivedRow, typical, version, withdrawn

if TYPE_CHECKING:
    from envcheck.refresh.derived import Scope
    from envcheck.refresh.page import Wheel
    from envcheck.refresh.wheel_index import WheelIndex

CUDNN = "cudnn-wheels"
CUDNN_TITLE = "The nvidia-cudnn Python packages and the files in them"
NCCL = "nccl-wheels"
NCCL_TITLE = "The nvidia-nccl Python packages"

_LIBRARY = re.compile(r".*/lib/(libcudnn[^/]*\.so[^/]*)\Z")


def listed(section: str, row: dict[str, Any]) -> bool:
    """Whether the index should list what a row of the table describes."""
    return section == "release" and bool(row.get("cuda_majors"))


def derive_cudnn(index: WheelIndex, scope: Scope) -> Derived:
    """Read which cuDNN releases there are for which CUDA, and the files of new ones.

    Raises:
        UnreachableError: the index does not answer.
    """
    result = Derived()
    known = {row["cudnn"] for row in scope.rows("release")}
    for release, majors in _releases(index, scope, "cudnn", result).items():
        files = [wheel for wheels in majors.values() for wheel in wheels]
        values: dict[str, Any] = {
            "cudnn": release,
            "cuda_majors": list(majors),
            "yanked": True if withdrawn(files) else None,
        }
        # Files in a wheel do not change, so those of a listed release need not be read again.
        if release not in known:
            try:
                values["libraries"] = _libraries(index, typical(files))
            except AbsentError as error:
                result.leave_out(release, "files", error)
                continue
        row = DerivedRow("release", values, CUDNN, CUDNN_TITLE, measured="libraries" in values)
        result.rows.append(row)
    return result


def derive_nccl(index: WheelIndex, scope: Scope) -> Derived:
    """Read which NCCL releases there are for which CUDA.

    Raises:
        UnreachableError: the index does not answer.
    """
    result = Derived()
    for release, majors in _releases(index, scope, "nccl", result).items():
        values = {"nccl": release, "cuda_majors": list(majors)}
        result.rows.append(DerivedRow("release", values, NCCL, NCCL_TITLE))
    return result


def _releases(
    index: WheelIndex, scope: Scope, library: str, result: Derived
) -> dict[str, dict[str, list[Wheel]]]:
    """Wheels of each release by CUDA major."""
    found: dict[str, dict[str, list[Wheel]]] = {}
    for major in scope.cuda_majors:
        try:
            wheels = index.wheels(f"nvidia-{library}-cu{major}")
        except AbsentError as error:
            result.leave_out("", f"nvidia-{library}-cu{major}", error)
            continue
        linux = [wheel for wheel in wheels if wheel.platform in PLATFORMS]
        for release, files in scope.of_interest(linux, "release", library):
            found.setdefault(release, {})[major] = files
    return dict(sorted(found.items(), key=lambda each: version(each[0])))


def _libraries(index: WheelIndex, wheel: Wheel) -> list[str]:
    matches = (_LIBRARY.match(name) for name in index.names(wheel))
    found = sorted({match[1] for match in matches if match})
    if not found:
        msg = f"{wheel.filename} holds no libcudnn"
        raise AbsentError(msg)
    return found
