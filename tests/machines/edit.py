"""Makes the edited machines out of a real recording: `python -m tests.machines.edit`.

A real machine that is broken in a given way is seldom at hand, so the broken machines (and the
other healthy ones) are the recorded one with some answers changed: what NVML says, what the
environment's payload printed, which files exist. What the probe does not find is absent. Each edit
ends as a complete, strict recording, read by the same collectors as a live machine.
"""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from envcheck.errors import NotRecordedError
from envcheck.matrix.loader import Matrix
from envcheck.matrix.schema import TorchBuild
from envcheck.probe.answers import MARKER
from envcheck.probe.record import Recorded, Recorder
from envcheck.probe.snapshot import take_snapshot
from envcheck.probe.source import Command, Result, Stat

HERE = Path(__file__).parent
BASE = HERE / "h200x1"
SITE = "/opt/torch/.venv/lib/python3.12/site-packages"
NODES = ("/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools")
SMI_FAILED = (
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that "
    "the latest NVIDIA driver is installed and running.\n\n"
)

T = TypeVar("T")


class Edited:
    """A recorded machine with answers changed, and absence for what it was never asked."""

    def __init__(self, base: Recorded, name: str) -> None:
        """Start as the base machine."""
        self._base = base
        self.name = f"recorded:{name}"
        self.files: dict[str, str | None] = {}
        self.folders: dict[str, tuple[str, ...] | None] = {}
        self.stats: dict[str, Stat | None] = {}
        self.results: dict[str, Result] = {}
        self.variables: dict[str, str] = {
            key: value for key, value in base.variables.items() if key in {"HOME", "PATH"}
        }
        self.root = base.root

    def taken_at(self) -> str:
        """The base machine's."""
        return self._base.taken_at()

    def interpreter(self) -> str:
        """The base machine's."""
        return self._base.interpreter()

    def read(self, path: str) -> str | None:
        """A changed file, or the base machine's."""
        if path in self.files:
            return self.files[path]
        return self._or_absent(lambda: self._base.read(path))

    def list(self, path: str) -> tuple[str, ...] | None:
        """A changed folder, or the base machine's."""
        if path in self.folders:
            return self.folders[path]
        return self._or_absent(lambda: self._base.list(path))

    def stat(self, path: str) -> Stat | None:
        """A changed path, or the base machine's."""
        if path in self.stats:
            return self.stats[path]
        return self._or_absent(lambda: self._base.stat(path))

    def run(self, command: Command) -> Result:
        """A changed answer, or the base machine's."""
        return self.run_all((command,))[0]

    def run_all(self, commands: tuple[Command, ...]) -> tuple[Result, ...]:
        """Changed answers, or the base machine's."""
        return tuple(self.results.get(each.name) or self._or_missing(each) for each in commands)

    def _or_missing(self, command: Command) -> Result:
        try:
            return self._base.run(command)
        except NotRecordedError:
            return Result(outcome="missing", error=f"{command.argv[0]}: not found")

    def _or_absent(self, ask: Callable[[], T | None]) -> T | None:
        try:
            return ask()
        except NotRecordedError:
            return None

    # What the edits below are made of.

    def payload(self, name: str) -> dict[str, Any]:
        """What a payload printed, to be changed and given back by `answer`."""
        text = self._base.run(Command(name=f"payload:{name}", argv=("x",))).stdout
        data: dict[str, Any] = json.loads(text.partition(MARKER)[2])
        return copy.deepcopy(data)

    def answer(self, name: str, data: dict[str, Any]) -> None:
        """Let a payload print something else."""
        self.results[f"payload:{name}"] = Result(
            outcome="ok", code=0, stdout=f"\n{MARKER}{json.dumps(data)}\n"
        )

    def driver(self, version: str, cuda: int, *, open_module: bool = True) -> None:
        """Another driver release, loaded and answering."""
        kind = "Open Kernel Module for x86_64" if open_module else "x86_64 Kernel Module"
        self.files["/sys/module/nvidia/version"] = f"{version}\n"
        self.files["/proc/driver/nvidia/version"] = (
            f"NVRM version: NVIDIA UNIX {kind}  {version}  Release Build\n"
        )
        self.libraries(version)
        nvml, libcuda = self.payload("query_nvml"), self.payload("query_libcuda")
        nvml |= {"driver": version, "cuda": cuda}
        libcuda["cuda"] = cuda
        self.answer("query_nvml", nvml)
        self.answer("query_libcuda", libcuda)

    def libraries(self, version: str) -> None:
        """User-space files of a driver release."""
        for stem in ("libcuda.so", "libnvidia-ml.so"):
            place = f"/usr/local/nvidia/lib64/{stem}"
            self.stats[f"{place}.1"] = Stat(kind="link", target=f"{stem}.{version}")
            self.stats[f"{place}.{version}"] = Stat(kind="file", mode=0o755)

    def gpu(self, name: str, arch: str, device: str, gibibytes: int = 24) -> None:
        """Another GPU. Call after `driver`."""
        for payload in ("query_nvml", "query_libcuda"):
            result = self.results.get(f"payload:{payload}")
            data = (
                json.loads(result.stdout.partition(MARKER)[2]) if result else self.payload(payload)
            )
            for each in data.get("gpus", ()):
                each |= {"name": name, "arch": arch, "memory_total_bytes": gibibytes << 30}
                if payload == "query_nvml":
                    each |= {"memory_used_bytes": 300 << 20, "ecc": None, "fabric_state": None}
            self.answer(payload, data)
        self.files["/sys/bus/pci/devices/0000:00:06.0/device"] = f"0x{device}\n"
        if "GeForce" in name:
            self.files["/sys/bus/pci/devices/0000:00:06.0/class"] = "0x030000\n"

    def torch(self, version: str, pins: dict[str, str], folder: str | None) -> dict[str, Any]:
        """An environment with this torch wheel and its NVIDIA wheels, and nothing else.

        Args:
            version: with local tag, as torch/version.py has it.
            pins: distribution to version.
            folder: `cu13` where the CUDA libraries share a folder, None where each wheel has one.
        """
        base = self.payload("inspect_env")
        local = version.partition("+")[2]
        cuda = f"{local[2:4]}.{local[4:]}" if local.startswith("cu") else None
        packages = [
            {
                "name": "torch",
                "version": version if folder is None else version.partition("+")[0],
                "location": SITE,
                "installer": "pip",
                "build": "cp312-cp312-manylinux_2_28_x86_64",
                "requires": [f"{name}=={pin}" for name, pin in pins.items()],
            },
            {"name": "numpy", "version": "2.2.6", "location": SITE},
        ]
        packages += [
            {
                "name": name,
                "version": pin,
                "location": SITE,
                "installer": "pip",
                "build": "py3-none-manylinux_2_27_x86_64",
            }
            for name, pin in pins.items()
        ]
        base |= {
            "packages": packages,
            "versions": {
                "torch": {
                    "__version__": version,
                    "cuda": cuda,
                    "git_version": _commit(version),
                    "hip": None,
                    "debug": False,
                    "location": SITE,
                }
            },
            "libraries": [],
            "outer_libraries": [],
            "shared_files": {},
        }
        base["python"]["executable"] = "/opt/torch/.venv/bin/python3"
        base["files"]["pyvenv"] = "home = /usr/bin\nversion = 3.12.3\n"
        if cuda is not None:
            base["libraries"] = _wheel_libraries(pins, folder)
        self.answer("inspect_env", base)
        return base


def _commit(version: str) -> str | None:
    """The commit that all wheels of a torch release were built from."""
    release = version.partition("+")[0]
    rows = Matrix.shipped().find(TorchBuild, version=release)
    return next((each.git_version for each in rows if each.git_version), None)


_WHEEL_FILES = {
    "nvidia-cublas": ("cublas", ("libcublas.so.{major}", "libcublasLt.so.{major}")),
    "nvidia-cuda-runtime": ("cuda_runtime", ("libcudart.so.{major}",)),
    "nvidia-cudnn": (
        "cudnn",
        (
            "libcudnn.so.9",
            "libcudnn_adv.so.9",
            "libcudnn_cnn.so.9",
            "libcudnn_engines_precompiled.so.9",
            "libcudnn_engines_runtime_compiled.so.9",
            "libcudnn_graph.so.9",
            "libcudnn_heuristic.so.9",
            "libcudnn_ops.so.9",
        ),
    ),
    "nvidia-nccl": ("nccl", ("libnccl.so.2",)),
}


def _wheel_libraries(pins: dict[str, str], folder: str | None) -> list[dict[str, Any]]:
    """Native files of torch and of NVIDIA's wheels, with search paths as the real ones have."""
    rows: list[dict[str, Any]] = []
    places: list[str] = []
    for name, pin in pins.items():
        stem = name.rpartition("-cu")[0] or name
        files = _WHEEL_FILES.get(stem)
        if files is None:
            continue
        own = files[0] in {"cudnn", "nccl"} or folder is None
        place = f"{SITE}/nvidia/{files[0] if own else folder}/lib"
        major = "13" if folder else "12"
        places.append(place)
        rows += [
            {
                "path": f"{place}/{file.format(major=major)}",
                "soname": file.format(major=major),
                "needed": ["libcublasLt.so." + major] if file.startswith("libcublas.so") else [],
                "runpath": "$ORIGIN",
                "rpath": None,
                "owners": [name],
                "version": pin,
            }
            for file in files[1]
        ]
    needed = [each["soname"] for each in rows if not each["soname"].startswith("libcudnn_")]
    rpath = ":".join(f"$ORIGIN/../..{each.removeprefix(SITE)}" for each in dict.fromkeys(places))
    for name, needs in (
        ("libtorch_global_deps.so", [each for each in needed if "cudart" in each]),
        ("libc10_cuda.so", [each for each in needed if "cudart" in each]),
        ("libtorch_cuda.so", ["libc10_cuda.so", *needed]),
    ):
        rows.append(
            {
                "path": f"{SITE}/torch/lib/{name}",
                "soname": name,
                "needed": needs,
                "rpath": f"{rpath}:$ORIGIN",
                "runpath": None,
                "owners": ["torch"],
            }
        )
    return rows


CU121 = {
    "nvidia-cublas-cu12": "12.1.3.1",
    "nvidia-cuda-runtime-cu12": "12.1.105",
    "nvidia-cudnn-cu12": "9.1.0.70",
    "nvidia-nccl-cu12": "2.21.5",
}
CU128 = {
    "nvidia-cublas-cu12": "12.8.4.1",
    "nvidia-cuda-runtime-cu12": "12.8.90",
    "nvidia-cudnn-cu12": "9.10.2.21",
    "nvidia-nccl-cu12": "2.27.3",
}
CU130_29 = {
    "nvidia-cublas": "13.0.0.19",
    "nvidia-cuda-runtime": "13.0.48",
    "nvidia-cudnn-cu13": "9.13.0.50",
    "nvidia-nccl-cu13": "2.27.7",
}
CU130_211 = {
    "nvidia-cublas": "13.1.0.3",
    "nvidia-cuda-runtime": "13.0.96",
    "nvidia-cudnn-cu13": "9.19.0.56",
    "nvidia-nccl-cu13": "2.28.9",
}
CU132_215 = {
    "nvidia-cublas": "13.3.0.5",
    "nvidia-cuda-runtime": "13.2.75",
    "nvidia-cudnn-cu13": "9.26.0.51",
    "nvidia-nccl-cu13": "2.30.7",
}


def newest(machine: Edited) -> None:
    """Healthy: the newest torch on a driver of the newest branch."""
    machine.driver("610.47", 13030)
    machine.torch("2.15.0+cu132", CU132_215, "cu13")


def minor_version(machine: Edited) -> None:
    """Healthy: CUDA 12.8 on a 12.4 driver, by minor-version compatibility."""
    machine.driver("550.54.14", 12040)
    machine.gpu("NVIDIA GeForce RTX 4090", "8.9", "2684")
    machine.torch("2.8.0+cu128", CU128, None)


def toolkit_on_path(machine: Edited) -> None:
    """Healthy: LD_LIBRARY_PATH names a toolkit, which DT_RPATH goes before."""
    machine.driver("580.159.04", 13000)
    machine.variables["LD_LIBRARY_PATH"] = "/usr/local/cuda/lib64"
    base = machine.torch("2.11.0+cu130", CU130_211, "cu13")
    base["outer_libraries"] = [
        {
            "path": f"/usr/local/cuda/lib64/{name}",
            "soname": name,
            "needed": [],
            "runpath": "$ORIGIN",
        }
        for name in ("libcudart.so.13", "libcublas.so.13", "libcublasLt.so.13")
    ]
    machine.answer("inspect_env", base)


def pascal(machine: Edited) -> None:
    """The build has no code for a GPU as old as this."""
    machine.driver("570.133.20", 12080, open_module=False)
    machine.gpu("NVIDIA GeForce GTX 1080 Ti", "6.1", "1b06", 11)
    machine.torch("2.8.0+cu128", CU128, None)


def volta(machine: Edited) -> None:
    """The default build dropped this GPU; another CUDA variant of the same release has it."""
    machine.driver("580.95.05", 13000, open_module=False)
    machine.gpu("Tesla V100-SXM2-32GB", "7.0", "1db5", 32)
    machine.torch("2.11.0+cu130", CU130_211, "cu13")


def blackwell(machine: Edited) -> None:
    """The build is older than the GPU."""
    machine.driver("570.133.20", 12080)
    machine.gpu("NVIDIA GeForce RTX 5090", "12.0", "2b85", 32)
    machine.torch("2.5.1+cu121", CU121, None)


def driver_470(machine: Edited) -> None:
    """The driver is below the floor of CUDA 12."""
    machine.driver("470.57.02", 11040, open_module=False)
    machine.gpu("NVIDIA GeForce RTX 3090", "8.6", "2204")
    machine.torch("2.8.0+cu128", CU128, None)


def driver_575(machine: Edited) -> None:
    """A CUDA 13 build on a CUDA 12 driver."""
    machine.driver("575.57.08", 12090)
    machine.gpu("NVIDIA GeForce RTX 4090", "8.9", "2684")
    machine.torch("2.9.0+cu130", CU130_29, "cu13")


def mismatch(machine: Edited) -> None:
    """Libraries were updated while the old module stayed loaded."""
    machine.driver("550.54.14", 12040)
    machine.gpu("NVIDIA GeForce RTX 3090", "8.6", "2204")
    machine.torch("2.8.0+cu128", CU128, None)
    machine.libraries("550.120")
    words = "Driver/library version mismatch"
    machine.answer("query_nvml", {"binding": "pynvml", "init": {"code": 18, "message": words}})
    machine.answer(
        "query_libcuda",
        {
            "path": "/usr/local/nvidia/lib64/libcuda.so.550.120",
            "cuda": 12040,
            "init": 803,
            "message": "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH: system has unsupported display driver / "
            "cuda driver combination",
        },
    )
    for name in ("nvidia-smi-banner", "nvidia-smi-query"):
        machine.results[name] = Result(
            outcome="ok",
            code=18,
            stdout=f"Failed to initialize NVML: {words}\nNVML library version: 550.120\n",
        )


def not_loaded(machine: Edited) -> None:
    """The driver is installed, its module is not in the kernel."""
    machine.libraries("550.54.14")
    machine.torch("2.8.0+cu128", CU128, None)
    machine.gpu("NVIDIA GeForce RTX 3090", "8.6", "2204")
    machine.files["/sys/module/nvidia/version"] = None
    machine.files["/proc/driver/nvidia/version"] = None
    modules = machine.list("/sys/module") or ()
    machine.folders["/sys/module"] = tuple(each for each in modules if "nvidia" not in each)
    nodes = machine.list("/dev") or ()
    machine.folders["/dev"] = tuple(each for each in nodes if not each.startswith("nvidia"))
    machine.stats["/sys/bus/pci/devices/0000:00:06.0/driver"] = None
    for node in NODES:
        machine.stats[node] = None
    machine.answer(
        "query_nvml", {"binding": "pynvml", "init": {"code": 9, "message": "Driver Not Loaded"}}
    )
    machine.answer(
        "query_libcuda",
        {
            "path": "/usr/local/nvidia/lib64/libcuda.so.550.54.14",
            "cuda": 12040,
            "init": 100,
            "message": "CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected",
        },
    )
    machine.results["dmesg"] = Result(outcome="ok", code=0)
    for name in ("nvidia-smi-banner", "nvidia-smi-query"):
        machine.results[name] = Result(outcome="ok", code=9, stdout=SMI_FAILED)


def cpu_build(machine: Edited) -> None:
    """A CPU-only torch beside a working GPU."""
    machine.driver("580.95.05", 13000)
    machine.gpu("NVIDIA GeForce RTX 4090", "8.9", "2684")
    machine.torch("2.8.0+cpu", {}, None)


def mixed_nccl(machine: Edited) -> None:
    """The NCCL wheels of two CUDA majors own one file."""
    machine.driver("580.159.04", 13000)
    pins = {**CU130_211, "nvidia-nccl-cu12": "2.27.3"}
    base = machine.torch("2.11.0+cu130", pins, "cu13")
    path = f"{SITE}/nvidia/nccl/lib/libnccl.so.2"
    base["shared_files"] = {path: ["nvidia-nccl-cu12", "nvidia-nccl-cu13"]}
    base["packages"][0]["requires"] = [f"{name}=={pin}" for name, pin in CU130_211.items()]
    base["libraries"] = [
        each
        for each in base["libraries"]
        if each["path"] != path or each["owners"] == ["nvidia-nccl-cu13"]
    ]
    for each in base["libraries"]:
        if each["path"] == path:
            each["owners"] = ["nvidia-nccl-cu12", "nvidia-nccl-cu13"]
    machine.answer("inspect_env", base)


def foreign_cudnn(machine: Edited) -> None:
    """LD_LIBRARY_PATH names an older cuDNN: its parts win over the wheel's, its front does not."""
    machine.driver("580.159.04", 13000)
    machine.variables["LD_LIBRARY_PATH"] = "/opt/cudnn/lib"
    base = machine.torch("2.11.0+cu130", CU130_211, "cu13")
    base["outer_libraries"] = [
        {
            "path": f"/opt/cudnn/lib/{name}",
            "real": f"/opt/cudnn/lib/{name[:-2]}.9.1.0",
            "soname": name,
            "needed": [],
            "runpath": "$ORIGIN",
        }
        for name in _WHEEL_FILES["nvidia-cudnn"][1]
    ]
    machine.answer("inspect_env", base)


def driver_missing(machine: Edited) -> None:
    """A GPU on the bus and nothing of a driver on disk."""
    not_loaded(machine)
    for stem in ("libcuda.so", "libnvidia-ml.so"):
        machine.stats[f"/usr/local/nvidia/lib64/{stem}.1"] = None
    machine.results["ldconfig"] = Result(outcome="ok", code=0, stdout="0 libs found in cache\n")
    machine.results["dpkg"] = Result(outcome="ok", code=1)
    words = "NVML Shared Library Not Found"
    machine.answer("query_nvml", {"binding": "pynvml", "init": {"code": 12, "message": words}})
    machine.answer("query_libcuda", {"load_error": "libcuda.so.1: cannot open shared object file"})
    for name in ("nvidia-smi-banner", "nvidia-smi-query"):
        machine.results[name] = Result(outcome="missing", error="nvidia-smi: not found")


EDITS: dict[str, Callable[[Edited], None]] = {
    "h200-r610-torch215": newest,
    "rtx4090-r550-torch28-cu128": minor_version,
    "h200-toolkit-on-library-path": toolkit_on_path,
    "gtx1080ti-torch28-cu128": pascal,
    "v100-torch211-cu130": volta,
    "rtx5090-torch25-cu121": blackwell,
    "rtx3090-r470-cu128": driver_470,
    "rtx4090-r575-cu130": driver_575,
    "rtx3090-library-mismatch": mismatch,
    "rtx3090-not-loaded": not_loaded,
    "rtx3090-driver-missing": driver_missing,
    "rtx4090-torch-cpu": cpu_build,
    "h200-nccl-of-two-majors": mixed_nccl,
    "h200-foreign-cudnn": foreign_cudnn,
}


def build(name: str, folder: Path) -> None:
    """Write one edited machine to `folder`."""
    edit = EDITS[name]
    machine = Edited(Recorded(str(BASE)), name)
    # Not a container, whatever the machine was made from.
    machine.stats["/.dockerenv"] = machine.stats["/run/.containerenv"] = None
    machine.files["/run/systemd/container"] = None
    machine.files["/proc/1/cgroup"] = "0::/init.scope\n"
    machine.files["/proc/2/comm"] = "kthreadd\n"
    edit(machine)
    recorder = Recorder(machine)
    snapshot = take_snapshot(recorder)
    title = (edit.__doc__ or "").strip().splitlines()[0]
    recorder.save(str(folder), snapshot, title=title, origin="edited")


def main() -> None:
    """Write all of them anew."""
    for name in EDITS:
        shutil.rmtree(HERE / name, ignore_errors=True)
        build(name, HERE / name)


if __name__ == "__main__":
    main()
