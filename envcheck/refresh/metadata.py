"""The METADATA file of a wheel: what it requires, and where that applies."""

from __future__ import annotations

import re

from envcheck.model.base import model
from envcheck.refresh.page import normalised

_REQUIREMENT = re.compile(
    r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[(?P<extras>[^\]]*)\])?\s*"
    r"(?P<specifier>\([^)]*\)|[<>=!~][^;]*)?\s*(?:;(?P<marker>.*))?\Z",
    re.DOTALL,
)


@model
class Requirement:
    """One `Requires-Dist` line.

    Attributes:
        name: normalised.
        extras: extras asked of it, normalised.
        specifier: accepted versions as written, without spaces; empty for any.
        marker: where it applies, as written; empty for everywhere.
    """

    name: str
    extras: tuple[str, ...] = ()
    specifier: str = ""
    marker: str = ""

    @property
    def exact(self) -> str:
        """The version of an exact requirement, the specifier of any other."""
        version = self.specifier.removeprefix("==")
        plain = version != self.specifier and not set(version) & set(",*=")
        return version if plain else self.specifier


@model
class Metadata:
    """What a wheel says of itself.

    Attributes:
        requires_python: specifier.
        requires: in the order of the file.
        extras: names as written.
    """

    requires_python: str | None
    requires: tuple[Requirement, ...]
    extras: tuple[str, ...]

    def applying(self, environment: dict[str, str], extra: str = "") -> tuple[Requirement, ...]:
        """Requirements that hold in an environment.

        Args:
            environment: values of marker variables; others are taken from CPython on Linux.
            extra: the extra that was asked for; plain requirements only when empty.
        """
        return tuple(each for each in self.requires if _applies(each.marker, environment, extra))

    def of_extra(self, extra: str, environment: dict[str, str]) -> tuple[Requirement, ...]:
        """Requirements that an extra adds to the plain ones."""
        plain = self.applying(environment)
        return tuple(each for each in self.applying(environment, extra) if each not in plain)


def parse(text: str) -> Metadata:
    """Read the headers; requirements of a form that is not a plain name and range are left out."""
    headers = re.split(r"\r?\n\r?\n", text, maxsplit=1)[0]
    lines = re.sub(r"\r?\n[ \t]+", " ", headers).splitlines()
    values: dict[str, list[str]] = {}
    for line in lines:
        name, _, value = line.partition(":")
        values.setdefault(name.strip().lower(), []).append(value.strip())
    found = [_REQUIREMENT.match(line) for line in values.get("requires-dist", [])]
    return Metadata(
        requires_python=next(iter(values.get("requires-python", [])), None),
        requires=tuple(_requirement(match) for match in found if match is not None),
        extras=tuple(values.get("provides-extra", [])),
    )


def environment(platform: str, python: str) -> dict[str, str]:
    """Marker variables of a Linux platform and an interpreter tag.

    Args:
        platform: `linux_x86_64`.
        python: `cp312`; a tag without a version such as `py3` gives none.
    """
    found = {"platform_machine": platform.removeprefix("linux_")}
    match = re.match(r"cp(\d)(\d+)", python)
    if match is not None:
        found["python_version"] = f"{match[1]}.{match[2]}"
        found["python_full_version"] = f"{match[1]}.{match[2]}.0"
    return found


def _requirement(match: re.Match[str]) -> Requirement:
    extras = (normalised(each.strip()) for each in (match["extras"] or "").split(","))
    return Requirement(
        name=normalised(match["name"]),
        extras=tuple(each for each in extras if each),
        specifier=re.sub(r"[\s()]", "", match["specifier"] or ""),
        marker=(match["marker"] or "").strip(),
    )


_LINUX = {
    "implementation_name": "cpython",
    "os_name": "posix",
    "platform_machine": "x86_64",
    "platform_python_implementation": "CPython",
    "platform_release": "",
    "platform_system": "Linux",
    "platform_version": "",
    "sys_platform": "linux",
}


def _applies(marker: str, environment: dict[str, str], extra: str) -> bool:
    if not marker:
        return True
    from packaging.markers import InvalidMarker, Marker, UndefinedEnvironmentName

    values = {**_LINUX, **environment}
    # Older builders wrote names of extras as they came, newer ones normalise them.
    spellings = {extra, extra.replace("-", "_"), extra.replace("_", "-")}
    try:
        condition = Marker(marker)
        return any(condition.evaluate({**values, "extra": each}) for each in spellings)
    except (InvalidMarker, UndefinedEnvironmentName):
        return False
