"""Which GPUs a build has machine code for.

A build carries *targets*: `sm_86` is machine code (SASS) for capability 8.6, `compute_86` is PTX
that the driver compiles when the program starts.

- SASS runs on the same major capability at the same or a higher minor: `sm_86` on 8.9, never on
  9.0.
- `sm_90a` runs on capability 9.0 only; `sm_100f` runs on its family: same major, same or higher
  minor.
- PTX runs on anything at or above its capability, if the driver's own CUDA is not older than the
  toolkit that made the PTX.
- Tegra and discrete chips of one major are not promised to run each other's machine code: not
  known.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from envcheck.model.base import model

if TYPE_CHECKING:
    from collections.abc import Iterable

CoverageVerdict = Literal[
    "yes-sass", "yes-ptx", "no-build-too-old", "no-build-too-new", "no-skipped", "unknown"
]

_TARGET = re.compile(r"(?:(sm|compute|lto)_)?(\d+)([af])?(\+PTX)?", re.IGNORECASE)
_CAPABILITY = re.compile(r"(\d+)\.(\d+)([af])?(\+PTX)?", re.IGNORECASE)

Capability = tuple[int, int]


@model
class Target:
    """One architecture that a build has code for.

    Attributes:
        capability: (major, minor).
        kind: `sass` is machine code, `ptx` is compiled by the driver.
        only: `exact` for the `a` suffix, `family` for `f`, None without a suffix.
        text: as `sm_90a`, for messages.
    """

    capability: Capability
    kind: Literal["sass", "ptx"]
    only: Literal["exact", "family"] | None
    text: str


@model
class Coverage:
    """Whether a build runs on a GPU, by which of its targets, and why.

    Attributes:
        verdict: `yes-sass`; `yes-ptx`, which needs the driver's compiler besides;
            `no-build-too-old`
            when the GPU is newer than every target, `no-build-too-new` when it is older than every
            target, `no-skipped` when it lies between targets; `unknown`.
        target: the target that decides, None when none does.
        reason: one sentence.
    """

    verdict: CoverageVerdict
    target: str | None
    reason: str

    @property
    def runs(self) -> bool | None:
        """True for both kinds of yes, False for every no, None for unknown."""
        return None if self.verdict == "unknown" else self.verdict.startswith("yes")


def capability(text: str | None) -> Capability | None:
    """Read `9.0` as (9, 0); None for anything else."""
    match = _CAPABILITY.fullmatch((text or "").strip())
    return (int(match.group(1)), int(match.group(2))) if match else None


def targets(arches: Iterable[str]) -> tuple[Target, ...]:
    """Read an architecture list; both spellings, `sm_90a` and `9.0a+PTX`, are understood.

    Texts that are neither are left out, link-time code (`lto_90`) too.
    """
    found: list[Target] = []
    for raw in arches:
        text = raw.strip()
        match = _CAPABILITY.fullmatch(text)
        if match is not None:
            prefix, number = "sm", f"{match.group(1)}{match.group(2)}"
        else:
            match = _TARGET.fullmatch(text)
            if match is None or len(match.group(2)) < 2:
                continue
            prefix, number = (match.group(1) or "sm").lower(), match.group(2)
        if prefix == "lto":
            continue
        suffix = (match.group(3) or "").lower()
        only: Literal["exact", "family"] | None = (
            "exact" if suffix == "a" else "family" if suffix == "f" else None
        )
        which = (int(number[:-1]), int(number[-1]))
        kind: Literal["sass", "ptx"] = "ptx" if prefix == "compute" else "sass"
        found.append(
            Target(capability=which, kind=kind, only=only, text=f"{prefix}_{number}{suffix}")
        )
        if match.group(4):
            found.append(
                Target(capability=which, kind="ptx", only=only, text=f"compute_{number}{suffix}")
            )
    return tuple(dict.fromkeys(found))


def coverage(arches: Iterable[str], gpu: str, *, tegra: frozenset[str] = frozenset()) -> Coverage:
    """Whether code for a list of architectures runs on a GPU.

    Args:
        arches: the build's architectures, `sm_90`, `compute_120` or `9.0+PTX`.
        gpu: compute capability of the GPU, `8.9`.
        tegra: capabilities of Tegra chips, from the GPU table.

    Returns:
        The answer; unknown when the list or the capability cannot be read.
    """
    wanted = capability(gpu)
    known = targets(arches)
    if wanted is None or not known:
        what = "the build's architecture list" if wanted is not None else "the compute capability"
        return Coverage(verdict="unknown", target=None, reason=f"{what} is not known")
    sass = [each for each in known if each.kind == "sass" and _same_line(each, wanted)]
    sure = [each for each in sass if _alike(each.capability, wanted, tegra)]
    if sure:
        best = max(sure, key=lambda each: each.capability)
        return Coverage(
            verdict="yes-sass", target=best.text, reason=f"{best.text} code runs on {gpu}"
        )
    ptx = [each for each in known if each.kind == "ptx" and _ptx_reaches(each, wanted)]
    if ptx:
        best = max(ptx, key=lambda each: each.capability)
        return Coverage(
            verdict="yes-ptx",
            target=best.text,
            reason=f"no machine code for {gpu}; the driver compiles {best.text}",
        )
    if sass:
        best = max(sass, key=lambda each: each.capability)
        return Coverage(
            verdict="unknown",
            target=best.text,
            reason=f"{best.text} and {gpu} are Tegra and discrete chips of one major, "
            "which are not promised to run each other's code",
        )
    return _refuse(known, wanted, gpu)


def _refuse(known: tuple[Target, ...], wanted: Capability, gpu: str) -> Coverage:
    """Say which way a build misses a GPU."""
    newest = max(known, key=lambda each: each.capability)
    oldest = min(known, key=lambda each: each.capability)
    if wanted > newest.capability:
        return Coverage(
            verdict="no-build-too-old",
            target=newest.text,
            reason=f"capability {gpu} is newer than the build's newest target {newest.text}",
        )
    if wanted < oldest.capability:
        return Coverage(
            verdict="no-build-too-new",
            target=oldest.text,
            reason=f"capability {gpu} is older than the build's oldest target {oldest.text}",
        )
    return Coverage(
        verdict="no-skipped",
        target=None,
        reason=f"the build has targets below and above capability {gpu}, and none that it runs",
    )


def _same_line(target: Target, wanted: Capability) -> bool:
    """Whether machine code for a target is for this capability or an earlier one of its major."""
    if target.only == "exact":
        return target.capability == wanted
    return target.capability[0] == wanted[0] and target.capability[1] <= wanted[1]


def _ptx_reaches(target: Target, wanted: Capability) -> bool:
    if target.only is not None:
        return _same_line(target, wanted)
    return target.capability <= wanted


def _alike(one: Capability, other: Capability, tegra: frozenset[str]) -> bool:
    """Whether two capabilities are both Tegra or both discrete; a capability is like itself."""
    if one == other:
        return True
    return (f"{one[0]}.{one[1]}" in tegra) == (f"{other[0]}.{other[1]}" in tegra)
