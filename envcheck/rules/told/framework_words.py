"""Wording of findings about frameworks and what is installed around them that rest on messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.matrix import query
from envcheck.model.finding import Fix
from envcheck.rules import builds, install
from envcheck.rules.told.wording import Wording, captured, fixed

if TYPE_CHECKING:
    from envcheck.model.symptom import Symptom
    from envcheck.rules.told.heard import Heard


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


def _newer_torch(heard: Heard, symptoms: tuple[Symptom, ...]) -> tuple[Fix, ...]:
    least = captured(symptoms, "least", "wanted", "needed")
    wanted = f"torch>={least}" if least else "torch"
    return (
        Fix(
            title="Install a torch that the library accepts, with its companions",
            commands=install.install(heard.snapshot, (wanted,), upgrade=True),
        ),
        Fix(title="Or an older release of the library, which accepts this torch"),
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
    "library-requires-other-framework": Wording(
        component="framework",
        subject="framework",
        title="A library asks for another release of the framework than the one installed",
        needed="a pair of library and framework that accept each other",
        why="Libraries state which releases of a framework they work with, and refuse others.",
        roads=_newer_torch,
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
    "torch-companion-mismatch": Wording(
        component="framework",
        subject="torchvision, torchaudio",
        title="torchvision or torchaudio does not belong to this torch",
        needed="the versions, and the CUDA variant, that belong to this torch",
        why="They hold machine code that was linked against one torch release and CUDA variant.",
        roads=_companions,
        names=("companion",),
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
