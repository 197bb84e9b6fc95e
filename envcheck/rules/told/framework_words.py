"""Wording of findings about frameworks and what is installed around them that rest on messages."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from envcheck.matrix import query
from envcheck.model.finding import Fix
from envcheck.rules import builds, fixes, install
from envcheck.rules.told.wording import Wording, captured, fixed
from envcheck.versions import Release

if TYPE_CHECKING:
    from envcheck.model.symptom import Symptom
    from envcheck.rules.told.heard import Heard

_LIBRARY = re.compile(
    r"(?:site|dist)-packages/([A-Za-z]\w+?)(?:[./]|_cuda|$)|([A-Za-z]\w+?)(?:_2)?_cuda"
)


def _torch_build(heard: Heard, symptoms: tuple[Symptom, ...]) -> tuple[Fix, ...]:
    """Another torch, chosen from the tables where machine and torch are known."""
    snapshot, matrix = heard.snapshot, heard.matrix
    torch = snapshot.env.framework("torch")
    older = any(each.name in {"torch-gpu-too-old", "ggml-arch-absent"} for each in symptoms)
    if torch is not None and builds.known_machine(matrix, snapshot):
        build = builds.choose(matrix, snapshot, torch, "older" if older else "newer")
        if build is not None:
            title = f"Install torch {build.version} for CUDA {build.cuda}, which runs on this GPU"
            return (builds.install_fix(matrix, snapshot, torch, build, title),)
    cc = next(iter(heard.gpu_arches()), None)
    row = query.capability(matrix, cc) if cc else None
    first, last = (row.first_cuda, row.last_cuda) if row is not None else (None, None)
    if last is not None:
        return (Fix(title=f"Use a build for CUDA {last} or older, the last toolkit for this GPU"),)
    return (
        Fix(
            title="Install a newer build of the framework, for CUDA "
            + (f"{first} or newer" if first else "of a release that knows this GPU"),
            commands=install.install(
                snapshot,
                builds.requirements(matrix, snapshot, query.newest_torch(matrix)),
                reinstall=True,
            ),
        ),
    )


def _older_build(heard: Heard, symptoms: tuple[Symptom, ...]) -> tuple[Fix, ...]:
    found = _torch_build(heard, symptoms)
    cc = next(iter(heard.gpu_arches()), None)
    row = query.capability(heard.matrix, cc) if cc else None
    if row is not None and row.last_cuda is not None:
        return found
    return (
        Fix(
            title="Use an older build of the framework, or one for an older CUDA, that still has "
            "code for this GPU"
        ),
        Fix(title="Or build it from source for this GPU"),
    )


def _cuda_build(heard: Heard, _symptoms: tuple[Symptom, ...]) -> tuple[Fix, ...]:
    snapshot, matrix = heard.snapshot, heard.matrix
    if heard.jetson():
        return (
            Fix(
                title="Install the wheel that NVIDIA publishes for this JetPack release (it may "
                "need another Python version), or use an image made for it"
            ),
        )
    torch = snapshot.env.framework("torch")
    if torch is None:
        return (Fix(title="Install the CUDA build of this package in place of the CPU build"),)
    build = builds.choose(matrix, snapshot, torch)
    if build is None:
        return (Fix(title="Install a CUDA build of torch"),)
    title = f"Install torch {build.version} for CUDA {build.cuda}"
    return (builds.install_fix(matrix, snapshot, torch, build, title),)


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


def _companions(heard: Heard, _symptoms: tuple[Symptom, ...]) -> tuple[Fix, ...]:
    snapshot, matrix = heard.snapshot, heard.matrix
    version = install.public_version(heard.torch() or "")
    pair = query.companion(matrix, version) if version else None
    torch = snapshot.env.framework("torch")
    tag = builds.variant(torch) if torch is not None else None
    index = builds.index_url(matrix, tag) if tag else None
    names = ["torchvision", "torchaudio"]
    wanted = [f"torch=={version}"] if pair is not None else ["torch"]
    for name in names:
        belongs = getattr(pair, name) if pair is not None else None
        wanted.append(f"{name}=={belongs}" if belongs else name)
    return (
        Fix(
            title="Install the versions that belong together, all from one index",
            commands=install.install(snapshot, tuple(wanted), index_url=index, reinstall=True),
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


def _jax(heard: Heard, symptoms: tuple[Symptom, ...]) -> tuple[Fix, ...]:
    del symptoms
    package = heard.snapshot.env.package("jax")
    release = f"=={package.version}" if package is not None else ""
    return (
        Fix(
            title="Install jax, jaxlib and the plugin in one release",
            commands=install.install(heard.snapshot, (f"jax[cuda]{release}",), upgrade=True),
        ),
    )


WORDS: dict[str, Wording] = {
    "jetson-generic-wheel": Wording(
        component="framework",
        subject="torch",
        title="This torch is not built for a Jetson's GPU",
        needed="a build of torch for this JetPack release",
        why="Generic aarch64 wheels are CPU builds or are made for server GPUs.",
        roads=_cuda_build,
    ),
    "tensorflow-windows-no-gpu": Wording(
        component="framework",
        subject="tensorflow",
        title="TensorFlow for native Windows has no GPU support",
        needed="a Linux build, in WSL 2",
        why="There are no CUDA builds of this TensorFlow release for native Windows.",
        roads=fixed(
            Fix(
                title="Install WSL 2 (PowerShell as administrator), then TensorFlow inside it",
                commands=("wsl --install", 'python3 -m pip install "tensorflow[and-cuda]"'),
            )
        ),
    ),
    "framework-cpu-build": Wording(
        component="framework",
        subject="framework",
        title="The installed build has no CUDA in it",
        needed="a CUDA build",
        why="A build without CUDA never uses the GPU.",
        roads=_cuda_build,
    ),
    "gpu-newer-than-build": Wording(
        component="framework",
        subject="GPU and build",
        title="The build has no code for this GPU, which is newer",
        needed="a build that has code for this GPU",
        why="Machine code is made for architectures that are known when a build is made; this GPU "
        "came later, or its CUDA variant leaves it out.",
        roads=_torch_build,
        names=("gpu",),
    ),
    "gpu-older-than-build": Wording(
        component="framework",
        subject="GPU and build",
        title="The build no longer has code for this GPU",
        needed="a build that still has code for this GPU",
        why="Builds leave old architectures behind; this GPU is below their minimum.",
        roads=_older_build,
        names=("gpu",),
    ),
    "library-drops-gpu": Wording(
        component="framework",
        subject="library",
        title="A library's own kernels need a newer GPU than this one",
        needed="a GPU of a newer architecture, or other settings of the library",
        why="Kernels are written for features that older GPUs do not have.",
        roads=fixed(
            Fix(
                title="Switch the feature off: another attention or quantisation method, fp16 "
                "instead of bf16"
            ),
            Fix(title="Or use an older release of the library, or a newer GPU"),
        ),
    ),
    "framework-variant-conflict": Wording(
        component="framework",
        subject="onnxruntime",
        title="Two variants of one package share a folder",
        needed="one variant",
        why="The variant that was installed last has overwritten the other one's files.",
        roads=fixed(
            Fix(
                title="Uninstall both, then install the one that is meant",
                commands=(
                    "python -m pip uninstall -y onnxruntime onnxruntime-gpu",
                    "python -m pip install onnxruntime-gpu",
                ),
            )
        ),
    ),
    "package-pair-mismatch": Wording(
        component="framework",
        subject="package",
        title="Two packages that must be of one release are not",
        needed="both packages in releases that belong together",
        why="They share internals that change from release to release.",
        roads=_pair,
        names=("package", "library"),
    ),
    "torch-companion-mismatch": Wording(
        component="framework",
        subject="torchvision, torchaudio",
        title="torchvision or torchaudio does not belong to this torch",
        needed="the versions, and the CUDA variant, that belong to this torch",
        why="They hold machine code that was linked against one torch release and CUDA variant.",
        roads=_companions,
        names=("companion",),
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
    "jax-plugin-mismatch": Wording(
        component="framework",
        subject="jax",
        title="jax, jaxlib and the CUDA plugin are not of one release",
        needed="one release of all three",
        why="The plugin and jaxlib share an interface that changes with each release.",
        roads=_jax,
        names=("plugin",),
    ),
}
