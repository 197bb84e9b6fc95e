"""What messages about frameworks and their extensions mean in their circumstances.

The functions answer as those of `machine` do.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from envcheck.matrix import query
from envcheck.matrix.symptoms import NOTHING
from envcheck.rules.told.libraries import TORCH_OWN
from envcheck.rules.told.machine import OPEN
from envcheck.versions import Release

if TYPE_CHECKING:
    from envcheck.model.symptom import Symptom
    from envcheck.rules.told.heard import Heard

BF16_SINCE = 8
"""Compute capability, by major number, from which GPUs compute in bf16."""

_COMPANIONS = re.compile(r"torchvision|torchaudio")


def arch_refused(heard: Heard, symptom: Symptom) -> str | None:
    """torch names the GPU's architecture and its own list: which end of it the GPU is beyond."""
    listed = " ".join((symptom.capture("known") or "", *heard.captures("known", "arch-list")))
    mine = int(symptom.capture("arch") or 0)
    known = [int(each) for each in re.findall(r"(?:sm|compute)_(\d+)", listed)]
    return "gpu-older-than-build" if known and mine < min(known) else "gpu-newer-than-build"


def no_kernel(heard: Heard, _symptom: Symptom) -> str | None:
    """No code for this GPU: the build is older than the GPU, or has left it behind."""
    if heard.has(
        "arch-not-in-build",
        "torch-gpu-too-old",
        "torch-capability-range",
        "ggml-arch-absent",
        "container-gpu-not-yet",
        "nvrtc-arch-unknown",
        "library-needs-newer-gpu",
    ):
        return NOTHING
    sides = {_side(heard, cc) for cc in heard.gpu_arches()} - {""}
    if not sides and heard.jetson():
        return "jetson-generic-wheel"
    if not sides:
        sides = {_beside(heard, cc) for cc in heard.gpu_arches()} - {""}
    return sides.pop() if len(sides) == 1 else OPEN


def _beside(heard: Heard, cc: str) -> str:
    """Whose code is lacking when torch itself has code for the GPU: that of another library.

    A GPU at the edge of what was served when this torch was current, for which other builds of the
    same torch have no code, is too new for such a library, or no longer served by it.
    """
    gpu, version = Release.maybe(cc), Release.maybe(heard.torch())
    if gpu is None or version is None:
        return ""
    mine = (gpu.major, gpu.minor)
    for row in heard.matrix.torch_builds:
        known = _capabilities(row.arches or ())
        if known and Release.parse(row.version) == version:
            if mine[0] > known[-1][0]:
                return "gpu-newer-than-build"
            if mine < known[0]:
                return "library-drops-gpu"
    return ""


def _capabilities(arches: tuple[str, ...]) -> list[tuple[int, int]]:
    """Architectures as pairs of numbers, in order: `sm_86` is 8 and 6."""
    return sorted(
        (int(match.group(1)[:-1]), int(match.group(1)[-1]))
        for each in arches
        if (match := re.fullmatch(r"(?:sm|compute)_(\d{2,3})[af]?", each))
    )


def _side(heard: Heard, cc: str) -> str:
    """Whether a GPU is newer or older than what torch here has code for; empty when not known."""
    gpu = Release.maybe(cc)
    version = Release.maybe(heard.torch())
    if gpu is None:
        return ""
    installed = heard.snapshot.env.framework("torch")
    listed = (installed.arches if installed is not None else None) or ()
    if not listed and version is not None:
        rows = [row for row in heard.matrix.torch_builds if Release.parse(row.version) == version]
        majors = {heard.torch_cuda_major()} - {None}
        fitting = [r for r in rows if not majors or _major(r.cuda) in majors]
        listed = tuple(each for row in fitting for each in row.arches or ())
    known = _capabilities(listed)
    mine = (gpu.major, gpu.minor)
    if known:
        if mine < known[0]:
            return "gpu-older-than-build"
        newer = all(each[0] < gpu.major or each > mine for each in known)
        return "gpu-newer-than-build" if newer or mine > known[-1] else ""
    return _by_age(heard, cc, version)


def _major(cuda: str) -> int | None:
    release = Release.maybe(cuda)
    return release.major if release is not None else None


def _by_age(heard: Heard, cc: str, version: Release | None) -> str:
    """Without a list: by the first CUDA release for the GPU, and by torch older than the table."""
    row = query.capability(heard.matrix, cc)
    if row is None:
        return ""
    torch = heard.snapshot.env.framework("torch")
    cuda = Release.maybe(torch.cuda) if torch is not None else None
    first = Release.maybe(row.first_cuda)
    if cuda is not None and first is not None and cuda < first:
        return "gpu-newer-than-build"
    oldest = heard.matrix.torch_builds
    early = bool(oldest) and version is not None and version < Release.parse(oldest[0].version)
    if row.last_cuda is not None:
        return "" if early else "gpu-older-than-build"
    current = [each for each in heard.matrix.capabilities if each.last_cuda is None]
    # The GPUs that every toolkit of today still serves, without the oldest of them.
    return "gpu-newer-than-build" if row in current[1:] and (early or version is None) else ""


def capability_range(heard: Heard, symptom: Symptom) -> str | None:
    """torch names the capabilities that it serves."""
    cc = symptom.capture("cc") or next(iter(heard.captures("cc", "torch-gpu-capability")), None)
    mine = Release.maybe(cc)
    low, high = Release.maybe(symptom.capture("low")), Release.maybe(symptom.capture("high"))
    if mine is None or low is None or high is None:
        return OPEN
    if mine < low:
        return "gpu-older-than-build"
    if mine <= high:
        return OPEN
    # Code for a lower minor of the same major runs; only the warning does not know.
    return "gpu-newer-than-build" if mine.major > high.major else NOTHING


def code_list(heard: Heard, symptom: Symptom) -> str | None:
    """torch lists the capabilities that it has code for: none of it runs on this GPU."""
    del symptom
    built = [Release.parse(each) for each in heard.captures("built", "torch-code-listed")]
    mine = [Release.parse(each) for each in heard.captures("cc", "torch-gpu-capability")]
    if not mine or not built:
        return OPEN
    return "gpu-older-than-build" if max(mine) < min(built) else "gpu-newer-than-build"


def ggml_arch(_heard: Heard, symptom: Symptom) -> str | None:
    """llama.cpp names the architectures that it was compiled for."""
    mine = int(symptom.capture("arch") or 0)
    known = [int(each) for each in re.findall(r"\d+", symptom.capture("known") or "")]
    return "gpu-older-than-build" if known and mine < min(known) else "gpu-newer-than-build"


def image_gpu(heard: Heard, symptom: Symptom) -> str | None:
    """An image of NVIDIA's does not serve the GPU: too old for it, or too new."""
    row = query.product(heard.matrix, symptom.capture("gpu") or "")
    for cc in (row.cc,) if row is not None else heard.gpu_arches():
        found = query.capability(heard.matrix, cc)
        if found is not None:
            return "gpu-older-than-build" if found.last_cuda else "gpu-newer-than-build"
    return OPEN


def nvcc_arch(heard: Heard, symptom: Symptom) -> str | None:
    """nvcc does not know an architecture: not yet, or no more."""
    digits = symptom.capture("arch") or "00"
    row = query.capability(heard.matrix, f"{int(digits[:-1])}.{digits[-1]}")
    if row is not None and row.last_cuda is not None:
        return "gpu-older-than-build"
    return "ptxas-too-old-for-gpu"


def nvrtc_arch(heard: Heard, symptom: Symptom) -> str | None:
    """The run-time compiler does not know an architecture: not yet, or no more."""
    asked = [f"{int(each[:-1])}.{each[-1]}" for each in heard.captures("arch", "nvrtc-arch-asked")]
    for cc in asked or heard.gpu_arches():
        row = query.capability(heard.matrix, cc)
        if row is None:
            oldest = Release.parse(heard.matrix.capabilities[0].cc)
            return "gpu-older-than-build" if Release.parse(cc) < oldest else "gpu-newer-than-build"
        last = Release.maybe(row.last_cuda)
        if last is None:
            return "gpu-newer-than-build"
        for toolkit in heard.toolkits():
            return "gpu-older-than-build" if toolkit > last else "gpu-newer-than-build"
        return OPEN
    return "gpu-newer-than-build"


def torch_symbol(_heard: Heard, symptom: Symptom) -> str | None:
    """Who misses a symbol of torch: an extension, a companion, or a library of torch itself."""
    library = symptom.capture("library") or ""
    if _COMPANIONS.search(library):
        return "torch-companion-mismatch"
    return OPEN if TORCH_OWN.search(library) else "extension-built-for-other-torch"


def torch_library(_heard: Heard, symptom: Symptom) -> str | None:
    """A library of torch is not found by a companion, or by an extension."""
    companion = _COMPANIONS.search(symptom.capture("asker") or "")
    return "torch-companion-mismatch" if companion else "extension-built-for-other-torch"


def bitsandbytes(heard: Heard, _symptom: Symptom) -> str | None:
    """bitsandbytes works on the CPU: its binary is absent, or torch is a CPU build."""
    torch = heard.snapshot.env.framework("torch")
    said = heard.has("bitsandbytes-binary-absent", "torch-without-cuda")
    if said or (torch is not None and torch.cpu_only):
        return NOTHING
    return "extension-binary-missing"


def not_built(heard: Heard, symptom: Symptom) -> str | None:
    """An extension was to be built here and was not; why may stand elsewhere."""
    if heard.has(
        "host-compiler-refused",
        "host-compiler-too-new-for-torch",
        "nvcc-version-mismatch",
        "libcuda-link-failed",
        "nvcc-absent",
        "deepspeed-cuda-mismatch",
        "nvcc-arch-unsupported",
    ):
        return NOTHING
    return OPEN if "building extension" in symptom.text else "extension-binary-missing"


def numpy_unavailable(heard: Heard, symptom: Symptom) -> str | None:
    """torch cannot use NumPy: none is installed, or one of another ABI."""
    if "No module named" in symptom.text:
        return NOTHING
    env = heard.snapshot.env
    absent = (
        env.packages is not None and env.package("numpy") is None and not heard.has("numpy-abi")
    )
    return OPEN if absent else "numpy-abi-mismatch"


def no_candidate(heard: Heard, symptom: Symptom) -> str | None:
    """pip finds nothing: no build for this Python, a local tag without its index, no network."""
    if heard.has("pip-network-failed"):
        return NOTHING
    return OPEN if "+" in (symptom.capture("bounds") or "") else "no-wheel-for-python"


def newer_gpu_asked(heard: Heard, _symptom: Symptom) -> str | None:
    """xFormers lists what each of its kernels asks for, also when it has none of them."""
    none = heard.has("extension-native-part-absent", "xformers-other-torch")
    return NOTHING if none else "library-drops-gpu"


def bf16(heard: Heard, _symptom: Symptom) -> str | None:
    """No bf16 here: an older GPU, or none that torch can use."""
    torch = heard.snapshot.env.framework("torch")
    if heard.has("torch-without-cuda") or (torch is not None and torch.cpu_only):
        return NOTHING
    known = [Release.maybe(cc) for cc in heard.gpu_arches()]
    old = any(each is not None and each.major < BF16_SINCE for each in known)
    return "library-drops-gpu" if old else OPEN


def jax_on_cpu(heard: Heard, _symptom: Symptom) -> str | None:
    """JAX found no GPU: a build without CUDA where no plugin is installed beside a GPU."""
    names = [each.name for each in heard.snapshot.env.packages or ()]
    plugin = any(re.match(r"jax-cuda\d+-plugin", name) for name in names)
    return "framework-cpu-build" if heard.gpu_known() and names and not plugin else OPEN


def cpu_build(heard: Heard, _symptom: Symptom) -> str | None:
    """A build without CUDA; a Mac has no use for another."""
    return "no-gpu" if heard.macos() else "framework-cpu-build"
