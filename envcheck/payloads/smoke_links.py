"""What a GPU's links to the others can carry at most, by NVML: NVLink if there is any, else PCIe.

Beside the bandwidth that was measured, it tells a slow path from slow hardware.
"""

import ctypes

from smoke_stages import check, libcuda

MOST_LINKS = 32
ENABLED = 1
SPEED_COMMON, SPEED_OF_LINK = 90, 164
"""NVML's fields for the speed of a link in MB/s: one for all, or each asked by its number."""
PCIE_LANE = {1: 0.25, 2: 0.5}
"""GB/s of a lane in one direction; from the third generation on 8 GT/s, doubled with each one."""


class FieldValue(ctypes.Structure):
    """NVML's `nvmlFieldValue_t`; every whole number in the union starts at its first byte."""

    _fields_ = [
        ("field", ctypes.c_uint),
        ("scope", ctypes.c_uint),
        ("timestamp", ctypes.c_longlong),
        ("latency", ctypes.c_longlong),
        ("type", ctypes.c_int),
        ("status", ctypes.c_int),
        ("value", ctypes.c_ulonglong),
    ]


def bus_id(index):
    """PCI address of a GPU as CUDA counts them."""
    library = libcuda()
    device, text = ctypes.c_int(), ctypes.create_string_buffer(32)
    check(library, "cuDeviceGet", library.cuDeviceGet(ctypes.byref(device), index))
    status = library.cuDeviceGetPCIBusId(text, 32, device)
    check(library, "cuDeviceGetPCIBusId", status)
    return text.value


def link_bandwidth(index):
    """Metrics: GB/s in one direction over all links of a GPU; empty where NVML does not say."""
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
        handle = ctypes.c_void_p()
        if nvml.nvmlInit_v2() or nvml.nvmlDeviceGetHandleByPciBusId_v2(
            bus_id(index), ctypes.byref(handle)
        ):
            return {}
        links = active_links(nvml, handle)
        speed = link_speed(nvml, handle, links) if links else None
        if links and speed:
            return {
                "link_bandwidth": (len(links) * speed / 1000.0, "GB/s"),
                "nvlinks": (len(links), ""),
            }
        if links:
            return {"nvlinks": (len(links), "")}
        return pcie(nvml, handle)
    except (OSError, AttributeError, RuntimeError):
        return {}


def active_links(nvml, handle):
    """Numbers of the NVLinks that are up."""
    found = []
    for link in range(MOST_LINKS):
        state = ctypes.c_uint()
        status = nvml.nvmlDeviceGetNvLinkState(handle, link, ctypes.byref(state))
        if status == 0 and state.value == ENABLED:
            found.append(link)
    return found


def link_speed(nvml, handle, links):
    """MB/s of one link."""
    for field, scope in ((SPEED_COMMON, 0), (SPEED_OF_LINK, links[0])):
        value = FieldValue(field=field, scope=scope)
        if nvml.nvmlDeviceGetFieldValues(handle, 1, ctypes.byref(value)) == 0:
            speed = value.value & 0xFFFFFFFF
            if value.status == 0 and speed:
                return speed
    return None


def pcie(nvml, handle):
    """The PCIe link, at the best that card and slot can do."""
    generation, width = ctypes.c_uint(), ctypes.c_uint()
    if nvml.nvmlDeviceGetMaxPcieLinkGeneration(handle, ctypes.byref(generation)):
        return {}
    if nvml.nvmlDeviceGetMaxPcieLinkWidth(handle, ctypes.byref(width)) or not width.value:
        return {}
    lane = PCIE_LANE.get(generation.value)
    if lane is None:
        lane = 8.0 * 2 ** (generation.value - 3) * 128 / 130 / 8
    return {
        "link_bandwidth": (lane * width.value, "GB/s"),
        "pcie_generation": (generation.value, ""),
        "pcie_width": (width.value, ""),
    }
