"""Reads torch's `collect_env` of every age, and reports made like it (vLLM's, mmengine's)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from envcheck.intake import values
from envcheck.intake.packages import add_package

if TYPE_CHECKING:
    from envcheck.intake.collected import Collected

_KEYS = (
    "PyTorch version",
    "Is debug build",
    "CUDA used to build PyTorch",
    "ROCM used to build PyTorch",
    "OS",
    "GCC version",
    "Clang version",
    "CMake version",
    "Libc version",
    "Python version",
    "Python platform",
    "Is CUDA available",
    "Is XPU available",
    "CUDA runtime version",
    "CUDA_MODULE_LOADING set to",
    "GPU models and configuration",
    "Nvidia driver version",
    "cuDNN version",
    "HIP runtime version",
    "MIOpen runtime version",
    "Is XNNPACK available",
    "vLLM Version",
)
_FIELD = re.compile(
    r"^[ \t|*-]*(" + "|".join(map(re.escape, _KEYS)) + r")[ \t]*:[ \t]*(.*)$", re.MULTILINE
)
_ANY_FIELD = re.compile(r"[ \t|*-]*[A-Za-z][\w ./()]{2,40}[ \t]*:|={5,}|\s*$")
_LIBRARY = re.compile(
    r"^[ \t*-]*\[(pip3?|conda)\][ \t]+([A-Za-z0-9][\w.-]*)(?:==|[ \t]+)(\S+)(?:[ \t]+(\S+))?"
    r"(?:[ \t]+(\S+))?",
    re.MULTILINE,
)
_GPU = re.compile(
    r"^[ \t*-]*GPU[ \t]+(\d{1,3}):[ \t]*(\S[^\n(]*?)(?:[ \t]*\([^\n]*\))?[ \t]*$", re.MULTILINE
)
_PAIR = re.compile(r"\('([\w .]+)', (?:'((?:[^'\\]|\\.)*)'|(True|False))\)")
_MMENGINE = re.compile(
    r"^[ \t]*(PyTorch|TorchVision|CUDA available|GPU 0(?:,[\d,]*)?|CUDA_HOME|NVCC|GCC|Python"
    r"|MMCV|MMEngine|OpenCV)[ \t]*:[ \t]*(\S.*)$",
    re.MULTILINE,
)
_BUILD = re.compile(r"CUDA Runtime (\d+\.\d+)")


def read(found: Collected) -> None:
    """Collect what such a report says."""
    if found.has("pytorch version", "used to build pytorch", "nvidia driver version"):
        _fields(found)
    if found.has("[pip", "[conda]"):
        _libraries(found)
    if found.has("mmengine", "mmcv", "torchvision", "pytorch compiling details"):
        _mmengine(found)
    if "USE_CUDA=" in found.text or "PyTorch built with" in found.text:
        _settings(found)


def _fields(found: Collected) -> None:
    text = found.text
    known: dict[str, str] = {}
    for match in _FIELD.finditer(text):
        key, value = match[1], match[2].strip()
        if not value and key not in {"GPU models and configuration", "cuDNN version"}:
            value = _next_line(text, match.end())
        known.setdefault(key, value)
    if not known:
        return
    found.recognised = True
    torch = found.torch
    version = known.get("PyTorch version")
    if version and version != "N/A" and version[0].isdigit():
        torch.version = torch.version or version.split()[0]
    built = known.get("CUDA used to build PyTorch")
    if built is not None and version != "N/A":
        torch.cuda_said = True
        torch.cuda = built.split()[0] if built[:1].isdigit() else None
    rocm = known.get("ROCM used to build PyTorch")
    if rocm and rocm[0].isdigit():
        torch.hip = rocm.split()[0]
    if known.get("Is XPU available") == "True":
        torch.xpu = "available"
    available = values.truth(known.get("Is CUDA available"))
    if available is not None:
        torch.available = available
    values.read_os(found, known.get("OS"))
    values.read_platform(found, known.get("Python platform"))
    values.read_python(found, known.get("Python version"))
    _compilers(found, known)
    libc = re.search(r"glibc-(\d+\.\d+)", known.get("Libc version") or "")
    if libc:
        # Python's own way of asking may name the C library that Python was built with.
        found.os.setdefault("glibc", libc[1])
    nvcc = known.get("CUDA runtime version") or ""
    if nvcc[:1].isdigit():
        found.toolkits.append({"version": nvcc.split()[0], "via": "collect_env"})
    driver = known.get("Nvidia driver version") or ""
    for number in re.findall(r"\d{2,3}\.\d{2,3}(?:\.\d{1,3})?", driver)[:1]:
        found.readings.append((number, "collect_env"))
        if found.lower.count("nvidia-smi has failed") == 0:
            found.answer("smi", "ok", 0)
    if "GPU models and configuration" in known:
        _gpus(found)


def _next_line(text: str, at: int) -> str:
    """The value where a report puts it on the line below its name."""
    line = text[at + 1 : text.find("\n", at + 1) if text.find("\n", at + 1) > 0 else len(text)]
    return "" if _ANY_FIELD.match(line) else line.strip()


def _compilers(found: Collected, known: dict[str, str]) -> None:
    for key, name in (("GCC version", "gcc"), ("Clang version", "clang")):
        numbers = re.findall(r"(?<![\w.~-])\d{1,2}\.\d+(?:\.\d+)?(?![\w~])", known.get(key) or "")
        if numbers:
            found.compilers.append((name, numbers[-1]))


def _gpus(found: Collected) -> None:
    start = found.text.find("GPU models and configuration")
    end = found.text.find("Nvidia driver version", start)
    part = found.text[start : end if end > 0 else start + 4000].replace(
        "GPU models and configuration", "", 1
    )
    part = re.sub(r"^[ \t]*:[ \t]*", "", part)
    for match in _GPU.finditer(part):
        gpu = found.gpu(int(match[1]))
        gpu.name = gpu.name or match[2].strip()


def _libraries(found: Collected) -> None:
    for match in _LIBRARY.finditer(found.text):
        tool, name, version, third, fourth = match.groups()
        if not version[:1].isdigit():
            continue
        found.recognised = True
        if tool == "conda":
            channel = fourth or (third if third and not re.search(r"[\d_]", third) else None)
            if third == "pypi_0" or fourth == "pypi":
                add_package(found, name, version, installer="pip")
            else:
                add_package(
                    found, name, version, installer="conda", build=third, channel=channel or "conda"
                )
        else:
            add_package(found, name, version)


def _mmengine(found: Collected) -> None:
    known: dict[str, str] = {}
    for match in _PAIR.finditer(found.text):
        known.setdefault(match[1], match[2] if match[2] is not None else match[3])
    if not known and found.has("mmengine", "mmcv"):
        for match in _MMENGINE.finditer(found.text):
            known.setdefault(match[1], match[2].strip())
    if "PyTorch" not in known:
        return
    found.recognised = True
    torch = found.torch
    torch.version = torch.version or known["PyTorch"].split()[0]
    available = values.truth(known.get("CUDA available"))
    torch.available = available if torch.available is None else torch.available
    if "TorchVision" in known:
        add_package(found, "torchvision", known["TorchVision"].split()[0])
    if "Python" in known:
        values.read_python(found, known["Python"])
    for key, value in known.items():
        if key.startswith("GPU 0"):
            for index in re.findall(r"\d+", key):
                found.gpu(int(index)).name = value
    release = re.search(r"release (\d+\.\d+)", known.get("NVCC", ""))
    if release:
        found.toolkits.append({"version": release[1], "via": "mmengine"})


def _settings(found: Collected) -> None:
    """What torch prints of its own build: `torch.__config__.show()`."""
    torch = found.torch
    start = max(found.text.find("PyTorch built with"), 0)
    part = found.text[start : start + 6000]
    match = _BUILD.search(part)
    if match and not torch.cuda_said:
        torch.cuda, torch.cuda_said = match[1], True
    if re.search(r"\bUSE_CUDA=(?:0|OFF)\b", part):
        torch.cuda_said = True
        torch.settings = "USE_CUDA=0"
    version = re.search(r"\bTORCH_VERSION=(\d[\w.+]*)", part)
    if version:
        torch.version = torch.version or version[1]
    if "/croot/" in part or "conda-bld" in part:
        found.python.setdefault("built_by_conda", True)
