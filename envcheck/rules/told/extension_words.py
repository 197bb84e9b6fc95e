"""Wording of findings about extensions and packages around frameworks that rest on messages."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from envcheck.model.finding import Fix
from envcheck.rules import fixes, install
from envcheck.rules.told.wording import Wording, captured
from envcheck.versions import Release

if TYPE_CHECKING:
    from envcheck.model.symptom import Symptom
    from envcheck.rules.told.heard import Heard

_LIBRARY = re.compile(
    r"(?:site|dist)-packages/([A-Za-z]\w+?)(?:[./]|_cuda|$)|([A-Za-z]\w+?)(?:_2)?_cuda"
)


def library(symptoms: tuple[Symptom, ...]) -> str | None:
    """Distribution name of the extension that messages speak of, as its files are called."""
    for each in symptoms:
        text = each.capture("library") or each.capture("module") or each.capture("by") or ""
        match = _LIBRARY.search(text)
        if match is not None:
            name = (match.group(1) or match.group(2)).lower().replace("_", "-")
            return {"flash-attn-2": "flash-attn", "vllm-flash-attn": "vllm"}.get(name, name)
    return None


def _rebuild(heard: Heard, symptoms: tuple[Symptom, ...]) -> tuple[Fix, ...]:
    name = library(symptoms)
    shown = name or "the extension"
    options = " --no-deps --no-cache-dir --no-build-isolation --no-binary "
    commands: tuple[str, ...] = ()
    if name is not None:
        (*before, command) = install.install(heard.snapshot, (name,), reinstall=True)
        commands = (*before, command + options + name)
    return (
        Fix(
            title=f"Install the wheel of {shown} that its project builds for this torch and CUDA, "
            "or build it here (needs nvcc of the same CUDA major)",
            commands=commands,
        ),
        Fix(title=f"Or install the torch that {shown} was built for"),
    )


def _update(heard: Heard, symptoms: tuple[Symptom, ...]) -> tuple[Fix, ...]:
    name = library(symptoms)
    if any(each.name.startswith("bitsandbytes") for each in symptoms):
        name = "bitsandbytes"
    return (
        Fix(
            title=f"Install a release of {name or 'the extension'} that has a binary for this "
            "platform, Python and CUDA, or build it here",
            commands=install.install(heard.snapshot, (name,), upgrade=True) if name else (),
        ),
    )


def _pair(heard: Heard, symptoms: tuple[Symptom, ...]) -> tuple[Fix, ...]:
    package, want = captured(symptoms, "package"), captured(symptoms, "want")
    if package is not None and want is not None:
        commands = install.install(heard.snapshot, (f"{package}=={want}",))
        return (Fix(title=f"Install {package} in the release of its partner", commands=commands),)
    if package is not None and package.startswith("triton"):
        return (
            Fix(
                title="Install torch again with its dependencies: it brings the triton that it was "
                "made for",
                commands=install.install(heard.snapshot, ("torch",), reinstall=True),
            ),
        )
    return (Fix(title="Install both packages in releases that belong together"),)


def _numpy(heard: Heard, symptoms: tuple[Symptom, ...]) -> tuple[Fix, ...]:
    reverse = any("size changed" in each.text for each in symptoms)
    older = Fix(
        title="Install the NumPy that the module was built for",
        commands=install.install(heard.snapshot, ("numpy<2",)),
    )
    newer = Fix(title="Or install a release of the module that was built for the newer NumPy")
    return (newer, older) if reverse else (older, newer)


def _other_python(heard: Heard, symptoms: tuple[Symptom, ...]) -> tuple[Fix, ...]:
    package = captured(symptoms, "package", "second") or "the package"
    tags = {
        tag
        for row in heard.matrix.torch_builds
        if row.confidence == "high"
        for tag in row.python or ()
    }
    newest = [row for row in heard.matrix.torch_builds if row.python][-1:]
    served = sorted(
        {each for row in newest for each in row.python or () if not each.endswith("t")} or tags,
        key=lambda tag: Release.parse(tag[3:] or "0"),
    )
    middle = served[len(served) // 2] if served else None
    python = f"{middle[2]}.{middle[3:]}" if middle else "<version>"
    return (
        Fix(
            title=f"Make an environment with a Python for which {package} has a build",
            commands=(
                f"uv venv --python {python}",
                f"uv pip install {package if package != 'the package' else '<package>'}",
            ),
        ),
        Fix(
            title="Or take another release of it, one that is built for this Python and platform",
            commands=(f"python -m pip index versions {package}",) if " " not in package else (),
        ),
    )


def _glibc(heard: Heard, symptoms: tuple[Symptom, ...]) -> tuple[Fix, ...]:
    if any(each.name == "libstdcxx-absent" for each in symptoms):
        return (
            Fix(
                title="Put a newer libstdc++ first; in a conda environment install it there",
                commands=(
                    "conda install -c conda-forge libstdcxx-ng",
                    'export LD_LIBRARY_PATH="$CONDA_PREFIX/lib:$LD_LIBRARY_PATH"',
                ),
            ),
            Fix(
                title="Outside conda, update the compiler's runtime package",
                commands=fixes.install(heard.snapshot, "libstdc++6"),
            ),
        )
    name = library(symptoms)
    return (
        Fix(
            title=f"Install an older release of {name or 'the package'}, or build it on this "
            "system, so that it needs no newer C library"
        ),
        Fix(
            title="Or run in a container, or on a system, whose C library is new enough",
            commands=("ldd --version",),
        ),
    )


WORDS: dict[str, Wording] = {
    "package-pair-mismatch": Wording(
        component="framework",
        subject="package",
        title="Two packages that must be of one release are not",
        needed="both packages in releases that belong together",
        why="They share internals that change from release to release.",
        roads=_pair,
        names=("package", "library"),
    ),
    "extension-built-for-other-torch": Wording(
        component="framework",
        subject="extension",
        title="An extension was built for another torch",
        needed="a build of it for the torch that is installed",
        why="Extensions link against torch's C++ interface, which changes with minor releases.",
        roads=_rebuild,
        names=("library", "module"),
    ),
    "extension-built-for-other-cuda": Wording(
        component="framework",
        subject="extension",
        title="An extension was built for another CUDA major",
        needed="a build of it for the CUDA major that is installed",
        why="Its machine code asks for CUDA libraries of a major that is not here.",
        roads=_rebuild,
        names=("asker", "library"),
    ),
    "extension-binary-missing": Wording(
        component="framework",
        subject="extension",
        title="An extension has no native library for this platform",
        needed="a release of it that has one, or a build made here",
        why="Only its Python part was installed, or its binaries are for other platforms and CUDA "
        "releases.",
        roads=_update,
        names=("module",),
    ),
    "numpy-abi-mismatch": Wording(
        component="framework",
        subject="numpy",
        title="A module was built for another NumPy than the one installed",
        needed="a NumPy of the major that it was built for, or a newer build of it",
        why="NumPy's binary interface changed with its major release.",
        roads=_numpy,
    ),
    "no-wheel-for-python": Wording(
        component="framework",
        subject="package",
        title="There is no build of the package for this Python or platform",
        needed="a Python and platform for which it is built",
        why="Packages with machine code are built for a range of Python releases and platforms.",
        roads=_other_python,
        names=("package", "wheel", "second"),
    ),
    "glibc-too-old": Wording(
        component="framework",
        subject="C library",
        title="A binary needs a newer C or C++ library than this system has",
        needed="a system or a library that is new enough, or a build for older ones",
        why="Binaries that were linked on a newer system do not start on an older one.",
        roads=_glibc,
        names=("version",),
    ),
}
