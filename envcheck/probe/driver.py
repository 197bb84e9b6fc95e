"""The NVIDIA driver: kernel module, user-space files, and what its libraries answer."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from envcheck.model.host import Driver, ProbeAnswer, Reading
from envcheck.probe.answers import failed, first_line, payload_answer
from envcheck.probe.shapes import LIBCUDA, NVML
from envcheck.versions import Release, cuda_from_int

if TYPE_CHECKING:
    from collections.abc import Mapping

    from envcheck.probe.driver_files import DriverFiles
    from envcheck.probe.kernel import Kernel
    from envcheck.probe.notes import Notes
    from envcheck.probe.quiet import Quiet
    from envcheck.probe.source import Result

OVERRIDE = "ENVCHECK_DRIVER_VERSION"
"""Variable that stands for the driver's version where it cannot be read, or to ask `what if`."""

OWN_LIBCUDA = "payload:query_libcuda-own"
"""Asked in addition where a cuda-compat libcuda hides the driver's own."""

NVML_LIBRARY_NOT_FOUND = 12

_VERSION = re.compile(r"\b(\d{3,4}\.\d{1,3}(?:\.\d{1,3})?)\b")
_PROC = re.compile(r"(?:Kernel Module|Open Kernel Module for \S+|Module for \S+)\s+(\d+\.[\d.]+)")
# Both spellings of the nvidia-smi banner: the words changed with the 610 branch.
_BANNER_DRIVER = re.compile(r"(?:Driver|KMD) Version:\s*(\d+\.[\d.]+)")
_BANNER_CUDA = re.compile(r"CUDA (?:UMD )?Version:\s*(\d+\.\d+)")


def answered(results: Mapping[str, Result]) -> bool:
    """Whether NVML answered, so that nvidia-smi has nothing to add."""
    data, _ = payload_answer(results.get("payload:query_nvml"), NVML)
    return data is not None and not data.get("init") and data.get("gpus") is not None


def proc_version(text: str | None) -> tuple[str | None, bool | None]:
    """Release and kind of the loaded module, out of /proc/driver/nvidia/version.

    Returns:
        The release, and True for the open kernel module, False for the proprietary one.
    """
    line = first_line(text or "")
    match = _PROC.search(line) or _VERSION.search(line)
    if match is None:
        return None, None
    return match.group(1), "Open Kernel Module" in line


def banner(text: str) -> tuple[str | None, str | None]:
    """Driver and CUDA interface version out of what `nvidia-smi` prints, in either spelling."""
    driver, cuda = _BANNER_DRIVER.search(text), _BANNER_CUDA.search(text)
    return (driver.group(1) if driver else None), (cuda.group(1) if cuda else None)


def read_driver(
    source: Quiet,
    kernel: Kernel,
    files: DriverFiles,
    results: Mapping[str, Result],
    notes: Notes,
) -> Driver:
    """Put together every reading of the driver.

    Args:
        source: the machine.
        kernel: modules and log, read before any child was started.
        files: driver files and packages on disk.
        results: of the NVML and libcuda payloads and of nvidia-smi.
        notes: where gaps go.
    """
    nvml, nvml_why = payload_answer(results.get("payload:query_nvml"), NVML)
    libcuda, libcuda_why = payload_answer(results.get("payload:query_libcuda"), LIBCUDA)
    smi = results.get("nvidia-smi-banner")
    smi_driver, smi_cuda = banner(smi.stdout) if smi else (None, None)

    override = source.variables.get(OVERRIDE)
    if Release.maybe(override) is None:
        override = None
    proc, open_module = proc_version(kernel.proc_version)
    readings = [
        (override, f"variable {OVERRIDE}"),
        (kernel.module_version, "/sys/module/nvidia/version"),
        (proc, "/proc/driver/nvidia/version"),
        ((nvml or {}).get("driver"), "NVML"),
        (files.libcuda_version, files.libcuda_path or "libcuda.so"),
        (smi_driver, "nvidia-smi"),
    ]
    kept = tuple(
        Reading(value=value, via=via) for value, via in readings if Release.maybe(value) and value
    )
    hidden, _ = payload_answer(results.get(OWN_LIBCUDA), LIBCUDA)
    nvml_cuda = _cuda((nvml or {}).get("cuda"))
    seen_cuda = _cuda((libcuda or {}).get("cuda"))
    cudas = [
        (None if files.compat_path else seen_cuda, "libcuda"),
        (_cuda((hidden or {}).get("cuda")), str(files.libcuda_path)),
        (nvml_cuda, "NVML"),
        (smi_cuda, "nvidia-smi"),
        (seen_cuda if files.compat_path else None, f"libcuda of {files.compat_path}"),
    ]
    cuda_readings = tuple(Reading(value=value, via=via) for value, via in cudas if value)
    nvml_answer = _nvml_answer(nvml, nvml_why, results.get("payload:query_nvml"), notes)
    module_version = kernel.module_version or proc
    return Driver(
        version=override or module_version or _fullest(kept),
        module_version=module_version,
        userspace_version=files.libcuda_version or files.nvml_version,
        readings=kept,
        cuda=cuda_readings[0].value if cuda_readings else None,
        cuda_readings=cuda_readings,
        open_module=open_module,
        module_loaded=kernel.module_loaded,
        uvm_loaded=kernel.uvm_loaded,
        installed=files.installed,
        nvml=nvml_answer,
        libcuda=_libcuda_answer(libcuda, libcuda_why, results.get("payload:query_libcuda")),
        smi=_smi_answer(smi),
        compat_path=files.compat_path,
        compat_version=files.compat_version,
        packages=files.packages,
        dkms=files.dkms,
        module_file=files.module_file,
        secure_boot=kernel.secure_boot,
        lockdown=kernel.lockdown,
        nouveau_loaded=kernel.nouveau_loaded,
        kernel_log=kernel.log,
    )


def _fullest(readings: tuple[Reading, ...]) -> str | None:
    """First reading, or a later one that is the same release with more parts (NVML prints two)."""
    if not readings:
        return None
    first = Release.parse(readings[0].value)
    same = [each.value for each in readings if Release.parse(each.value).starts_like(first)]
    return max(same, key=lambda value: len(Release.parse(value).parts))


def _cuda(value: Any) -> str | None:
    return cuda_from_int(value) if isinstance(value, int) and value > 0 else None


def _nvml_answer(
    data: dict[str, Any] | None, reason: str, result: Result | None, notes: Notes
) -> ProbeAnswer:
    if data is None:
        return _unasked(result, reason)
    path = data.get("path")
    if data.get("binding") == "ctypes" and "init" not in data:
        notes.missing(
            "host.gpus.details", f"asked NVML without pynvml: {data.get('binding_reason')}"
        )
    failure = data.get("init")
    if not failure:
        return ProbeAnswer(outcome="ok", code=0, path=path)
    code, message = failure.get("code"), failure.get("message")
    missing = code == NVML_LIBRARY_NOT_FOUND
    return ProbeAnswer(
        outcome="missing" if missing else "error", code=code, message=message, path=path
    )


def _unasked(result: Result | None, reason: str) -> ProbeAnswer:
    """A payload without an answer; an interpreter that does not start says nothing of a library."""
    if result is None or result.outcome == "missing":
        return ProbeAnswer(message=reason)
    return failed(result, reason)


def _libcuda_answer(data: dict[str, Any] | None, reason: str, result: Result | None) -> ProbeAnswer:
    if data is None:
        return _unasked(result, reason)
    if "load_error" in data:
        # A file that is there and cannot be loaded (truncated, of another machine) is no absence.
        named, no_such_file, _ = data["load_error"].partition("No such file")
        absent = bool(no_such_file) and "libcuda.so.1" in named
        return ProbeAnswer(outcome="missing" if absent else "error", message=data["load_error"])
    code = data.get("init")
    return ProbeAnswer(
        outcome="ok" if code == 0 and "message" not in data else "error",
        code=code,
        message=data.get("message"),
        path=data.get("path"),
    )


def _smi_answer(result: Result | None) -> ProbeAnswer:
    if result is None:
        return ProbeAnswer()
    if result.outcome != "ok":
        return failed(result)
    # Something else may answer by that name.
    if result.code == 0 and ("NVIDIA-SMI" in result.stdout or any(banner(result.stdout))):
        return ProbeAnswer(outcome="ok", code=0)
    words = first_line(result.stdout) or first_line(result.stderr)
    return ProbeAnswer(outcome="error", code=result.code, message=words)
