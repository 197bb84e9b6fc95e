"""Asks NVML about the driver and its GPUs; prints one JSON line. Run as a file, in a child process.

NVML can hang on a sick GPU, crash, or answer errors, which is why it never runs inside envcheck.
Each question is answered or its error kept, and a library that lacks a function loses that fact
only. `pynvml` (the nvidia-ml-py package) is used when it is the real one; else the few calls that
matter are made through ctypes.
"""

import contextlib
import ctypes
import json
import sys

MARKER = "envcheck-json:"
LIBRARY = "libnvidia-ml.so.1"

LIBRARY_NOT_FOUND, FUNCTION_NOT_FOUND = 12, 13

THROTTLE = {
    0x0000000000000001: "idle",
    0x0000000000000002: "application-clocks",
    0x0000000000000004: "sw-power-cap",
    0x0000000000000008: "hw-slowdown",
    0x0000000000000010: "sync-boost",
    0x0000000000000020: "sw-thermal",
    0x0000000000000040: "hw-thermal",
    0x0000000000000080: "hw-power-brake",
    0x0000000000000100: "display-clocks",
}
COMPUTE_MODES = {0: "default", 1: "exclusive-thread", 2: "prohibited", 3: "exclusive-process"}
FABRIC_STATES = {0: "not-supported", 1: "not-started", 2: "in-progress", 3: "completed"}


def text(value):
    """NVML's bindings gave bytes once and text now."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def binding():
    """The pynvml module when it is NVIDIA's, else None and why."""
    try:
        import pynvml
    except Exception as error:
        return None, "%s: %s" % (type(error).__name__, error)
    needed = ("nvmlInit", "nvmlDeviceGetCount", "nvmlSystemGetDriverVersion", "NVMLError")
    missing = [name for name in needed if not hasattr(pynvml, name)]
    if missing:
        return None, "the module pynvml is not NVIDIA's: it has no %s" % missing[0]
    return pynvml, None


def failure(error):
    """Code and words of an NVML error, or of whatever else went wrong."""
    code = getattr(error, "value", None)
    return {"code": code if isinstance(code, int) else None, "message": text(error)}


class Asker(object):
    """Asks and keeps the errors by question."""

    def __init__(self, nvml):
        """Take the binding."""
        self.nvml = nvml
        self.errors = {}

    def ask(self, label, function, *args):
        """Answer of one NVML call, None when it has none."""
        call = getattr(self.nvml, function, None)
        if call is None:
            self.errors[label] = {"code": None, "message": "pynvml has no " + function}
            return None
        try:
            return call(*args)
        except Exception as error:
            self.errors[label] = failure(error)
            return None


def count(value):
    """A number, or None where NVML answers `not available` by a huge one."""
    return int(value) if value is not None and 0 <= int(value) < 2**62 else None


def device(nvml, index):
    """Facts of one GPU."""
    asker = Asker(nvml)
    ask = asker.ask
    facts = {"index": index, "errors": asker.errors}
    handle = ask("handle", "nvmlDeviceGetHandleByIndex", index)
    if handle is None:
        return facts
    name = ask("name", "nvmlDeviceGetName", handle)
    facts["name"] = text(name) if name is not None else None
    capability = ask("arch", "nvmlDeviceGetCudaComputeCapability", handle)
    facts["arch"] = "%d.%d" % tuple(capability) if capability else None
    pci = ask("bus_id", "nvmlDeviceGetPciInfo", handle)
    facts["bus_id"] = text(pci.busId) if pci is not None else None
    memory = ask("memory", "nvmlDeviceGetMemoryInfo", handle)
    if memory is not None:
        facts["memory_total_bytes"] = int(memory.total)
        facts["memory_used_bytes"] = int(memory.used)
    mig = ask("mig", "nvmlDeviceGetMigMode", handle)
    facts["mig"] = bool(mig[0]) if mig is not None else None
    if facts["mig"]:
        facts["mig_instances"] = mig_instances(nvml, handle)
    mode = ask("compute_mode", "nvmlDeviceGetComputeMode", handle)
    facts["compute_mode"] = COMPUTE_MODES.get(mode)
    persistence = ask("persistence", "nvmlDeviceGetPersistenceMode", handle)
    facts["persistence"] = bool(persistence) if persistence is not None else None
    ecc = ask("ecc", "nvmlDeviceGetEccMode", handle)
    facts["ecc"] = bool(ecc[0]) if ecc is not None else None
    if facts["ecc"]:
        # 1: uncorrected errors; 0: volatile, since the driver was loaded.
        facts["ecc_uncorrected"] = count(
            ask("ecc_uncorrected", "nvmlDeviceGetTotalEccErrors", handle, 1, 0)
        )
    pending = ask("retired_pages", "nvmlDeviceGetRetiredPagesPendingStatus", handle)
    facts["retired_pages_pending"] = bool(pending) if pending is not None else None
    remapped = ask("remapped_rows", "nvmlDeviceGetRemappedRows", handle)
    if remapped is not None:
        facts["remap_pending"] = bool(remapped[2])
        facts["remap_failed"] = bool(remapped[3])
    # The newer of both names first: bindings and libraries may drop the older one some day.
    reasons = ask("throttle", "nvmlDeviceGetCurrentClocksEventReasons", handle)
    if reasons is None:
        asker.errors.pop("throttle")
        reasons = ask("throttle", "nvmlDeviceGetCurrentClocksThrottleReasons", handle)
    if reasons is not None:
        facts["throttle_reasons"] = sorted(
            name for bit, name in THROTTLE.items() if int(reasons) & bit
        )
    facts["temperature_c"] = ask("temperature", "nvmlDeviceGetTemperature", handle, 0)
    for key, function in (
        ("power_watts", "nvmlDeviceGetPowerUsage"),
        ("power_limit_watts", "nvmlDeviceGetEnforcedPowerLimit"),
    ):
        milliwatts = ask(key, function, handle)
        facts[key] = milliwatts / 1000.0 if milliwatts is not None else None
    rates = ask("utilization", "nvmlDeviceGetUtilizationRates", handle)
    facts["utilization_percent"] = int(rates.gpu) if rates is not None else None
    for key, function in (
        ("pcie_generation", "nvmlDeviceGetCurrPcieLinkGeneration"),
        ("pcie_generation_max", "nvmlDeviceGetMaxPcieLinkGeneration"),
        ("pcie_width", "nvmlDeviceGetCurrPcieLinkWidth"),
        ("pcie_width_max", "nvmlDeviceGetMaxPcieLinkWidth"),
    ):
        facts[key] = ask(key, function, handle)
    fabric(nvml, handle, facts, asker)
    facts["processes"] = processes(asker, handle)
    return facts


def mig_instances(nvml, handle):
    """How many MIG devices exist on a GPU, None when it cannot be told."""
    try:
        slots = nvml.nvmlDeviceGetMaxMigDeviceCount(handle)
    except Exception:
        return None
    found = 0
    for slot in range(slots):
        # Empty slots answer an error.
        with contextlib.suppress(Exception):
            nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, slot)
            found += 1
    return found


def fabric(nvml, handle, facts, asker):
    """Registration with an NVSwitch fabric, where the binding knows of it."""
    if not hasattr(nvml, "c_nvmlGpuFabricInfo_t"):
        return
    info = nvml.c_nvmlGpuFabricInfo_t()
    asked = asker.ask("fabric", "nvmlDeviceGetGpuFabricInfo", handle, ctypes.byref(info))
    if "fabric" in asker.errors:
        return
    info = asked if hasattr(asked, "state") else info
    facts["fabric_state"] = FABRIC_STATES.get(int(info.state))
    facts["fabric_status"] = int(info.status)


def processes(asker, handle):
    """Processes with a compute context, None when NVML does not say."""
    running = asker.ask("processes", "nvmlDeviceGetComputeRunningProcesses", handle)
    if running is None:
        return None
    return [
        {"pid": int(each.pid), "memory_bytes": count(getattr(each, "usedGpuMemory", None))}
        for each in running
    ]


def through_binding(nvml):
    """Everything through pynvml."""
    answer: "dict[str, object]" = {"binding": "pynvml"}
    try:
        nvml.nvmlInit()
    except Exception as error:
        answer["init"] = failure(error)
        return answer
    asker = Asker(nvml)
    answer["errors"] = asker.errors
    version = asker.ask("driver", "nvmlSystemGetDriverVersion")
    answer["driver"] = text(version) if version is not None else None
    function = "nvmlSystemGetCudaDriverVersion_v2"
    if not hasattr(nvml, function):
        function = "nvmlSystemGetCudaDriverVersion"
    answer["cuda"] = asker.ask("cuda", function)
    number = asker.ask("count", "nvmlDeviceGetCount")
    if number is not None:
        answer["gpus"] = [device(nvml, index) for index in range(number)]
    return answer


def through_ctypes(why):
    """The driver's version, CUDA interface and the GPUs' names, when there is no pynvml."""
    answer: "dict[str, object]" = {"binding": "ctypes", "binding_reason": why}
    try:
        library = ctypes.CDLL(LIBRARY)
    except OSError as error:
        answer["init"] = {"code": LIBRARY_NOT_FOUND, "message": text(error)}
        return answer
    status = None
    try:
        library.nvmlErrorString.restype = ctypes.c_char_p
        status = library.nvmlInit_v2()
        if status:
            answer["init"] = {"code": status, "message": text(library.nvmlErrorString(status))}
            return answer
        buffer = ctypes.create_string_buffer(96)
        number = ctypes.c_int()
        if not library.nvmlSystemGetDriverVersion(buffer, 96):
            answer["driver"] = text(buffer.value)
        if not library.nvmlSystemGetCudaDriverVersion(ctypes.byref(number)):
            answer["cuda"] = number.value
        total = ctypes.c_uint()
        if not library.nvmlDeviceGetCount_v2(ctypes.byref(total)):
            answer["gpus"] = [bare_device(library, index) for index in range(total.value)]
    except AttributeError as error:
        # The library lacks one of the functions: what it answered before stays.
        lacking = {"code": FUNCTION_NOT_FOUND, "message": text(error)}
        if status is None:
            answer["init"] = lacking
        else:
            answer["errors"] = {"library": lacking}
    return answer


def load_error():
    """The loader's words when the library cannot be loaded, None when it can."""
    try:
        ctypes.CDLL(LIBRARY)
    except OSError as error:
        return text(error)
    return None


def bare_device(library, index):
    """Name and compute capability of one GPU."""
    facts = {"index": index, "errors": {}}
    handle = ctypes.c_void_p()
    status = library.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle))
    if status:
        facts["errors"]["handle"] = {
            "code": status,
            "message": text(library.nvmlErrorString(status)),
        }
        return facts
    buffer = ctypes.create_string_buffer(96)
    if not library.nvmlDeviceGetName(handle, buffer, 96):
        facts["name"] = text(buffer.value)
    major, minor = ctypes.c_int(), ctypes.c_int()
    if not library.nvmlDeviceGetCudaComputeCapability(
        handle, ctypes.byref(major), ctypes.byref(minor)
    ):
        facts["arch"] = "%d.%d" % (major.value, minor.value)
    return facts


def main(folders):
    """Answer and print; `folders` are where pynvml may be found besides the search path."""
    # The script's folder and the working directory must not shadow the real pynvml.
    here = __file__.rpartition("/")[0]
    sys.path[:] = [each for each in sys.path if each not in ("", ".", here)] + folders
    answer = without_library() or {"init": {"code": FUNCTION_NOT_FOUND}}
    why = None
    if answer["init"]["code"] == FUNCTION_NOT_FOUND:
        nvml, why = binding()
        if nvml is not None:
            answer = through_binding(nvml)
    if answer.get("init", {}).get("code") == FUNCTION_NOT_FOUND:
        # Libraries of old drivers lack the initialisation that newer bindings call.
        answer = through_ctypes(why or "it does not know this old driver's library")
    answer["path"] = loaded(LIBRARY)
    print("\n" + MARKER + json.dumps(answer))


def without_library():
    """The answer where the library cannot be loaded: then no binding is imported for nothing."""
    try:
        ctypes.CDLL(LIBRARY)
    except OSError as error:
        # A file that is there and cannot be loaded (truncated, of another machine) is no absence.
        absent = "No such file" in text(error)
        return {
            "binding": "ctypes",
            "binding_reason": "there is no library to bind to",
            "init": {"code": LIBRARY_NOT_FOUND if absent else None, "message": text(error)},
        }
    return None


def loaded(name):
    """File that a library was really loaded from, None when it was not."""
    stem = name.partition(".so")[0]
    try:
        with open("/proc/self/maps") as maps:
            for line in maps:
                path = line.split(None, 5)[-1].strip()
                if path.rpartition("/")[2].startswith(stem + ".so"):
                    return path
    except OSError:
        pass
    return None


if __name__ == "__main__":
    main(sys.argv[1:])
