"""What messages of and about containers mean in their circumstances.

The functions answer as those of `machine` do.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from envcheck.matrix.symptoms import NOTHING
from envcheck.rules.told.machine import OPEN

if TYPE_CHECKING:
    from envcheck.model.symptom import Symptom
    from envcheck.rules.told.heard import Heard


def nvml_unknown(heard: Heard, _symptom: Symptom) -> str | None:
    """On a host a state of the driver; in a container, lost access."""
    return "driver-state-stale" if heard.on_plain_host() else "container-device-access-lost"


def nvml_refused(heard: Heard, _symptom: Symptom) -> str | None:
    """The device files may not be opened: by this user on a host, by the container in one."""
    return "driver-not-loaded" if heard.on_plain_host() else "container-device-access-lost"


def hook_failed(heard: Heard, symptom: Symptom) -> str | None:
    """The toolkit's own start failed on the host."""
    reason = (symptom.capture("reason") or "").lower()
    if heard.wsl():
        return "wsl-gpu-unavailable"
    for said, id in (
        ("driver/library", NOTHING),
        ("not loaded", "driver-not-loaded"),
        ("permission", "container-device-access-lost"),
        ("unknown error", "driver-state-stale"),
        ("no cuda", "driver-not-loaded"),
    ):
        if said in reason:
            return id
    return OPEN


def hook_silent(heard: Heard, _symptom: Symptom) -> str | None:
    """The toolkit's own start got no answer from the driver."""
    return "wsl-gpu-unavailable" if heard.wsl() else OPEN


def file_exists(heard: Heard, _symptom: Symptom) -> str | None:
    """The image brings driver libraries of its own; images made under WSL do."""
    return "wsl-linux-driver" if heard.wsl() else OPEN


def capabilities(heard: Heard, symptom: Symptom) -> str | None:
    """Capabilities without compute matter when libcuda is then missing."""
    value = (symptom.capture("value") or "").lower()
    if not re.search(r"utility|graphics|video|display", value):
        return NOTHING
    missing = heard.has(
        "libcuda-absent",
        "torch-no-driver",
        "smi-without-cuda-version",
        "cuda-not-available",
        "torch-no-gpus",
        "cuinit-no-device",
    )
    return "driver-capabilities-missing" if missing else NOTHING


def no_cuda_version(heard: Heard, _symptom: Symptom) -> str | None:
    """nvidia-smi answers and libcuda is not found: not mounted, or not installed."""
    if heard.on_plain_host() and not heard.in_container():
        return "driver-missing"
    return "driver-capabilities-missing"
