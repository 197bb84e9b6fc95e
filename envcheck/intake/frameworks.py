"""Reads what frameworks print of themselves: versions, devices, architectures, environments."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from envcheck.intake import values
from envcheck.intake.packages import add_package

if TYPE_CHECKING:
    from envcheck.intake.collected import Collected

_VERSION = r"\d+\.\d+(?:\.\d+)?(?:\.?(?:dev|post|rc|a|b)\d*)*(?:\+[\w.]+)?"
_DOTTED = re.compile(
    rf"\b(torch|tf|tensorflow|jax|jaxlib|tensorrt|numpy|flash_attn|vllm|onnxruntime|torchvision"
    rf"|torchaudio)\.__version__\W{{0,6}}(?:\n\W{{0,4}})?({_VERSION})",
)
_AVAILABLE = re.compile(
    r"torch\.cuda\.is_available\(\)[^\n\w]{0,8}"
    r"(?:#[^\n]*?|\n\W{0,4}(?:returns? )?|[ \t]*(?:is|returns?|:|->|=)[ \t]*)"
    r"(True|False|true|false)\b"
)
_AVAILABLE_NOTE = re.compile(
    r"(?:torch\.cuda\.is_available\(\)|CUDA available|cuda_available|GPU available)[^\n]{0,40}?"
    r"\b(True|False|Yes|No)\b",
    re.IGNORECASE,
)
_TUPLE = re.compile(
    rf"^\W?({_VERSION})\W+(?:\d+\.\d+\W+)?(True|False)\b[ \t,']*([^\n(']*)(?:\((\d+), ?(\d+)\))?",
    re.MULTILINE,
)
_DEVICE = re.compile(r"^(True|False) ([^\n(]{3,60}?) \((\d+), ?(\d+)\)[ \t]*$", re.MULTILINE)
_ARCHES = re.compile(r"\[((?:'(?:sm|compute)_\d+[af]?'(?:, ?)?)+)\]")
_NOT_COMPATIBLE = re.compile(
    r"(\S[^\n]{2,80}?)\s+with\s+CUDA\s+capability\s+sm_(\d+)\s+is\s+not\s+compatible"
)
_SUPPORTS = re.compile(
    r"current\s+PyTorch\s+install\s+supports\s+CUDA\s+capabilities\s+((?:(?:sm|compute)_\d+[af]?\s*)+)"
)
_OLD_GPU = re.compile(
    r"Found\s+GPU\s?(\d+)\s+(\S[^\n]{2,60}?)\s+which\s+is\s+of\s+(?:cuda|compute)\s+capability\s+(\d+\.\d+)"
)
_MINIMUM = re.compile(r"minimum cuda capability supported by this library is (\d+\.\d+)", re.I)
_TF_DEVICE = re.compile(
    r"(?:name: |device: \d+, name: )([A-Z][\w \-]{3,40}?)(?:,| major:)[^\n]*?"
    r"(?:compute capability:? (\d+\.\d+)|major: (\d+) minor: (\d+))",
    re.IGNORECASE,
)
_ENV = re.compile(
    r"^[ \t*-]*`?(PyTorch version \(GPU\??\)|PyTorch version|Tensorflow version \(GPU\?\)"
    r"|Jax version"
    r"|JaxLib version|Flax version \([^)\n]*\)|`?[Tt]ransformers`? version"
    r"|`?Accelerate`? version"
    r"|`?diffusers`? version|Platform|Python version|GPU type|Using GPU in script\?|Numpy version"
    r"|Accelerator|bitsandbytes version|DeepSpeed version|PEFT version)`?[ \t]*:[ \t]*(\S[^\n]*)$",
    re.MULTILINE,
)
_DS = re.compile(
    r"^(torch version|torch cuda version|torch hip version|nvcc version|deepspeed info"
    r"|deepspeed wheel compiled w\.)[ .]{3,}[ \t]*(\S[^\n]*)$",
    re.MULTILINE,
)
_YOLO = re.compile(
    rf"Python-(3\.\d+(?:\.\d+)?) torch-({_VERSION}) (?:CUDA:\d+ \(([^,\n]+), (\d+)Mi?B\)|CPU)"
)
_JAX = re.compile(r"^(jax|jaxlib|numpy|python):[ \t]+(\S[^\n]*)$", re.MULTILINE)
_FOUND_VERSION = re.compile(r"found version (\d{4,5})\b")
_DRIVER_IS_CUDA = re.compile(r"driver version \(?(?:is )?(?:CUDA )?(\d{2}\.\d)\)?", re.IGNORECASE)
_COUNT_ERROR = re.compile(
    r"Unexpected\s+error\s+from\s+cudaGetDeviceCount\(\)[^\n]*?(?:\n[^\n]*?)?Error\s+(\d+):\s+([^\n(]+)"
)
_CUDA_NAMES = {
    "CUDA_ERROR_NO_DEVICE": 100,
    "CUDA_ERROR_INVALID_DEVICE": 101,
    "CUDA_ERROR_OUT_OF_MEMORY": 2,
    "CUDA_ERROR_UNKNOWN": 999,
    "CUDA_ERROR_SYSTEM_NOT_READY": 802,
    "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH": 803,
    "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE": 804,
    "CUDA_ERROR_STUB_LIBRARY": 34,
}
_INIT_NAME = re.compile(r"\b(CUDA_ERROR_[A-Z_]+)\b")


def read(found: Collected) -> None:
    """Collect what frameworks say of themselves."""
    if found.has("torch", "pytorch"):
        _torch(found)
    if found.has("version (gpu", "transformers", "accelerate", "platform:"):
        _environments(found)
    if found.has("torch version ..", "deepspeed"):
        _deepspeed(found)
    if found.has("torch-"):
        _ultralytics(found)
    if found.has("jaxlib", "jax:"):
        _jax(found)
    if found.has("capability"):
        _capabilities(found)
    if found.has("cuda"):
        _initialisation(found)


def _torch(found: Collected) -> None:
    torch = found.torch
    for match in _DOTTED.finditer(found.text):
        found.recognised = True
        name = {"tf": "tensorflow"}.get(match[1], match[1])
        if name == "torch":
            torch.version = torch.version or match[2]
        else:
            add_package(found, name, match[2])
    for match in _TUPLE.finditer(found.text):
        found.recognised = True
        torch.version = torch.version or match[1]
        _available(found, match[2])
        _named(found, match[3], match[4], match[5])
    for match in _DEVICE.finditer(found.text):
        found.recognised = True
        _available(found, match[1])
        _named(found, match[2], match[3], match[4])
    for pattern in (_AVAILABLE, _AVAILABLE_NOTE):
        match_ = pattern.search(found.text)
        if match_ is not None:
            found.recognised = True
            _available(found, match_[1])
    built = re.search(r"torch\.version\.cuda\W{0,6}(?:\n\W{0,4})?(\d+\.\d+|None)", found.text)
    if built is not None and not torch.cuda_said:
        torch.cuda_said = True
        torch.cuda = built[1] if built[1] != "None" else None
    listed = _ARCHES.search(found.text)
    if listed is not None:
        found.recognised = True
        torch.arches = tuple(re.findall(r"(?:sm|compute)_\d+[af]?", listed[1]))


def _available(found: Collected, text: str) -> None:
    if found.torch.available is None:
        found.torch.available = values.truth(text)


def _named(found: Collected, name: str | None, major: str | None, minor: str | None) -> None:
    name = (name or "").strip(" ,'\"")
    if name and re.search(r"[A-Za-z]{2}", name):
        from envcheck.intake.collected import GpuFacts

        arch = f"{major}.{minor}" if major else None
        found.loose_gpus.append(GpuFacts(name=name, arch=arch))


def _environments(found: Collected) -> None:
    """`transformers env`, `accelerate env` and their like: dashed fields."""
    for match in _ENV.finditer(found.text):
        key, value = match[1].strip("`"), match[2].strip()
        lower = key.lower().replace("`", "")
        if value.lower().startswith("not installed"):
            continue
        version = values.release(value)
        available = re.search(r"\((True|False)\)", value)
        if lower.startswith("pytorch version"):
            if lower == "pytorch version" and found.torch.version:
                continue
            found.torch.version = found.torch.version or version
            if available:
                _available(found, available[1])
            found.recognised = True
        elif lower == "platform":
            values.read_platform(found, value)
        elif lower == "python version":
            values.read_python(found, value)
        elif lower in {"gpu type", "accelerator"}:
            _named(found, value, None, None)
        elif version:
            name = lower.split(" ")[0]
            if available and name == "tensorflow":
                found.frameworks.setdefault("tensorflow", {})["gpu_available"] = (
                    available[1] == "True"
                )
            add_package(found, name, version)
            found.recognised = True


def _deepspeed(found: Collected) -> None:
    for match in _DS.finditer(found.text):
        found.recognised = True
        key, value = match[1], match[2].strip()
        torch = found.torch
        if key == "torch version":
            torch.version = torch.version or value.split()[0]
        elif key == "torch cuda version":
            torch.cuda_said = True
            torch.cuda = value.split()[0] if value[:1].isdigit() else None
        elif key == "torch hip version" and value[:1].isdigit():
            torch.hip = value.split()[0]
        elif key == "nvcc version" and value[:1].isdigit():
            found.toolkits.append(
                {"version": value.split()[0], "via": "ds_report", "on_path": True}
            )
        elif key == "deepspeed info":
            version = values.release(value)
            if version:
                add_package(found, "deepspeed", version.rstrip(","))


def _ultralytics(found: Collected) -> None:
    match = _YOLO.search(found.text)
    if match is None:
        return
    found.recognised = True
    values.read_python(found, match[1])
    found.torch.version = found.torch.version or match[2]
    _available(found, "True" if match[3] else "False")
    _named(found, match[3], None, None)


def _jax(found: Collected) -> None:
    """`jax.print_environment_info()`."""
    for match in _JAX.finditer(found.text):
        if match[1] == "python":
            values.read_python(found, match[2])
        elif (version := values.release(match[2])) is not None:
            add_package(found, match[1], version)
            found.recognised = True
    devices = re.search(r"jax\.devices \(\d+ total[^\n]*\[([^\n]*)", found.text)
    if devices is not None:
        works = "cuda" in devices[1].lower() or "gpu" in devices[1].lower()
        found.frameworks.setdefault("jax", {})["gpu_available"] = works


def _capabilities(found: Collected) -> None:
    from envcheck.intake.collected import GpuFacts

    text = found.text
    for match in _NOT_COMPATIBLE.finditer(text):
        found.recognised = True
        name = re.sub(r"^.*?UserWarning:\s*", "", match[1]).strip()
        found.loose_gpus.append(GpuFacts(name=name, arch=_dotted(match[2])))
    match_ = _SUPPORTS.search(text)
    if match_ is not None and found.torch.arches is None:
        found.torch.arches = tuple(match_[1].split())
    for match in _OLD_GPU.finditer(text):
        found.recognised = True
        gpu = found.gpu(int(match[1]))
        gpu.name, gpu.arch = gpu.name or match[2].strip(), match[3]
        floor = _MINIMUM.search(text)
        if floor is not None:
            found.driver.setdefault("torch_minimum", floor[1])
    for match in _TF_DEVICE.finditer(text):
        arch = match[2] or f"{match[3]}.{match[4]}"
        found.loose_gpus.append(GpuFacts(name=match[1].strip(), arch=arch))
        found.recognised = True


def _dotted(digits: str) -> str:
    return f"{digits[:-1]}.{digits[-1]}"


def _initialisation(found: Collected) -> None:
    """What the CUDA driver library answered, as frameworks and other programs quote it."""
    text = found.text
    match = _COUNT_ERROR.search(text)
    if match is not None:
        found.recognised = True
        found.answer("libcuda", "error", int(match[1]), match[2].strip())
    elif "CUDA unknown error" in text:
        found.recognised = True
        found.answer("libcuda", "error", 999, "CUDA unknown error")
    elif found.has("cuinit", "cuda driver initialization failed", "error at driver init"):
        name = _INIT_NAME.search(text)
        if name is not None and name[1] in _CUDA_NAMES:
            found.recognised = True
            found.answer("libcuda", "error", _CUDA_NAMES[name[1]], name[1])
    elif "No CUDA GPUs are available" in text:
        found.recognised = True
        found.answer("libcuda", "error", 100, "No CUDA GPUs are available")
    number = _FOUND_VERSION.search(text)
    if number is not None:
        value = int(number[1])
        found.cuda_readings.append((f"{value // 1000}.{value % 1000 // 10}", "error message"))
        found.recognised = True
