"""What a framework's own metadata says about the NVIDIA wheels that it loads."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from envcheck.model.base import model
from envcheck.model.finding import Evidence
from envcheck.rules.requirements import Requirement, required

if TYPE_CHECKING:
    from envcheck.model.environment import Framework, Library, Package
    from envcheck.model.snapshot import Snapshot

_SUFFIX = re.compile(r"-cu(\d{2})$")

LIBRARIES = {
    "cuda-runtime": ("cudart",),
    "cublas": ("cublas", "cublasLt"),
    "cudnn": ("cudnn",),
    "nccl": ("nccl",),
    "cufft": ("cufft",),
    "curand": ("curand",),
    "cusolver": ("cusolver",),
    "cusparse": ("cusparse",),
    "cuda-nvrtc": ("nvrtc",),
    "nvjitlink": ("nvjitlink",),
    "cuda-cupti": ("cupti",),
    "nvshmem": ("nvshmem",),
    "cusparselt": ("cusparselt",),
}
"""Stem of an NVIDIA wheel's name -> names of the libraries in it."""

_TOOLKIT_EXTRAS = {
    "cudart": "cuda-runtime",
    "nvrtc": "cuda-nvrtc",
    "cupti": "cuda-cupti",
    "cublas": "cublas",
    "cufft": "cufft",
    "curand": "curand",
    "cusolver": "cusolver",
    "cusparse": "cusparse",
    "nvjitlink": "nvjitlink",
}
"""Extra of the `cuda-toolkit` metapackage -> stem of the wheel that it brings."""

CUDA_EXTRAS = ("and-cuda", "with-cuda")
"""Extras under which TensorFlow and JAX's plugins list the CUDA libraries that they load."""

FOREIGN_ORIGINS = frozenset({"conda", "conda-forge", "ngc", "jetson", "distribution", "source"})
"""Builds that bring CUDA some other way than wheels."""


@model
class Pin:
    """An NVIDIA wheel that a framework asks for.

    Attributes:
        requirement: the line.
        stem: the wheel's name without `nvidia-` and CUDA suffix, `cudnn`.
        cuda_major: of the suffix, None without one.
        by: the distribution that asks, `torch 2.8.0`.
    """

    requirement: Requirement
    stem: str
    cuda_major: int | None
    by: str

    @property
    def name(self) -> str:
        """Distribution name, `nvidia-cudnn-cu12`."""
        return self.requirement.name

    @property
    def evidence(self) -> Evidence:
        """The line, as evidence."""
        return Evidence(
            label=f"{self.by} requires", value=self.requirement.line, via="distribution metadata"
        )


def packages_known(snapshot: Snapshot) -> bool:
    """Whether installed distributions were read; `cuda-libraries-missing` says so when not."""
    return snapshot.env.packages is not None


def split(name: str) -> tuple[str, int | None] | None:
    """Stem and CUDA major of an NVIDIA wheel's name; None for other distributions.

    `nvidia-cudnn-cu12` is (`cudnn`, 12), `nvidia-cublas` is (`cublas`, None).
    """
    if not name.startswith("nvidia-"):
        return None
    match = _SUFFIX.search(name)
    stem = name[len("nvidia-") : match.start() if match else None]
    return stem, int(match.group(1)) if match else None


def owner(snapshot: Snapshot, framework: Framework) -> Package | None:
    """The distribution whose metadata names a framework's CUDA libraries; JAX's is its plugin."""
    if framework.name in {"jax", "jaxlib"}:
        packages = snapshot.env.packages or ()
        return next((p for p in packages if re.fullmatch(r"jax-cuda\d+-plugin", p.name)), None)
    return snapshot.env.package(framework.name)


def pins(snapshot: Snapshot, framework: Framework) -> tuple[Pin, ...]:
    """NVIDIA wheels that a framework needs on this interpreter and system.

    The `cuda-toolkit` metapackage, which newer wheels require with extras, is resolved through its
    own metadata when that was read; else its wheels are named without a version.
    """
    package = owner(snapshot, framework)
    if package is None or framework.origin in FOREIGN_ORIGINS:
        return ()
    by = f"{package.name} {package.version}"
    found: list[Pin] = []
    for requirement in required(snapshot, package, extras=CUDA_EXTRAS):
        if requirement.name == "cuda-toolkit":
            found += _toolkit(snapshot, requirement, by)
            continue
        parts = split(requirement.name)
        if parts is not None:
            found.append(Pin(requirement=requirement, stem=parts[0], cuda_major=parts[1], by=by))
    return tuple(found)


def _toolkit(snapshot: Snapshot, asked: Requirement, by: str) -> list[Pin]:
    package = snapshot.env.package("cuda-toolkit")
    if package is not None and package.requires:
        plain = {each.name for each in required(snapshot, package)}
        found = []
        for requirement in required(snapshot, package, extras=asked.extras):
            parts = split(requirement.name)
            if parts is not None and requirement.name not in plain:
                found.append(
                    Pin(requirement=requirement, stem=parts[0], cuda_major=parts[1], by=by)
                )
        return found
    return [
        Pin(
            requirement=Requirement(name=f"nvidia-{stem}", line=asked.line),
            stem=stem,
            cuda_major=None,
            by=by,
        )
        for extra, stem in _TOOLKIT_EXTRAS.items()
        if extra in asked.extras
    ]


def pin(snapshot: Snapshot, framework: Framework, stem: str) -> Pin | None:
    """The one pin of a wheel, by its stem."""
    return next((each for each in pins(snapshot, framework) if each.stem == stem), None)


def winners(snapshot: Snapshot, framework: str, *names: str) -> tuple[Library, ...]:
    """Copies of libraries that a framework's loader would take; empty when not resolved."""
    return tuple(
        each
        for each in snapshot.env.libraries or ()
        if each.name in names and framework in each.wins_for
    )


def own(library: Library) -> bool:
    """Whether a copy came with the framework: inside its own folder or in an NVIDIA wheel."""
    return library.origin in {"wheel", "bundled"}


def copy_evidence(library: Library) -> Evidence:
    """A copy of a library, as evidence: version, path, why it wins."""
    return Evidence(
        label=library.name,
        value=f"{library.version or 'version unknown'} at {library.path}",
        via=library.via or library.origin,
    )
