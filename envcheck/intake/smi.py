"""Reads nvidia-smi: its table in every width, `-L`, `-q`, CSV queries, and what it says instead."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from envcheck.model.host import GpuProcess

if TYPE_CHECKING:
    from envcheck.intake.collected import Collected, GpuFacts

_HEAD = re.compile(
    r"NVIDIA-SMI[ \t:]+([\d.]+)[^\n]*?(?:Driver|KMD)[ \t]*Version:?\s*([\d.]+|N/A|ERR!)"
    r"(?:[^\n]*?CUDA(?:[ \t]+UMD)?[ \t]*Version:?\s*([\d.]+|N/A|ERR!))?"
)
_PLAIN_DRIVER = re.compile(
    r"(?<![\w-])(?:NVIDIA )?driver(?: version)?[ \t]*[:=][ \t]*v?"
    r"(\d{2,3}\.\d{2,3}(?:\.\d{1,3})?)\b",
    re.IGNORECASE,
)
_PLAIN_CUDA = re.compile(r"CUDA Driver Version(?: / Runtime Version)?[ \t:=]+(\d{1,2}\.\d)\b")
_ROW = re.compile(
    r"^[|\s]*(\d{1,3})[ \t]+(\S[^|\n]*?)(?:[ \t]+(On|Off|N/A|TCC|WDDM|WDDM  \S+|Default))?[ \t]*\|"
    r"[ \t]*([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f])[ \t]+(On|Off|N/A)[ \t]*\|"
    r"[ \t]*(\d+|N/A|Off|On|ERR!)[ \t]*\|",
    re.MULTILINE,
)
_STATE = re.compile(
    r"^\|[ \t]*(\S+)[ \t]+(?:(\d+)C|N/A|ERR!)[ \t]+(P\d+|N/A|ERR!)[ \t]+"
    r"(\S+)[ \t]*/[ \t]*(\S+)[ \t]*\|[ \t]*(\d+)MiB[ \t]*/[ \t]*(\d+)MiB[ \t]*\|"
    r"[ \t]*(?:(\d+)%|N/A|ERR!)[ \t]+([A-Z]\S*(?: \S+)?)",
)
_MIG = re.compile(r"^\|[ \t]*\|[ \t]*\|[ \t]*(Enabled|Disabled|N/A)\*?[ \t]*\|")
_PROCESS = re.compile(
    r"^\|[ \t]+(\d{1,3})[ \t]+(?:\S+[ \t]+\S+[ \t]+)?(\d+)[ \t]+([CGM+]+)[ \t]+(\S[^|\n]*?)[ \t]+"
    r"(\d+)MiB[ \t]*\|",
    re.MULTILINE,
)
_LISTED = re.compile(
    r"^[ \t|$#]*GPU (\d{1,3}):[ \t]+(\S[^\n(]*?)[ \t]*\(UUID:[^\n]*$", re.MULTILINE
)
_MIG_DEVICE = re.compile(r"^[ \t]*MIG [\dc.g+a-z]+[ \t]+Device[ \t]+\d+:", re.MULTILINE)
_FULL = re.compile(
    r"^[ \t]*(Product Name|Driver Version|CUDA Version|Attached GPUs|Compute Mode|Persistence Mode"
    r"|Pending Page Blacklist|Pending|Remapping Failure Occurred|Current|DRAM Uncorrectable"
    r"|SRAM Uncorrectable(?: Parity| SEC-DED)?|Double Bit|Total|Product Architecture|Bus Id"
    r"|Uncorrectable Error|Status|State|GPU Current Temp|Aggregate Uncorrectable SRAM Sources"
    r"|CUDA UMD Version|KMD Version)[ \t]*:[ \t]*(\S[^\n]*)$",
    re.MULTILINE,
)
_GPU_SECTION = re.compile(r"^GPU ([0-9A-Fa-f]{8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d)[ \t]*$", re.M)
_INIT = re.compile(r"Failed to initialize NVML:?[ \t]*([^\n]*)")
_NVML_LIBRARY = re.compile(r"NVML library version:?[ \t]*(\d{3}\.\d+(?:\.\d+)?)")
_CODES = {
    "driver/library version mismatch": 18,
    "driver not loaded": 9,
    "unknown error": 999,
    "insufficient permissions": 4,
    "gpu access blocked by the operating system": 17,
    "not found": 12,
    "gpu is lost": 15,
    "no supported gpus were found": 6,
}
_MODES = {
    "Default": "default",
    "E. Process": "exclusive-process",
    "Exclusive_Process": "exclusive-process",
    "Prohibited": "prohibited",
    "E. Thread": "exclusive-thread",
    "Exclusive_Thread": "exclusive-thread",
}


def read(found: Collected) -> None:
    """Collect what nvidia-smi printed."""
    if not found.has(
        "nvidia-smi", "nvml", "driver version", "gpu 0", "uuid", "no devices were found", "driver"
    ):
        return
    _heads(found)
    _table(found)
    _lists(found)
    _full(found)
    _csv(found)
    _trouble(found)
    _plain(found)


def _heads(found: Collected) -> None:
    for match in _HEAD.finditer(found.text):
        found.recognised = True
        driver = match[2] if match[2][0].isdigit() else match[1]
        found.readings.append((driver, "nvidia-smi"))
        cuda = match[3]
        if cuda and cuda[0].isdigit():
            found.cuda_readings.append((cuda, "nvidia-smi"))
        elif cuda:
            # nvidia-smi asks libcuda for it, and found none.
            found.answer("libcuda", "missing", None, f"nvidia-smi: CUDA Version: {cuda}")
        found.answer("smi", "ok", 0)
        found.answer("nvml", "ok")


def _table(found: Collected) -> None:
    text = found.text
    for match in _ROW.finditer(text):
        found.recognised = True
        gpu = found.gpu(int(match[1]))
        gpu.name = gpu.name or _name(match[2])
        gpu.facts.setdefault("bus_id", _bus(match[4]))
        if match[3] in {"On", "Off"}:
            gpu.facts.setdefault("persistence", match[3] == "On")
        if match[6].isdigit():
            gpu.facts.setdefault("ecc", True)
            gpu.facts.setdefault("ecc_uncorrected", int(match[6]))
        elif match[6] in {"Off", "N/A"}:
            gpu.facts.setdefault("ecc", False if match[6] == "Off" else None)
        following = text[match.end() : match.end() + 600].split("\n")[1:5]
        _state(gpu, following)
        found.answer("smi", "ok", 0)
        found.answer("nvml", "ok")
    if found.gpus and "Processes:" in text:
        _processes(found)


def _state(gpu: GpuFacts, following: list[str]) -> None:
    for line in following:
        state = _STATE.match(line)
        if state is not None:
            facts = gpu.facts
            if state[2]:
                facts.setdefault("temperature_c", int(state[2]))
            for key, text in (("power_watts", state[4]), ("power_limit_watts", state[5])):
                if text.rstrip("W").isdigit():
                    facts.setdefault(key, float(text.rstrip("W")))
            facts.setdefault("memory_used_bytes", int(state[6]) << 20)
            facts.setdefault("memory_total_bytes", int(state[7]) << 20)
            if state[8]:
                facts.setdefault("utilization_percent", int(state[8]))
            mode = next((_MODES[name] for name in _MODES if state[9].startswith(name)), None)
            facts.setdefault("compute_mode", mode)
        mig = _MIG.match(line)
        if mig is not None and mig[1] != "N/A":
            gpu.facts.setdefault("mig", mig[1] == "Enabled")


def _processes(found: Collected) -> None:
    held: dict[int, list[GpuProcess]] = {}
    start = found.text.find("Processes:")
    for match in _PROCESS.finditer(found.text, start):
        held.setdefault(int(match[1]), []).append(
            GpuProcess(pid=int(match[2]), name=match[4], memory_bytes=int(match[5]) << 20)
        )
    for index, gpu in found.gpus.items():
        if index in held:
            gpu.facts.setdefault("processes", tuple(held[index]))
        elif "No running processes found" in found.text:
            gpu.facts.setdefault("processes", ())


def _lists(found: Collected) -> None:
    places = [(match.start(), match) for match in _LISTED.finditer(found.text)]
    for at, (_, match) in enumerate(places):
        found.recognised = True
        gpu = found.gpu(int(match[1]))
        gpu.name = gpu.name or match[2].strip()
        end = places[at + 1][0] if at + 1 < len(places) else match.end() + 2000
        instances = len(_MIG_DEVICE.findall(found.text[match.end() : end]))
        if instances:
            gpu.facts.update(mig=True, mig_instances=instances)
        found.answer("nvml", "ok")


def _full(found: Collected) -> None:
    """`nvidia-smi -q`: one section per GPU."""
    sections = list(_GPU_SECTION.finditer(found.text))
    if not sections:
        return
    found.recognised = True
    head = found.text[: sections[0].start()]
    for match in _FULL.finditer(head):
        if match[1] in {"Driver Version", "KMD Version"} and match[2][0].isdigit():
            found.readings.append((match[2].split()[0], "nvidia-smi -q"))
        if match[1] in {"CUDA Version", "CUDA UMD Version"} and match[2][0].isdigit():
            found.cuda_readings.append((match[2].split()[0], "nvidia-smi -q"))
    found.answer("smi", "ok", 0)
    found.answer("nvml", "ok")
    for index, section in enumerate(sections):
        end = sections[index + 1].start() if index + 1 < len(sections) else len(found.text)
        body = found.text[section.end() : end]
        gpu = found.gpu(index)
        gpu.facts.setdefault("bus_id", _bus(section[1]))
        _section(gpu, body)


def _section(gpu: GpuFacts, body: str) -> None:
    fields: dict[str, str] = {}
    for match in _FULL.finditer(body):
        fields.setdefault(match[1], match[2].strip())
    gpu.name = gpu.name or fields.get("Product Name")
    mode = fields.get("Compute Mode")
    if mode in _MODES:
        gpu.facts.setdefault("compute_mode", _MODES[mode])
    remapped = re.search(r"Remapped Rows(.*?)(?:\n[ \t]{0,4}\S|\Z)", body, re.DOTALL)
    if remapped:
        pending = re.search(r"Pending[ \t]*:[ \t]*(Yes|No)", remapped[1])
        failed = re.search(r"Remapping Failure Occurred[ \t]*:[ \t]*(Yes|No)", remapped[1])
        if pending:
            gpu.facts.setdefault("remap_pending", pending[1] == "Yes")
        if failed:
            gpu.facts.setdefault("remap_failed", failed[1] == "Yes")
    blacklist = re.search(r"Pending Page Blacklist[ \t]*:[ \t]*(Yes|No)", body)
    if blacklist:
        gpu.facts.setdefault("retired_pages_pending", blacklist[1] == "Yes")
    errors = re.search(r"Volatile(.*?)(?:Aggregate|\Z)", body, re.DOTALL)
    if errors:
        counts = re.findall(r"(?:Uncorrectable|Double Bit)[^:\n]*:[ \t]*(\d+)", errors[1])
        if counts:
            gpu.facts.setdefault("ecc_uncorrected", sum(map(int, counts)))
    mig = re.search(r"MIG Mode\s*\n\s*Current[ \t]*:[ \t]*(Enabled|Disabled)", body)
    if mig:
        gpu.facts.setdefault("mig", mig[1] == "Enabled")
    fabric = re.search(r"Fabric\s*\n\s*State[ \t]*:[ \t]*([A-Za-z ]+)", body)
    if fabric:
        state = {
            "completed": "completed",
            "in progress": "in-progress",
            "not started": "not-started",
        }
        gpu.facts.setdefault("fabric_state", state.get(fabric[1].strip().lower()))


def _csv(found: Collected) -> None:
    """`nvidia-smi --query-gpu=... --format=csv`, with its line of names."""
    lines = found.lines
    for at, line in enumerate(lines):
        names = [name.strip().split(" [")[0] for name in line.split(",")]
        if len(names) < 2 or not {"name", "driver_version", "index"} & set(names):
            continue
        if not all(re.fullmatch(r"[a-z][a-z0-9_.]*", name) for name in names):
            continue
        for index, row in enumerate(lines[at + 1 : at + 33]):
            values = [value.strip() for value in row.split(",")]
            if len(values) != len(names) or values == names:
                break
            known = dict(zip(names, values, strict=True))
            number = known.get("index", str(index))
            gpu = found.gpu(int(number) if number.isdigit() else index)
            gpu.name = gpu.name or known.get("name")
            if re.fullmatch(r"\d+\.\d", known.get("compute_cap", "")):
                gpu.arch = known["compute_cap"]
            if known.get("driver_version", "")[:1].isdigit():
                found.readings.append((known["driver_version"], "nvidia-smi"))
            found.answer("nvml", "ok")
            found.recognised = True


def _trouble(found: Collected) -> None:
    match = _INIT.search(found.text)
    if match:
        found.recognised = True
        message = match[1].strip() or "Unknown Error"
        code = next((n for words, n in _CODES.items() if words in message.lower()), None)
        worked = bool(found.gpus)
        # A text that holds both is about two places: a container, and the host around it.
        if not worked:
            found.answer("nvml", "error", code, message)
            found.answer("smi", "error", 18, f"Failed to initialize NVML: {message}")
        else:
            found.driver["nvml_elsewhere"] = message
    match = _NVML_LIBRARY.search(found.text)
    if match:
        found.driver.setdefault("nvml_library", match[1])
    if "couldn't communicate with the nvidia driver" in found.lower:
        found.recognised = True
        found.answer(
            "smi",
            "error",
            9,
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver",
        )
        found.answer("nvml", "error", 9, "Driver Not Loaded")
    if re.search(r"^[ \t]*No devices were found", found.text, re.MULTILINE):
        found.recognised = True
        found.no_gpus = True
        found.answer("smi", "error", 6, "No devices were found")
    if re.search(r"unable to determine the device handle for gpu", found.lower):
        found.recognised = True
        found.answer("smi", "error", 15, "Unable to determine the device handle for GPU")


def _plain(found: Collected) -> None:
    """A driver's release, as people write it."""
    for match in _PLAIN_DRIVER.finditer(found.text):
        found.recognised = True
        found.readings.append((match[1], "text"))
    for match in _PLAIN_CUDA.finditer(found.text):
        found.cuda_readings.append((match[1], "text"))


def _name(text: str) -> str:
    """A name of the table, without what its columns run into."""
    return re.sub(r"[ \t]+(?:On|Off|TCC|WDDM|N/A)$", "", text.strip()).strip()


def _bus(text: str) -> str:
    domain, rest = text.lower().split(":", 1)
    return f"{domain[-4:]}:{rest}"
