"""What gives a container a GPU that is none: NVIDIA's runtime and a CDI specification, imitated.

Both put stub libraries and device files into the container, as the real ones do with the driver's.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

DEVICES = ("/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm")
LIBRARIES = ("libnvidia-ml.so.1", "libcuda.so.1")
SETTINGS = {
    "NVIDIA_STUB_DRIVER": "580.95.05",
    "NVIDIA_STUB_CUDA": "13000",
    "CUDA_STUB_VERSION": "13000",
}
"""What the stubs say: a driver that runs the newest CUDA."""

_RUNTIME = '''\
#!{python}
"""Edits a container's configuration before it is made, and hands over to the real runtime."""
import json, os, sys

words = sys.argv[1:]
if "create" in words:
    at = words.index("--bundle") + 1 if "--bundle" in words else 0
    path = os.path.join(words[at] if at else os.getcwd(), "config.json")
    with open(path) as file:
        config = json.load(file)
    env = config["process"]["env"]
    wanted = [each.partition("=")[2] for each in env if each.startswith("NVIDIA_VISIBLE_DEVICES=")]
    if wanted and wanted[-1] not in ("", "void", "none"):
        env += {settings!r}
        for name in {libraries!r}:
            mount = dict(type="bind", options=["bind", "ro", "nosuid", "nodev"])
            mount["destination"] = "/usr/lib/x86_64-linux-gnu/" + name
            mount["source"] = os.path.join({stubs!r}, name)
            config["mounts"].append(mount)
        for name in {devices!r}:
            device = dict(path=name, type="c", major=1, minor=3, fileMode=0o666, uid=0, gid=0)
            config["linux"].setdefault("devices", []).append(device)
        with open(path, "w") as file:
            json.dump(config, file)
os.execv({runc!r}, [{runc!r}, *words])
'''


def runtime(folder: Path, stubs: Path) -> Path:
    """Write an OCI runtime that stands for NVIDIA's; returns its path."""
    place = folder / "nvidia-container-runtime"
    place.write_text(
        _RUNTIME.format(
            python=sys.executable,
            settings=[f"{name}={value}" for name, value in SETTINGS.items()],
            libraries=LIBRARIES,
            devices=DEVICES,
            stubs=str(stubs),
            runc=shutil.which("runc"),
        )
    )
    place.chmod(0o755)
    return place


def specification(stubs: Path) -> str:
    """A CDI specification of one GPU, as `nvidia-ctk cdi generate` writes them."""
    edits = {
        "env": [
            "NVIDIA_VISIBLE_DEVICES=void",
            *(f"{name}={value}" for name, value in SETTINGS.items()),
        ],
        "mounts": [
            {
                "hostPath": str(stubs / name),
                "containerPath": f"/usr/lib/x86_64-linux-gnu/{name}",
                "options": ["ro", "nosuid", "nodev", "bind"],
            }
            for name in LIBRARIES
        ],
    }
    nodes = [{"path": path, "hostPath": "/dev/null"} for path in DEVICES]
    devices = [{"name": name, "containerEdits": {"deviceNodes": nodes}} for name in ("0", "all")]
    return json.dumps(
        {
            "cdiVersion": "0.5.0",
            "kind": "nvidia.com/gpu",
            "devices": devices,
            "containerEdits": edits,
        }
    )
