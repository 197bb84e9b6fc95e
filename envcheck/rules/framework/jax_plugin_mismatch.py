"""jax-plugin-mismatch."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from envcheck.model.finding import Evidence, Fix
from envcheck.rules import install
from envcheck.rules.base import finding, rule
from envcheck.rules.requirements import required
from envcheck.versions import Release

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.model.environment import Package
    from envcheck.model.snapshot import Snapshot
    from envcheck.rules.base import Answer

_PLUGIN = re.compile(r"jax-cuda(\d+)-(plugin|pjrt)")


def _has_jax(snapshot: Snapshot) -> bool:
    return snapshot.env.package("jaxlib") is not None


@rule("jax-plugin-mismatch", component="framework", when=_has_jax)
def jax_plugin_mismatch(snapshot: Snapshot, _matrix: Matrix) -> Answer:
    """jax, jaxlib and the CUDA plugin are of one release.

    Why: jaxlib ignores a plugin that was built for another jaxlib, with a warning, and JAX goes on
    without a GPU. jax itself refuses a jaxlib that is outside the range that it requires.

    Fix: install all of them as one release.
    """
    jaxlib = snapshot.env.package("jaxlib")
    if jaxlib is None:
        return
    parts = [p for p in snapshot.env.packages or () if _PLUGIN.fullmatch(p.name)]
    wrong = [p for p in parts if _short(p) != _short(jaxlib)]
    jax = snapshot.env.package("jax")
    outside = jax is not None and any(
        each.name == "jaxlib" and each.allows(jaxlib.version) is False
        for each in required(snapshot, jax)
    )
    if not wrong and not outside:
        return
    anchor = jax or jaxlib
    majors = sorted({match.group(1) for p in parts if (match := _PLUGIN.fullmatch(p.name))})
    version = install.public_version(anchor.version)
    extra = f"[cuda{majors[-1]}]" if majors else ""
    shown = [p for p in (jax, jaxlib, *parts) if p is not None]
    yield finding(
        "jax-plugin-mismatch",
        "error",
        "framework",
        ", ".join(install.label(p) for p in (wrong or [jaxlib])),
        "JAX and its CUDA plugin are of different releases",
        found=", ".join(install.label(p) for p in shown),
        needed=f"all of release {version}",
        why="A plugin of another release than jaxlib is not used: JAX then runs on the CPU. The "
        "plugin and its PJRT library come out of one build with jaxlib.",
        fix=(
            Fix(
                title="Install one release of all of them",
                commands=install.install(
                    snapshot,
                    (f"jax{extra}=={version}", *(f"{p.name}=={version}" for p in wrong)),
                ),
            ),
        ),
        evidence=tuple(
            Evidence(label="installed", value=install.label(p), via="metadata") for p in shown
        ),
    )


def _short(package: Package) -> tuple[int, ...]:
    """The first three numbers: a fourth is a repackaging of the same release."""
    release = Release.maybe(package.version)
    return ((*release.parts, 0, 0, 0))[:3] if release else ()
