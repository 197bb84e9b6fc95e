"""Asks libcuda whether CUDA starts, and which GPUs it sees; prints one JSON line. Run as a file.

No context is made, so no GPU memory is taken. It runs under the user's own variables: what it
answers is what the user's programs get, `CUDA_VISIBLE_DEVICES` and cuda-compat included. Given a
path, it asks that file for its CUDA version only, and starts nothing.
"""

import ctypes
import json
import sys

MARKER = "envcheck-json:"
LIBRARY = "libcuda.so.1"

COMPUTE_CAPABILITY_MAJOR, COMPUTE_CAPABILITY_MINOR = 75, 76


def words(library, status):
    """Name and words of a CUresult."""
    parts = []
    for function in ("cuGetErrorName", "cuGetErrorString"):
        call = getattr(library, function, None)
        value = ctypes.c_char_p()
        if call is not None and call(status, ctypes.byref(value)) == 0 and value.value:
            parts.append(value.value.decode("utf-8", "replace"))
    return ": ".join(dict.fromkeys(parts)) or "CUDA error %d" % status


def ask(path=None):
    """Everything libcuda says, step by step; a failing step ends it."""
    answer: "dict[str, object]" = {}
    try:
        library = ctypes.CDLL(path or LIBRARY)
    except OSError as error:
        answer["load_error"] = str(error)
        return answer
    answer["path"] = loaded()
    number = ctypes.c_int()
    if (
        hasattr(library, "cuDriverGetVersion")
        and library.cuDriverGetVersion(ctypes.byref(number)) == 0
    ):
        answer["cuda"] = number.value
    if path is not None:
        return answer
    status = library.cuInit(0)
    answer["init"] = status
    if status:
        answer["message"] = words(library, status)
        return answer
    status = library.cuDeviceGetCount(ctypes.byref(number))
    if status:
        answer["message"] = words(library, status)
        return answer
    answer["gpus"] = [device(library, index) for index in range(number.value)]
    return answer


def device(library, index):
    """Name, compute capability and memory of one GPU."""
    facts: "dict[str, object]" = {"index": index}
    handle = ctypes.c_int()
    status = library.cuDeviceGet(ctypes.byref(handle), index)
    if status:
        facts["error"] = words(library, status)
        return facts
    buffer = ctypes.create_string_buffer(128)
    if library.cuDeviceGetName(buffer, 128, handle) == 0:
        facts["name"] = buffer.value.decode("utf-8", "replace")
    parts = []
    for attribute in (COMPUTE_CAPABILITY_MAJOR, COMPUTE_CAPABILITY_MINOR):
        value = ctypes.c_int()
        if library.cuDeviceGetAttribute(ctypes.byref(value), attribute, handle) == 0:
            parts.append(str(value.value))
    if len(parts) == 2:
        facts["arch"] = ".".join(parts)
    size = ctypes.c_size_t()
    if (
        hasattr(library, "cuDeviceTotalMem_v2")
        and library.cuDeviceTotalMem_v2(ctypes.byref(size), handle) == 0
    ):
        facts["memory_total_bytes"] = size.value
    buffer = ctypes.create_string_buffer(32)
    if (
        hasattr(library, "cuDeviceGetPCIBusId")
        and library.cuDeviceGetPCIBusId(buffer, 32, handle) == 0
    ):
        facts["bus_id"] = buffer.value.decode("ascii", "replace")
    return facts


def loaded():
    """File that libcuda was really loaded from."""
    try:
        with open("/proc/self/maps") as maps:
            for line in maps:
                path = line.split(None, 5)[-1].strip()
                if path.rpartition("/")[2].startswith("libcuda.so"):
                    return path
    except OSError:
        pass
    return None


if __name__ == "__main__":
    print("\n" + MARKER + json.dumps(ask(*sys.argv[1:2])))
