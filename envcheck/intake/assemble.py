"""Puts together what was collected from a text: one snapshot, in which unknown stays unknown."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from envcheck.intake import collect_env, frameworks, machine, packages, smi
from envcheck.intake.gpus import gpus_of
from envcheck.intake.torch_build import torch_framework
from envcheck.matrix import query
from envcheck.model.environment import (
    Compiler,
    Environment,
    Framework,
    Package,
    Python,
    Toolkit,
    Variable,
)
from envcheck.model.host import (
    Cdi,
    Container,
    Driver,
    Engine,
    FabricManager,
    Host,
    Os,
    PciDevice,
    ProbeAnswer,
    Reading,
    SystemPackage,
)
from envcheck.model.snapshot import Snapshot

if TYPE_CHECKING:
    from collections.abc import Callable

    from envcheck.intake.collected import Collected
    from envcheck.matrix.loader import Matrix
    from envcheck.model.host import Gpu


def readers() -> tuple[Callable[[Collected], None], ...]:
    """Every reader, the most trusted first: the first word on a fact counts."""
    return (
        smi.read,
        machine.read,
        collect_env.read,
        frameworks.read,
        packages.read,
    )


def snapshot(found: Collected, matrix: Matrix, whole: str | None = None) -> Snapshot:
    """The facts of a text as a snapshot.

    Args:
        found: what the readers collected.
        matrix: tables.
        whole: the text as it came, when only parts of it were read as facts.
    """
    from envcheck.symptoms.scan import scan

    gpus = gpus_of(found, matrix)
    python = _python(found)
    env = Environment(
        python=python,
        packages=_packages(found),
        frameworks=_frameworks(found, matrix, python),
        toolkits=_toolkits(found),
        compilers=tuple(
            Compiler(name=name, version=version) for name, version in dict.fromkeys(found.compilers)
        )
        or None,
        variables=tuple(
            Variable(name=name, value=value) for name, value in sorted(found.variables.items())
        ),
    )
    return Snapshot(
        source="report",
        host=_host(found, gpus),
        env=env,
        symptoms=scan(found.lines if whole is None else whole.splitlines(), matrix, via="text"),
    )


def _host(found: Collected, gpus: tuple[Gpu, ...] | None) -> Host:
    os = found.os
    return Host(
        os=Os(
            id=os.get("id"),
            version=os.get("version"),
            name=os.get("name"),
            kernel=os.get("kernel"),
            machine=os.get("machine"),
            glibc=_glibc(found),
        ),
        wsl=found.wsl if found.wsl is not None or os.get("kernel") is None else 0,
        jetson=found.jetson,
        driver=_driver(found, gpus),
        gpus=gpus,
        pci=tuple(PciDevice(**each) for each in found.pci) or None,
        container=Container(**found.container),
        engines=tuple(Engine(name=name, **facts) for name, facts in found.engines.items()) or None,
        cdi=Cdi(devices=tuple(found.cdi_devices)) if found.cdi_devices else None,
        fabric_manager=FabricManager(**found.fabric_manager),
        shm_bytes=found.shm_bytes,
    )


def _glibc(found: Collected) -> str | None:
    """The system's C library, as the report states it, else as Python names it."""
    said: str | None = found.os.get("glibc")
    return said or found.os.get("python_glibc")


def _driver(found: Collected, gpus: tuple[Gpu, ...] | None) -> Driver:
    facts = found.driver
    readings = list(dict.fromkeys(found.readings))
    module = facts.get("module_version")
    version = module or (readings[0][0] if readings else None)
    answers = {
        name: ProbeAnswer(outcome=outcome, code=code, message=message or None)  # type: ignore[arg-type]
        for name, (outcome, code, message) in found.answers.items()
    }
    libcuda = answers.get("libcuda")
    if libcuda is None and _cuda_works(found):
        libcuda = ProbeAnswer(outcome="ok", code=0)
    works = any(each.outcome == "ok" for each in (*answers.values(), libcuda) if each) or gpus
    return Driver(
        version=version,
        module_version=module,
        userspace_version=facts.get("userspace_version") or _userspace(found, module),
        readings=tuple(Reading(value=value, via=via) for value, via in readings),
        cuda=found.cuda_readings[0][0] if found.cuda_readings else None,
        cuda_readings=tuple(
            Reading(value=value, via=via) for value, via in dict.fromkeys(found.cuda_readings)
        ),
        open_module=facts.get("open_module"),
        module_loaded=True if facts.get("module_loaded") or works else None,
        installed=_installed(found, known=bool(version or works)),
        nvml=answers.get("nvml", ProbeAnswer()),
        libcuda=libcuda or ProbeAnswer(),
        smi=answers.get("smi", ProbeAnswer()),
        packages=tuple(
            SystemPackage(name=name, version=version, state=state)
            for name, version, state in dict.fromkeys(found.system_packages)
        )
        or None,
        nouveau_loaded=facts.get("nouveau_loaded"),
        kernel_log=tuple(found.kernel_log) or None,
    )


def _installed(found: Collected, *, known: bool) -> bool | None:
    """Whether a driver is on the disk: nvidia-smi that fails is, one that is not found is not."""
    if known or found.answers.get("smi", ("", None, ""))[1] in {9, 18}:
        return True
    absent = re.search(r"nvidia-smi['\"`]?:? (?:command )?not (?:found|recognized)", found.lower)
    return False if absent else None


def _userspace(found: Collected, module: str | None) -> str | None:
    """Release of the user-space files: NVML's own word, else the packages that hold them."""
    said: str | None = found.driver.get("nvml_library")
    if said is not None:
        # NVML names two parts of its release: not another one as long as these agree.
        return module if module and module.startswith(f"{said}.") else said
    for name, version, state in found.system_packages:
        if state in {"installed", "held"} and re.match(
            r"nvidia-smi|libnvidia-compute|libcuda1|nvidia-utils|libnvidia-ml1|nvidia-driver-libs",
            name,
        ):
            number = re.search(r"\d{3}\.\d{2,3}(?:\.\d{1,3})?", version)
            if number:
                return number[0]
    return None


def _cuda_works(found: Collected) -> bool:
    return found.torch.available is True or any(
        each.get("gpu_available") for each in found.frameworks.values()
    )


def _python(found: Collected) -> Python:
    facts, os = found.python, found.os
    version = facts.get("version") or _python_of_paths(found)
    windows = os.get("id") == "windows" and not found.wsl
    system = "win" if windows else "macosx" if os.get("id") == "macos" else "linux"
    machine = os.get("machine") or ("aarch64" if found.jetson else None)
    platform = None
    if machine or os.get("id") or os.get("kernel"):
        cpu = machine or "x86_64"
        if system == "win":
            platform = "win_amd64"
        elif system == "macosx":
            platform = f"macosx_{'arm64' if cpu == 'aarch64' else cpu}"
        else:
            platform = f"linux_{cpu}"
    conda = facts.get("conda") or (
        "conda" in found.lower
        and re.search(
            r"/(?:ana|mini|mamba|micro|mini)?(?:conda|forge|mamba)\d?/(?:envs/|lib/python)",
            found.lower,
        )
    )
    parts = (version or "").split(".")
    tag = None
    if len(parts) > 1:
        tag = f"cp{parts[0]}{parts[1]}" + ("t" if facts.get("threaded") else "")
    by_conda = any(
        each.installer == "conda" and each.name == "torch" for each in found.packages.values()
    )
    return Python(
        version=version,
        kind="conda" if conda else None,
        manager="conda" if by_conda else "pip",
        tag=tag,
        platform=platform,
    )


def _python_of_paths(found: Collected) -> str | None:
    """The interpreter that paths in a traceback name."""
    match = re.search(r"[/\\](?:lib|Lib)[/\\]python(3\.\d{1,2})[/\\]", found.text) or re.search(
        r"[/\\]Python(3)(\d{1,2})[/\\]|\bcpython-(3)(\d{1,2})-|(?<=\bpython[ -])(3\.\d{1,2})\b",
        found.text,
        re.IGNORECASE,
    )
    if match is None:
        return None
    groups = [each for each in match.groups() if each]
    return groups[0] if len(groups) == 1 else ".".join(groups[:2])


def _packages(found: Collected) -> tuple[Package, ...] | None:
    if not found.packages:
        return None
    return tuple(sorted(found.packages.values(), key=lambda each: each.name))


def _toolkits(found: Collected) -> tuple[Toolkit, ...] | None:
    seen: dict[str, Toolkit] = {}
    for each in found.toolkits:
        seen.setdefault(
            each["version"],
            Toolkit(
                version=each["version"],
                root="",
                nvcc=True,
                via=each.get("via"),
                on_path=bool(each.get("on_path")),
            ),
        )
    return tuple(seen.values()) or None


_OTHERS = {
    "tensorflow": ("tensorflow", "tensorflow-gpu", "tensorflow-cpu", "tensorflow-intel"),
    "jax": ("jax",),
}
_EXTENSIONS = (
    "torchvision",
    "torchaudio",
    "flash-attn",
    "xformers",
    "vllm",
    "bitsandbytes",
    "onnxruntime-gpu",
)


def _frameworks(found: Collected, matrix: Matrix, python: Python) -> tuple[Framework, ...] | None:
    result: list[Framework] = []
    torch = torch_framework(found, matrix, python)
    if torch is not None:
        result.append(torch)
    for name, distributions in _OTHERS.items():
        package = next((found.packages[d] for d in distributions if d in found.packages), None)
        if package is None:
            continue
        facts = found.frameworks.get(name, {})
        cpu = package.name in {"tensorflow-cpu", "tensorflow-intel"} or (
            name == "tensorflow"
            and (python.platform or "").startswith("win")
            and _after_windows_builds(matrix, package.version)
        )
        result.append(
            Framework(
                name=name,
                version=package.version,
                cpu_only=True if cpu else None,
                cuda=None if cpu else _plugin_cuda(found, name),
                origin="index" if package.installer != "conda" else "conda",
                platform=python.platform,
                gpu_available=facts.get("gpu_available"),
            )
        )
    for name in _EXTENSIONS:
        package = found.packages.get(name)
        if package is not None:
            result.append(_extension(package, python))
    return tuple(result) or None


def _after_windows_builds(matrix: Matrix, version: str) -> bool:
    """Whether a tensorflow release is one of those that have no CUDA build for Windows."""
    row = query.tensorflow_release(matrix, version)
    from envcheck.versions import Release

    have = Release.maybe(version)
    oldest = min((Release.parse(each.version) for each in matrix.tensorflow_releases), default=None)
    return row is not None or (
        have is not None and oldest is not None and have.parts[:2] >= (oldest.parts[0], 11)
    )


def _plugin_cuda(found: Collected, name: str) -> str | None:
    if name != "jax":
        return None
    for each in found.packages:
        match = re.fullmatch(r"jax-cuda(\d+)-plugin", each)
        if match:
            return match[1]
    return None


def _extension(package: Package, python: Python) -> Framework:
    match = re.search(r"cu(?:da)?(\d{2,3})(?!\d)", package.version.partition("+")[2])
    cuda = None
    if match:
        digits = match[1]
        cuda = digits if len(digits) == 2 else f"{digits[:2]}.{digits[2:]}"
    return Framework(
        name=package.name,
        version=package.version,
        cuda=cuda,
        cpu_only=True if package.version.endswith("+cpu") else None,
        origin="conda" if package.installer == "conda" else "unknown",
        platform=python.platform,
    )
