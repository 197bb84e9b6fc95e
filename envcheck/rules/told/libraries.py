"""What messages about CUDA's libraries, cuDNN and NCCL mean in their circumstances.

The functions answer as those of `machine` do.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from envcheck.matrix.symptoms import NOTHING
from envcheck.rules import compat
from envcheck.rules.framework.extensions import NATIVE
from envcheck.rules.told.machine import OPEN
from envcheck.versions import Release

if TYPE_CHECKING:
    from envcheck.model.symptom import Symptom
    from envcheck.rules.told.heard import Heard

_EXTENSIONS = frozenset(
    {each.replace("-", "_") for each in NATIVE}
    | {
        "amp_C",
        "apex",
        "bitsandbytes",
        "ctranslate2",
        "cupy",
        "cupy_backends",
        "deepspeed",
        "dgl",
        "detectron2",
        "mmcv",
        "onnxruntime",
        "spconv",
        "tensorrt",
        "torchaudio",
        "torchvision",
        "transformer_engine",
        "vllm",
    }
)
"""Packages with machine code of their own that asks for CUDA's libraries."""

TORCH_OWN = re.compile(r"lib(?:torch|c10)\w*\.so|torch/_C|torch/lib/")


def library_absent(heard: Heard, symptom: Symptom) -> str | None:
    """A CUDA library is not found: the environment lacks it, or who asks was built for another."""
    if heard.has("onnx-library-absent", "jax-library-older"):
        return NOTHING
    if "dlerror" in symptom.text and heard.has("tensorflow-library-absent"):
        return NOTHING
    major = int(symptom.capture("major") or 0)
    known = heard.cuda_majors()
    asker = symptom.capture("asker") or ""
    extension = _asks(heard, asker)
    runtime = symptom.capture("library") in {"libcudart", "libcublas", "libcublasLt"}
    foreign = bool(known) and major not in known
    if extension and runtime and (foreign or not known):
        return "extension-built-for-other-cuda"
    return "cuda-libraries-missing"


def _asks(heard: Heard, asker: str) -> bool:
    """Whether an extension, and not a framework, asked for the library."""
    if asker:
        return not TORCH_OWN.search(asker) and "tensorflow" not in asker
    return any(each in _EXTENSIONS for each in heard.captures("package", "traceback-package"))


def provider_library(heard: Heard, symptom: Symptom) -> str | None:
    """ONNX Runtime brings no CUDA: the release that it was built for is absent, or all of it."""
    if (symptom.capture("library") or "").startswith("libcudnn"):
        return "cudnn-missing"
    known = heard.cuda_majors()
    foreign = bool(known) and int(symptom.capture("major") or 0) not in known
    return "extension-built-for-other-cuda" if foreign else "cuda-libraries-missing"


def provider_failed(heard: Heard, _symptom: Symptom) -> str | None:
    """ONNX Runtime could not load its CUDA provider; what it lacked may stand elsewhere."""
    elsewhere = heard.has("onnx-library-absent", "cudnn-not-loaded", "driver-insufficient")
    return NOTHING if elsewhere else "cuda-libraries-missing"


def provider_unavailable(heard: Heard, _symptom: Symptom) -> str | None:
    """No CUDA provider: the CPU package is installed, alone or over the other one."""
    env = heard.snapshot.env
    both = env.package("onnxruntime") is not None and env.package("onnxruntime-gpu") is not None
    return "framework-variant-conflict" if both else "framework-cpu-build"


def providers_listed(heard: Heard, symptom: Symptom) -> str | None:
    """ONNX Runtime knows the CPU alone, which is right for somebody who wants no more."""
    env = heard.snapshot.env
    wanted = env.package("onnxruntime-gpu") is not None or heard.has("onnx-provider-unavailable")
    return provider_unavailable(heard, symptom) if wanted else NOTHING


def tensorflow_libraries(heard: Heard, _symptom: Symptom) -> str | None:
    """TensorFlow found no GPU libraries; JAX in the same process says more of them."""
    return (
        NOTHING
        if heard.has("jax-library-older", "jax-library-outdated")
        else ("cuda-libraries-missing")
    )


def tensorflow_library(heard: Heard, symptom: Symptom) -> str | None:
    """TensorFlow names a library that it did not find, which no machine without a GPU misses."""
    if heard.snapshot.host.gpus == () or heard.has("collect-env-without-gpu"):
        return NOTHING
    ignorable = heard.has("cudart-ignorable") and not heard.has("tensorflow-libraries-absent")
    if ignorable and not heard.gpu_known():
        return OPEN
    return tensorflow_libraries(heard, symptom)


def dll_absent(_heard: Heard, symptom: Symptom) -> str | None:
    """Windows names a library that is missing: cuDNN's, the driver's, or one of CUDA's."""
    name = (symptom.capture("library") or symptom.capture("needed") or "").lower()
    if name.startswith("cudnn"):
        return "cudnn-missing"
    if name.startswith("nvcuda"):
        return "driver-missing"
    return "cuda-libraries-missing" if re.match(r"cu|nv", name) else OPEN


def no_nvcc(heard: Heard, _symptom: Symptom) -> str | None:
    """No toolkit to build with: which one is needed depends on the torch that is installed."""
    elsewhere = heard.has("nvcc-version-mismatch", "deepspeed-cuda-mismatch", "torch-without-cuda")
    return NOTHING if elsewhere else OPEN


def nccl_unexplained(heard: Heard, _symptom: Symptom) -> str | None:
    """NCCL's outermost error, whose cause stands in the lines of its log, if these are there."""
    elsewhere = {
        row.name
        for _, row in heard.messages
        if row.strength in {"cause", "program"} or row.name in _NCCL_DETAILS
    }
    return NOTHING if elsewhere else OPEN


_NCCL_DETAILS = frozenset({"nccl-connect-failed", "driver-insufficient", "cuda-unknown-error"})


def jax_library(heard: Heard, symptom: Symptom) -> str | None:
    """An older library is loaded: over a wheel that is new enough, or for want of one."""
    name = (symptom.capture("library") or "").lower()
    stem = {"cuda": "cuda-runtime", "cupti": "cuda-cupti"}.get(name, name)
    return (
        "library-path-shadows-cuda"
        if _newer_wheel(heard, stem, symptom)
        else ("cuda-runtime-mismatch")
    )


def jax_cudnn(heard: Heard, symptom: Symptom) -> str | None:
    """The same for cuDNN."""
    return (
        "library-path-shadows-cudnn"
        if _newer_wheel(heard, "cudnn", symptom)
        else ("cudnn-version-mismatch")
    )


def _newer_wheel(heard: Heard, stem: str, symptom: Symptom) -> bool:
    """Whether a wheel is installed that is newer than the copy that was loaded."""
    version = heard.wheel(stem)
    if version is None:
        return False
    have, found = Release.maybe(version), _decoded(symptom.capture("found"))
    return have is None or found is None or have.parts[:2] > found[:2]


def _decoded(number: str | None) -> tuple[int, ...] | None:
    """An integer version as numbers: 120205 is 12.2.5, 11401 is 11.4.1, 8907 is 8.9.7."""
    if number is None or not number.isdigit():
        return None
    value = int(number)
    if len(number) == 4:
        return (value // 1000, value // 100 % 10, value % 100)
    if len(number) == 5 and value < 20000:
        return (value // 1000, value // 100 % 10, value % 100)
    return (value // 10000, value // 100 % 100, value % 100)


def path_blamed(heard: Heard, _symptom: Symptom) -> str | None:
    """It works without the loader's path: what had come from there stands in other messages."""
    cudnn = ("cudnn-sublibrary-mismatch", "cudnn-symbol", "cudnn-symbol-system", "cudnn-not-loaded")
    if heard.has(*cudnn, "cudnn-found-older", "jax-cudnn-older"):
        return "library-path-shadows-cudnn"
    return "library-path-shadows-nccl" if heard.has("nccl-symbol") else "library-path-shadows-cuda"


def load_failed(heard: Heard, symptom: Symptom) -> str | None:
    """A library could not be loaded; which one and why stands in other messages, or nowhere."""
    elsewhere = any(
        row.finding != NOTHING and each.name != symptom.name for each, row in heard.messages
    )
    return NOTHING if elsewhere else OPEN


def cuda_symbol(heard: Heard, _symptom: Symptom) -> str | None:
    """A CUDA library of another release was loaded."""
    return "mixed-cuda-majors" if len(heard.wheel_majors()) > 1 else "library-path-shadows-cuda"


def nccl_symbol(heard: Heard, _symptom: Symptom) -> str | None:
    """An older NCCL was loaded: overwritten by another major's wheel, or from outside."""
    return "mixed-cuda-majors" if len(heard.wheel_majors()) > 1 else "library-path-shadows-nccl"


def cudnn_older(heard: Heard, symptom: Symptom) -> str | None:
    """torch found an older cuDNN than its own: installed so, or from outside."""
    if heard.has("cudnn-path-blamed"):
        return NOTHING
    installed = Release.maybe(heard.wheel("cudnn"))
    found = tuple(int(each) for each in re.findall(r"\d+", symptom.capture("found") or ""))
    if installed is not None and installed.parts[: len(found)] == found:
        return "cudnn-version-mismatch"
    return "library-path-shadows-cudnn"


def cudnn_symbol(heard: Heard, _symptom: Symptom) -> str | None:
    """A function of cuDNN is not there: another release is in front, or none was opened at all."""
    unopened = heard.captures("unopened", "cudnn-not-loaded")
    return "cudnn-missing" if unopened else "library-path-shadows-cudnn"


def cudnn_parts(heard: Heard, _symptom: Symptom) -> str | None:
    """Parts of cuDNN are of different releases: copies mixed by a path, or on the disk."""
    path = heard.snapshot.env.variable("LD_LIBRARY_PATH") or ""
    if heard.has("cudnn-symbol-system", "cudnn-path-blamed"):
        return NOTHING
    outside = re.search(r"cudnn|/usr/lib|/usr/local/cuda", path)
    return "library-path-shadows-cudnn" if outside else "cudnn-version-mismatch"


def cudnn_silent(heard: Heard, symptom: Symptom) -> str | None:
    """cuDNN did not start: it is not there, or there is no memory left for it."""
    if heard.has("tensorflow-cudnn-mismatch", "cudnn-not-loaded", "out-of-memory"):
        return NOTHING
    return "cudnn-missing" if "not found" in symptom.text.lower() else OPEN


def invalid_ptx(heard: Heard, _symptom: Symptom) -> str | None:
    """The driver could not compile: too old for the code, or the code is not for this GPU."""
    if heard.has("tensorflow-jit-kernels"):
        return "gpu-newer-than-build"
    torch = heard.snapshot.env.framework("torch")
    known = compat.driver_facts(heard.snapshot)
    if torch is not None and torch.cuda:
        older = compat.compiles_ptx(heard.matrix, known, torch.cuda)
        return "ptx-newer-than-driver" if older is False else OPEN
    return OPEN


def insufficient(heard: Heard, _symptom: Symptom) -> str | None:
    """The driver is too old for the runtime, unless what is installed says otherwise."""
    torch = heard.snapshot.env.framework("torch")
    known = compat.driver_facts(heard.snapshot)
    if torch is not None and torch.cuda:
        answer = compat.driver_runs(heard.matrix, known, torch.cuda)
        if answer.verdict == "yes" and heard.snapshot.host.driver.version is not None:
            return OPEN
    return "driver-too-old"


def connect_failed(heard: Heard, symptom: Symptom) -> str | None:
    """A rank cannot reach another one: at an address that is no other machine's, or at all."""
    address = symptom.capture("address") or ""
    if address.startswith(("127.", "172.17.", "169.254.")) or heard.has(
        "bootstrap-virtual-interface", "gloo-loopback"
    ):
        return "nccl-wrong-interface"
    reason = (symptom.capture("reason") or "").lower()
    return OPEN if "refused" in reason or "abort" in reason else "nccl-network-unreachable"


def virtual_interface(heard: Heard, _symptom: Symptom) -> str | None:
    """NCCL meets on a virtual interface, which is wrong only when ranks then do not meet."""
    failed = heard.has("nccl-connect-failed", "hang", "collective-timeout")
    return "nccl-wrong-interface" if failed else NOTHING


def peer_access(heard: Heard, _symptom: Symptom) -> str | None:
    """No peer access, unless NCCL's host memory is what failed."""
    return NOTHING if heard.has("cumem-host-failed") else "p2p-unavailable"
