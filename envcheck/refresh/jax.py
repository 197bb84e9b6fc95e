"""Rows of the jax table from jax and jax-cuda plugin wheels."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from envcheck.refresh.client import AbsentError
from envcheck.refresh.derived import (
    Derived,
    DerivedRow,
    by_release,
    platforms,
    python_tags,
    typical,
    withdrawn,
)
from envcheck.refresh.metadata import environment

if TYPE_CHECKING:
    from envcheck.refresh.derived import Scope
    from envcheck.refresh.metadata import Metadata
    from envcheck.refresh.page import Wheel
    from envcheck.refresh.wheel_index import WheelIndex

SOURCE = "jax-wheels"
TITLE = "METADATA of the jax, jaxlib and jax-cuda plugin wheels on the Python package index"

_MAJOR = re.compile(r"cuda(\d+)\Z")
_PLUGIN = re.compile(r"jax-cuda(\d+)-plugin\Z")
_SUFFIX = re.compile(r"-cu(\d+)\Z")


def listed(section: str, _row: dict[str, Any]) -> bool:
    """Whether the index should list what a row of the table describes."""
    return section in ("release", "plugin")


def derive(index: WheelIndex, scope: Scope) -> Derived:
    """Read what each release and its plugins ask for.

    Raises:
        UnreachableError: the index does not answer.
    """
    result = Derived()
    for release, wheels in scope.of_interest(index.wheels("jax"), "release"):
        try:
            metadata = index.metadata(typical(wheels))
        except AbsentError as error:
            result.leave_out(release, "METADATA", error)
            continue
        note = "withdrawn" if withdrawn(wheels) else None
        values = {
            "version": release,
            "requires_python": metadata.requires_python or "",
            "jaxlib": _jaxlib(metadata),
            "cuda_extra": _cuda_extra(metadata),
        }
        result.rows.append(DerivedRow("release", values, SOURCE, TITLE, note=note))
        for major in _majors(metadata):
            try:
                row = _plugin(index, release, major, metadata)
            except AbsentError as error:
                result.leave_out(release, f"plugin for CUDA {major}", error)
                continue
            if row is not None:
                result.rows.append(row)
    return result


def _jaxlib(metadata: Metadata) -> str | None:
    plain = metadata.applying({})
    return next((each.specifier for each in plain if each.name == "jaxlib"), None)


def _cuda_extra(metadata: Metadata) -> str | None:
    """CUDA major whose plugin the plain `cuda` extra asks for."""
    for each in metadata.of_extra("cuda", {}):
        match = _PLUGIN.match(each.name)
        if match is not None:
            return match[1]
    return None


def _majors(metadata: Metadata) -> list[str]:
    found = {match[1] for each in metadata.extras if (match := _MAJOR.match(each))}
    return sorted(found, key=int)


def _plugin(index: WheelIndex, release: str, major: str, metadata: Metadata) -> DerivedRow | None:
    wheels = dict(by_release(index.wheels(f"jax-cuda{major}-plugin"))).get(release, [])
    linux = [wheel for wheel in wheels if platforms([wheel])]
    if not linux:
        return None
    values = {
        "version": release,
        "cuda_major": major,
        "requires": _requires(index, linux, major, metadata),
        "python": python_tags(linux),
        "platforms": platforms(linux),
    }
    return DerivedRow("plugin", values, SOURCE, TITLE)


def _requires(index: WheelIndex, linux: list[Wheel], major: str, metadata: Metadata) -> list[str]:
    """NVIDIA packages of the plugin's extra; early plugins left them to an extra of jax."""
    wheel = typical([wheel for wheel in linux if wheel.platform == platforms(linux)[-1]])
    where = environment(wheel.platform, wheel.python)
    requires = index.metadata(wheel).of_extra("with-cuda", where)
    requires = requires or metadata.of_extra(f"cuda{major}", where)
    return sorted(
        each.name + each.specifier for each in requires if each.name.startswith("nvidia-")
    )
