"""Frameworks and native extensions of an environment, as their own files describe them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from envcheck.markers import holds
from envcheck.model.environment import Framework, LoadedLibrary, Origin
from envcheck.paths import payload
from envcheck.probe.answers import payload_answer
from envcheck.probe.shapes import IMPORTED
from envcheck.probe.source import Command
from envcheck.versions import Release, cudnn_from_int, nccl_from_int

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from envcheck.model.environment import Python
    from envcheck.probe.notes import Notes
    from envcheck.probe.source import Result

_IMPORTED = ("torch", "jax", "tensorflow")
_EXTENSIONS = (
    "torchvision",
    "torchaudio",
    "flash-attn",
    "xformers",
    "vllm",
    "bitsandbytes",
    "onnxruntime-gpu",
    "transformer-engine",
)
_TENSORFLOW = ("tensorflow", "tensorflow-gpu", "tensorflow-cpu", "tf-nightly")
_LOCAL_CUDA = re.compile(r"cu(?:da)?(\d{2,3})(?!\d)")


def cuda_of_tag(tag: str) -> str | None:
    """`12.8` of `cu128`, `12` of `cu12`, None of anything else."""
    match = _LOCAL_CUDA.search(tag)
    if match is None:
        return None
    digits = match.group(1)
    return digits if len(digits) == 2 else f"{digits[:2]}.{digits[2:]}"


def deep_commands(interpreter: str, timeout: float) -> tuple[Command, ...]:
    """Import each framework in a child of its own; loading gigabytes takes its time."""
    return tuple(
        Command(
            name=f"payload:import_{name}",
            argv=(interpreter, str(payload("import_framework")), name),
            timeout=max(timeout, 60.0),
            payload=True,
        )
        for name in _IMPORTED
    )


def read_frameworks(
    data: dict[str, Any], python: Python, results: Mapping[str, Result], notes: Notes
) -> tuple[Framework, ...]:
    """Frameworks first, then extensions whose CUDA release their name or version tells."""
    packages = {each["name"]: each for each in data["packages"]}
    conda = {each["name"]: each for each in data["conda_packages"]}
    found = [
        _torch(data, packages, conda, python),
        _jax(packages, python),
        _tensorflow(data, packages, python),
        *(
            _extension(packages[name], python, data["versions"].get(name))
            for name in _EXTENSIONS
            if name in packages
        ),
        *(
            _extension(each, python)
            for name, each in packages.items()
            if re.fullmatch(r"cupy-cuda\d+x?", name)
        ),
    ]
    return tuple(_deep(each, results, notes) for each in found if each is not None)


def _torch(
    data: dict[str, Any],
    packages: Mapping[str, dict[str, Any]],
    conda: Mapping[str, dict[str, Any]],
    python: Python,
) -> Framework | None:
    facts = _texts(data["versions"].get("torch"))
    package = packages.get("torch")
    if facts is None and package is None:
        return None
    version = str((facts or {}).get("__version__") or (package or {}).get("version") or "")
    cuda = _release((facts or {}).get("cuda"))
    other = any((facts or {}).get(name) for name in ("hip", "xpu", "rocm"))
    # A build that does not say for what it was built is of no known kind.
    told = facts is not None and "cuda" in facts and bool(facts["cuda"]) == bool(cuda)
    cpu_only = (cuda is None and not other) if told else None
    return Framework(
        name="torch",
        version=version,
        cuda=cuda or (cuda_of_tag(version.partition("+")[2]) if facts is None else None),
        cpu_only=cpu_only,
        hip=(facts or {}).get("hip") or (facts or {}).get("rocm"),
        xpu=(facts or {}).get("xpu"),
        git_version=(facts or {}).get("git_version"),
        arches=tuple(data["arches"]) if data.get("arches") else None,
        cudnn=_pin(package, "nvidia-cudnn", python),
        nccl=_pin(package, "nvidia-nccl", python),
        origin=_torch_origin(
            version,
            package,
            conda,
            facts,
            tegra=bool((data.get("python") or {}).get("tegra")),
        ),
        location=(facts or package or {}).get("location"),
        platform=python.platform,
    )


def _texts(said: dict[str, Any] | None) -> dict[str, Any] | None:
    """What a version file says in words; other values have no meaning that is known here."""
    return said and {name: each for name, each in said.items() if each is None or _text(each)}


def _release(text: str | None) -> str | None:
    """A text that is a version, else None."""
    return text if Release.maybe(text) is not None else None


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _torch_origin(
    version: str,
    package: dict[str, Any] | None,
    conda: Mapping[str, dict[str, Any]],
    facts: dict[str, Any] | None,
    *,
    tegra: bool,
) -> Origin:
    """Whose build it is; table rows are about wheels of the index and of torch's own site."""
    local = version.partition("+")[2]
    record = conda.get("pytorch") or conda.get("libtorch") or conda.get("pytorch-gpu")
    location = str((facts or package or {}).get("location") or "")
    if "/dist-packages" in location and location.startswith("/usr/lib/python3"):
        return "distribution"
    if re.search(r"(?:^|\.)nv\d", local):
        # Both are versioned alike; NVIDIA's wheels for Jetson are for its own kernel.
        return "jetson" if tegra else "ngc"
    if re.search(r"a0\+", version):
        return "source"
    installer = (package or {}).get("installer")
    if record is not None and installer not in {"pip", "uv", "poetry", "pdm"}:
        return "conda-forge" if record.get("channel") == "conda-forge" else "conda"
    if package is None or "git" in version:
        return "source"
    direct = package.get("direct_url")
    build = str(package.get("build") or "")
    if ".dev" in version or (direct and not (direct == "archive" and "manylinux" in build)):
        return "unknown"
    if re.fullmatch(r"cu\d{2,3}|cpu|rocm[\d.]+|xpu", local) or not local:
        # A wheel built at home carries a plain linux tag; the published ones are manylinux or,
        # once, linux_x86_64 of the framework's own site.
        named = "manylinux" in build or "linux_x86_64" in build or "win_amd64" in build or not build
        if not named and "macosx" not in build:
            return "source"
        # The index takes no local versions: a wheel that carries one is of torch's own site.
        return "framework-index" if "+" in str(package["version"]) else "index"
    return "unknown"


def _pin(package: dict[str, Any] | None, prefix: str, python: Python) -> str | None:
    """Exact version that a package requires of a distribution whose name starts so."""
    for line in (package or {}).get("requires") or ():
        if not line.startswith(prefix):
            continue
        match = re.match(r"-cu\d+\s*\(?==\s*([\w.]+)\)?\s*(?:;(.*))?$", line[len(prefix) :])
        if match and _holds(match.group(2), python):
            return match.group(1)
    return None


def _holds(marker: str | None, python: Python) -> bool:
    """Whether an environment marker holds for the target."""
    if not marker or not marker.strip():
        return True
    version = python.version or "3"
    platform = python.platform or "linux_x86_64"
    system, _, machine = platform.partition("_")
    environment = {
        "python_version": ".".join(version.split(".")[:2]),
        "python_full_version": version,
        "platform_machine": machine,
        "platform_system": {"linux": "Linux", "win": "Windows", "macosx": "Darwin"}.get(
            system, system
        ),
        "sys_platform": {"linux": "linux", "win": "win32", "macosx": "darwin"}.get(system, system),
        "implementation_name": python.implementation or "cpython",
        "platform_python_implementation": "CPython",
    }
    return holds(marker, tuple(environment.items()), "") is True


def _jax(packages: Mapping[str, dict[str, Any]], python: Python) -> Framework | None:
    package = packages.get("jax") or packages.get("jaxlib")
    if package is None:
        return None
    plugin = next(
        (each for name, each in packages.items() if re.fullmatch(r"jax-cuda\d+-plugin", name)), None
    )
    match = re.search(r"cuda(\d+)", plugin["name"]) if plugin else None
    return Framework(
        name="jax",
        version=package["version"],
        cuda=match.group(1) if match else cuda_of_tag(_local(packages.get("jaxlib"))),
        # Without a plugin jax runs on the CPU (or on a TPU, whose package has another name).
        cpu_only=plugin is None
        and "cuda" not in _local(packages.get("jaxlib"))
        and not any(re.fullmatch(r"jax-\w+-(?:plugin|pjrt)|libtpu", name) for name in packages),
        cudnn=_pin(plugin, "nvidia-cudnn", python),
        nccl=_pin(plugin, "nvidia-nccl", python),
        origin="index" if plugin is not None else "unknown",
        location=package.get("location"),
        platform=python.platform,
    )


def _local(package: dict[str, Any] | None) -> str:
    return str((package or {}).get("version") or "").partition("+")[2]


def _tensorflow(
    data: dict[str, Any], packages: Mapping[str, dict[str, Any]], python: Python
) -> Framework | None:
    """TensorFlow, with what its build wrote down: CUDA and cuDNN releases, architectures."""
    package = next((packages[name] for name in _TENSORFLOW if name in packages), None)
    if package is None:
        return None
    build = data["versions"].get("tensorflow") or {}
    cuda = _release(".".join(str(build.get("cuda_version") or "").split(".")[:2]))
    arches = build.get("cuda_compute_capabilities")
    on_cuda = build.get("is_cuda_build")
    named_cpu = True if package["name"] == "tensorflow-cpu" else None
    return Framework(
        name="tensorflow",
        version=package["version"],
        cuda=cuda if on_cuda else None,
        cpu_only=named_cpu
        if on_cuda is None
        else bool(not on_cuda and not build.get("is_rocm_build")),
        hip="unknown release" if build.get("is_rocm_build") else None,
        cudnn=str(build["cudnn_version"]) if on_cuda and build.get("cudnn_version") else None,
        arches=tuple(filter(_text, arches)) or None
        if on_cuda and isinstance(arches, list)
        else None,
        origin="index" if package.get("build") else "unknown",
        location=package.get("location"),
        platform=python.platform,
    )


def _extension(
    package: dict[str, Any], python: Python, said: dict[str, Any] | None = None
) -> Framework:
    """An extension; what it says of itself (`said`) has the variant that its metadata may lack."""
    version = str((said or {}).get("__version__") or package["version"])
    if version.partition("+")[0] != package["version"].partition("+")[0]:
        version = package["version"]
    suffix = re.search(r"cuda(\d+)", package["name"])
    # Some wheels tell it in their file's name only, which is known when they were named by it.
    local = (
        version.partition("+")[2]
        or str(package.get("wheel") or "").partition("+")[2].partition("-")[0]
    )
    return Framework(
        name=package["name"],
        version=version,
        cuda=suffix.group(1) if suffix else cuda_of_tag(local),
        cpu_only=True if local == "cpu" else None,
        origin="framework-index" if "+" in package["version"] or package.get("wheel") else "index",
        location=package.get("location"),
        platform=python.platform,
    )


def _deep(framework: Framework, results: Mapping[str, Result], notes: Notes) -> Framework:
    """Add what the framework itself said when it was imported."""
    import dataclasses

    result = results.get(f"payload:import_{framework.name}")
    if result is None:
        return framework
    data, reason = payload_answer(result, IMPORTED)
    if data is None:
        notes.missing(f"env.frameworks.{framework.name}", f"importing it: {reason}")
        return dataclasses.replace(framework, error=reason)
    versions = _said_versions(data.get("versions") or {})
    return dataclasses.replace(
        framework,
        gpu_available=data.get("gpu_available"),
        error=data.get("error"),
        arches=tuple(data["arches"]) if data.get("arches") is not None else framework.arches,
        loaded=tuple(_loaded(data.get("loaded") or (), versions)),
    )


def _said_versions(said: Mapping[str, Any]) -> dict[str, str]:
    """Versions of libraries as a framework prints them: packed integers, or lists of parts."""
    found = {}
    for name, decode in (("cudnn", cudnn_from_int), ("nccl", nccl_from_int)):
        value = said.get(name)
        if isinstance(value, int) and not isinstance(value, bool):
            found[name] = decode(value)
        elif isinstance(value, list):
            found[name] = ".".join(str(part) for part in value if isinstance(part, int))
    return found


def _loaded(
    items: Iterable[Mapping[str, Any]], versions: Mapping[str, str]
) -> Iterable[LoadedLibrary]:
    return (
        LoadedLibrary(name=each["name"], version=versions.get(each["name"]), path=each.get("path"))
        for each in items
    )
