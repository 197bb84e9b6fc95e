"""What messages about driver, GPUs and containers mean in their circumstances.

Each function answers the id of the finding that a message stands for here, `NOTHING` when it means
no fault, or `OPEN` when the text does not decide it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from envcheck.matrix import query
from envcheck.matrix.symptoms import NOTHING
from envcheck.rules import facts
from envcheck.rules.gpu.gpu_memory_error import is_memory_xid
from envcheck.versions import Release

if TYPE_CHECKING:
    from envcheck.model.symptom import Symptom
    from envcheck.rules.told.heard import Heard

OPEN = None
"""The text does not decide it."""

XID_FELL_OFF_BUS = 79
LITTLE = 0.5
"""Share of a GPU's memory: less than it free is little, more than it held by others is most."""

_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def signature_refused(heard: Heard, symptom: Symptom) -> str | None:
    """A refused signature: of any module, so something has to name NVIDIA's."""
    named = "nvidia" in symptom.text.lower() or heard.has("nvidia-module-wanted")
    return "driver-module-rejected" if named or heard.driver_trouble() else NOTHING


def build_failed(heard: Heard, symptom: Symptom) -> str | None:
    """DKMS failed, for NVIDIA's module or another one."""
    named = "nvidia" in symptom.text.lower() or heard.has("nvidia-module-wanted")
    concerned = named or heard.driver_trouble()
    return "driver-not-loaded" if concerned else OPEN


def nouveau(heard: Heard, _symptom: Symptom) -> str | None:
    """Another driver holds the GPU, which matters to somebody who wants NVIDIA's."""
    wanted = heard.driver_trouble() or heard.has(
        "torch-no-driver",
        "nvidia-smi-absent",
        "torch-no-gpus",
        "cuinit-no-device",
        "nvml-library-absent",
        "cuda-not-available",
        "tensorflow-no-driver",
    )
    return "nouveau-conflict" if wanted else NOTHING


def not_loaded(heard: Heard, symptom: Symptom) -> str | None:
    """Nothing answers: under WSL that is what a Linux driver's own tools say."""
    if heard.wsl():
        tools = symptom.name == "smi-no-communication"
        return "wsl-linux-driver" if tools else "wsl-gpu-unavailable"
    if heard.has("on-colab") and not heard.gpu_known():
        return "no-gpu"  # its images have the driver's tools on machines without a GPU too
    return "driver-not-loaded"


def nothing_found(heard: Heard, _symptom: Symptom) -> str | None:
    """The module found no GPU that it may have: there is none, or something else holds it."""
    return OPEN if heard.gpu_known() or heard.has("driver-probe-refused") else "no-gpu"


def proc_absent(heard: Heard, symptom: Symptom) -> str | None:
    """No loaded module is seen: none is loaded, or this is a container that was given nothing."""
    if heard.driver_trouble():
        return NOTHING
    if heard.in_container() or heard.container_without_gpus():
        return "container-without-gpu"
    if heard.wsl():
        return "wsl-gpu-unavailable"
    return "driver-not-loaded" if heard.gpu_known() else OPEN


def ignored_gpu(heard: Heard, symptom: Symptom) -> str | None:
    """The driver names a GPU that it does not take: too old for it, or too new."""
    driver = Release.maybe(symptom.capture("driver") or symptom.capture("installer"))
    for cc in _concerned(heard):
        row = query.capability(heard.matrix, cc)
        if row is None or driver is None:
            continue
        if row.last_driver_branch and driver.major > int(row.last_driver_branch):
            return "gpu-dropped-by-driver"
        if row.min_driver and driver < Release.parse(row.min_driver):
            return "gpu-needs-newer-driver"
    return OPEN


def _concerned(heard: Heard) -> tuple[str, ...]:
    """Capabilities of the GPUs: of those that lines of the kernel name by id, else of all."""
    named = [query.pci_gpu(heard.matrix, id) for id in heard.captures("id", "pci-id-mentioned")]
    return tuple(row.cc for row in named if row is not None) or heard.gpu_arches()


def unknown_error(heard: Heard, _symptom: Symptom) -> str | None:
    """999 and kin: the driver's own state, unless the circumstances name something better."""
    if heard.driver_trouble() or heard.has("fabric-not-ready", "forward-compat-refused"):
        return NOTHING
    if heard.has("nvml-unknown-error") and not heard.on_plain_host():
        return "container-device-access-lost"
    if heard.wsl():
        return "wsl-gpu-unavailable"
    if heard.hides_gpus():
        return "cuda-visible-devices-invalid"
    return "driver-state-stale"


def initialization_error(heard: Heard, symptom: Symptom) -> str | None:
    """Said by a program that forked, or by a driver that cannot start."""
    if heard.has("fork-after-cuda") or heard.driver_trouble():
        return NOTHING
    at_start = re.search(r"cuInit|cudaGetDeviceCount|driver init", symptom.text)
    return unknown_error(heard, symptom) if at_start else OPEN


def absent_driver(heard: Heard, symptom: Symptom) -> str | None:
    """libcuda, NVML or nvidia-smi is not there: the host lacks the driver, or only a container."""
    if heard.driver_trouble():
        return NOTHING
    if heard.desktop():
        return "docker-desktop-no-gpu"
    without_compute = heard.has("smi-without-cuda-version") or any(
        "utility" in value or "," in value
        for value in heard.captures("value", "capabilities-without-compute")
    )
    if without_compute and symptom.name in {"libcuda-absent", "torch-no-driver"}:
        return "driver-capabilities-missing"
    if heard.container_without_gpus() or heard.has("container-driver-undetected"):
        return "container-without-gpu"
    if symptom.name == "container-cli-no-library":
        return "wsl-gpu-unavailable" if heard.wsl() else "driver-missing"
    if heard.in_container():
        works = facts.driver_works(heard.snapshot) and symptom.name == "libcuda-absent"
        return "driver-capabilities-missing" if works else "container-without-gpu"
    if heard.wsl():
        return "wsl-gpu-unavailable"
    if heard.macos():
        return "no-gpu"
    if heard.jetson() or heard.has("container-cli-no-library"):
        return NOTHING
    if facts.cuda_ok(heard.snapshot) or (symptom.name == "nvidia-smi-absent" and _no_need(heard)):
        return NOTHING
    if heard.gpu_known():
        return "driver-missing"
    # torch's own report looked for all of them: a GPU, a driver, a toolkit.
    return "no-gpu" if heard.has("collect-env-without-gpu") else OPEN


def _no_need(heard: Heard) -> bool:
    """Whether nvidia-smi is not missed: a driver is known, or nothing here wants one."""
    known = facts.driver_version(heard.snapshot) is not None
    listed = heard.snapshot.env.packages is not None
    return known or (listed and not facts.needs_gpu(heard.snapshot))


def no_cudart(heard: Heard, symptom: Symptom) -> str | None:
    """TensorFlow says so when it finds no CUDA runtime, whether or not there is a driver."""
    if heard.snapshot.env.framework("tensorflow") and facts.driver_works(heard.snapshot):
        return "cuda-libraries-missing"
    return NOTHING if not heard.gpu_known() else absent_driver(heard, symptom)


def no_device(heard: Heard, symptom: Symptom) -> str | None:
    """No device is seen: hidden, not given, not working, or not there."""
    torch = heard.snapshot.env.framework("torch")
    if heard.has(
        "torch-without-cuda",
        "driver-too-old-found",
        "driver-insufficient",
        "fabric-not-ready",
        "container-driver-undetected",
        "libcuda-absent",
        "torch-no-driver",
    ) or (torch is not None and torch.cpu_only):
        return NOTHING
    if heard.hides_gpus():
        return "cuda-visible-devices-invalid"
    if heard.driver_trouble():
        return NOTHING
    if heard.has("nvml-unknown-error") and not heard.on_plain_host():
        return "container-device-access-lost"
    if heard.container_without_gpus():
        return "container-without-gpu"
    if heard.mig():
        return "mig-instance-limit"
    if heard.macos() or (heard.has("collect-env-without-gpu") and not heard.gpu_known()):
        return "no-gpu"
    if "UNKNOWN ERROR (303)" in symptom.text:
        return absent_driver(heard, symptom)
    if heard.in_container() and not facts.gpus(heard.snapshot):
        return "container-without-gpu"
    if heard.wsl():
        return "wsl-gpu-unavailable"
    if symptom.name == "torch-no-gpus" and heard.selects_beyond():
        return "cuda-visible-devices-invalid"
    return OPEN


def no_devices_listed(heard: Heard, _symptom: Symptom) -> str | None:
    """nvidia-smi lists nothing, and why stands elsewhere or nowhere."""
    return NOTHING if heard.driver_trouble() or heard.has("gpu-ignored-by-driver") else OPEN


def torch_nvml(heard: Heard, _symptom: Symptom) -> str | None:
    """torch could not start NVML, and why stands elsewhere or nowhere."""
    elsewhere = heard.driver_trouble() or heard.has("nvml-unknown-error", "nvml-library-absent")
    return NOTHING if elsewhere or facts.cuda_ok(heard.snapshot) else OPEN


def xid(heard: Heard, symptom: Symptom) -> str | None:
    """What the table of Xids says of the number."""
    number = int(symptom.capture("number") or 0)
    row = query.xid(heard.matrix, number)
    if number == XID_FELL_OFF_BUS:
        return "gpu-fell-off-bus"
    if is_memory_xid(number, row):
        return "gpu-memory-error"
    if row is None or row.severity == "info":
        return NOTHING
    return row.finding or "gpu-xid"


def probe_failed(heard: Heard, _symptom: Symptom) -> str | None:
    """The driver's start of a GPU failed, and why may stand elsewhere."""
    elsewhere = heard.driver_trouble() or heard.has("gpu-ignored-by-driver")
    return NOTHING if elsewhere else "gpu-init-failed"


def uvm_absent(heard: Heard, symptom: Symptom) -> str | None:
    """No memory module: of the driver on a host, of what a container was given in one."""
    if heard.in_container() or heard.container_without_gpus():
        return "container-without-gpu"
    return unknown_error(heard, symptom)


def runtime_failed(heard: Heard, _symptom: Symptom) -> str | None:
    """The toolkit is there and fails; why stands elsewhere, or in its own log."""
    elsewhere = heard.has(
        "docker-no-runtime",
        "container-cli-no-library",
        "container-cli-nvml",
        "nvml-library-mismatch",
    )
    return NOTHING if elsewhere else OPEN


def link_down(heard: Heard, _symptom: Symptom) -> str | None:
    """A slot lost its link: a GPU's, when the driver complains as well."""
    lost = heard.has("gpu-off-the-bus", "gpu-is-lost", "gpu-handle-unknown")
    numbers = heard.captures("number", "xid")
    return "gpu-fell-off-bus" if lost or str(XID_FELL_OFF_BUS) in numbers else NOTHING


def handle_unknown(heard: Heard, symptom: Symptom) -> str | None:
    """NVML sees a GPU that does not answer: gone from the bus, or never started."""
    if "not found" in symptom.text.lower() and heard.has("gpu-init-adapter"):
        return "gpu-init-failed"
    return "gpu-fell-off-bus"


def devices_busy(heard: Heard, _symptom: Symptom) -> str | None:
    """No context on any device: held exclusively, or only instances of it may be used."""
    modes = {each.compute_mode for each in facts.gpus(heard.snapshot)}
    if heard.has("gpu-reset-required", "gpu-off-the-bus", "gpu-is-lost"):
        return NOTHING
    if heard.mig():
        return "mig-instance-limit"
    if heard.wsl() and modes <= {None, "default"}:
        return "wsl-gpu-unavailable"
    if modes and modes <= {"default"}:
        return OPEN
    return "gpu-exclusive-mode"


def memory_short(_heard: Heard, symptom: Symptom) -> str | None:
    """A program finds less memory free than it wants: because others hold most of it, or not."""
    free, total = float(symptom.capture("free") or 0), float(symptom.capture("total") or 0)
    return "gpu-memory-occupied" if total and free / total < LITTLE else NOTHING


def memory_held(_heard: Heard, symptom: Symptom) -> str | None:
    """An out-of-memory that says who holds what: others hold most of it, or the program itself."""
    total, own = _bytes(symptom.capture("total")), _bytes(symptom.capture("own"))
    text = symptom.capture("holders") or ""
    others = [_bytes(each) for each in re.findall(r"Process \d+ has ([\d.]+ [GM]iB)", text)]
    if "this process" not in text.lower() and others:
        # Inside a container a program does not know its own number: it is the one that holds at
        # least what it has allocated.
        mine = min((each for each in others if each >= own), default=max(others))
        others.remove(mine)
    return "gpu-memory-occupied" if total and sum(others) > LITTLE * total else NOTHING


def _bytes(text: str | None) -> float:
    match = re.fullmatch(r"([\d.]+) ([KMG])iB", text or "")
    return float(match.group(1)) * _UNITS[match.group(2)] if match else 0.0


def fabric_manager(heard: Heard, _symptom: Symptom) -> str | None:
    """The service failed, which matters only where there is a fabric to manage."""
    if heard.has("fabric-manager-nothing-to-do", "fabric-manager-version"):
        return NOTHING
    if heard.has("fabric-not-ready") or facts.nvswitches(heard.snapshot):
        return "fabric-manager-not-running"
    names = [each.name or "" for each in facts.gpus(heard.snapshot)]
    names += heard.captures("gpu", "gpu-mentioned")
    products = [query.product(heard.matrix, name) for name in names]
    kinds = {row.kind for row in products if row is not None}
    return NOTHING if kinds and "datacenter" not in kinds else OPEN


def device_count(heard: Heard, _symptom: Symptom) -> str | None:
    """More devices are expected than a process may use."""
    if heard.mig():
        return "mig-instance-limit"
    return "cuda-visible-devices-invalid" if heard.selects_gpus() else OPEN


def exposed(heard: Heard, symptom: Symptom) -> str | None:
    """Access control services redirect traffic, which is harmful only when something hangs."""
    del symptom
    trouble = heard.has("hang", "p2p-disable-helps", "collective-timeout", "iommu-fault")
    return "p2p-blocked-by-iommu" if trouble else NOTHING


def without_p2p_well(heard: Heard, _symptom: Symptom) -> str | None:
    """It works without peer access: broken peer access, or none at all."""
    if heard.has("p2p-not-supported", "cumem-host-failed"):
        return NOTHING
    return "p2p-blocked-by-iommu"


def compat_refused(heard: Heard, _symptom: Symptom) -> str | None:
    """804, unless the image itself says which driver it was made for."""
    return NOTHING if heard.has("container-driver-release") else "forward-compat-unsupported"


def driver_combination(heard: Heard, _symptom: Symptom) -> str | None:
    """803: libcuda and the kernel module are of different releases, or cuda-compat is in front."""
    driver = heard.snapshot.host.driver
    module = Release.maybe(driver.module_version)
    files = Release.maybe(driver.userspace_version)
    differ = module is not None and files is not None and not module.starts_like(files)
    if heard.has("nvml-library-mismatch", "kernel-api-mismatch") or differ:
        return "driver-library-mismatch"
    return "forward-compat-unsupported"


def duplicate(heard: Heard, _symptom: Symptom) -> str | None:
    """Two ranks on one GPU: the launcher's doing, or two instances of one GPU."""
    return "mig-instance-limit" if heard.mig() else "ranks-share-gpu"
