"""What messages of a text stand for, weighed with its facts; and that a live machine's do not."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from envcheck.engine import judge
from envcheck.model.environment import Environment, Framework, Package, Toolkit, Variable
from envcheck.model.finding import Finding
from envcheck.model.host import Container, Driver, Gpu, Host, ProbeAnswer
from envcheck.model.snapshot import Snapshot
from envcheck.model.symptom import Symptom
from envcheck.rules import all_rules
from envcheck.rules.told.answer import WORDS
from envcheck.symptoms.scan import scan
from tests.rules.asking import tables
from tests.support import evolve, machine, torch

RULES = all_rules()


def text(*lines: str, **changes: Any) -> Snapshot:
    """A report of some lines, with facts at dotted paths (`host__wsl`) besides."""
    snapshot = Snapshot(source="report", symptoms=scan(lines, tables(), via="text"))
    return evolve(snapshot, {path.replace("__", "."): new for path, new in changes.items()})


def found(snapshot: Snapshot) -> list[str]:
    """Ids of the findings, the cause first; no rule may crash."""
    report = judge(snapshot, tables(), RULES)
    assert [each for each in report.unknown if each.kind == "crashed"] == []
    return [each.id for each in report.findings]


def open_about(snapshot: Snapshot) -> list[str]:
    """Ids about which a text leaves a question open."""
    report = judge(snapshot, tables(), RULES)
    assert report.findings == ()
    assert report.verdict == "unknown"
    return [each.check for each in report.unknown]


NO_KERNEL = "RuntimeError: CUDA error: no kernel image is available for execution on the device"
NO_DEVICE = "RuntimeError: No CUDA GPUs are available"
NO_LIBCUDA = "ImportError: libcuda.so.1: cannot open shared object file: No such file or directory"
NCCL_SYMBOL = "ImportError: libtorch_cuda.so: undefined symbol: ncclCommRegister"
NO_CUDART = (
    "ImportError: libcudart.so.11.0: cannot open shared object file: No such file or directory"
)
SMI_SILENT = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."


JAX = Framework(name="jax", version="0.7.1")


def gpus(*names: str, **facts: Any) -> tuple[Gpu, ...]:
    return tuple(Gpu(index=at, name=name, **facts) for at, name in enumerate(names))


def wheels(**versions: str) -> tuple[Package, ...]:
    return tuple(Package(name=n.replace("_", "-"), version=v) for n, v in versions.items())


# -- driver, GPU -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("snapshot", "expected"),
    [
        (text(SMI_SILENT), "driver-not-loaded"),
        (text(SMI_SILENT, host__wsl=2), "wsl-linux-driver"),
        (text("Loading of unsigned module is rejected", SMI_SILENT), "driver-module-rejected"),
        (text("  Kernel driver in use: nouveau", SMI_SILENT), "nouveau-conflict"),
        (text("CUDA error: unknown error"), "driver-state-stale"),
        (text("CUDA error: unknown error", host__wsl=2), "wsl-gpu-unavailable"),
        (
            text("CUDA error: unknown error", "Failed to initialize NVML: Unknown Error"),
            "container-device-access-lost",
        ),
        (
            text(
                "Failed to initialize NVML: Unknown Error", host__container=Container(kind="none")
            ),
            "driver-state-stale",
        ),
        (text("NVRM: Xid (PCI:0000:01:00): 79, pid=7"), "gpu-fell-off-bus"),
        (text("NVRM: Xid (PCI:0000:01:00): 95, pid=7"), "gpu-memory-error"),
        (text("NVRM: Xid (PCI:0000:01:00): 119, pid=7"), "gpu-xid"),
        (
            text("all CUDA-capable devices are busy or unavailable"),
            "gpu-exclusive-mode",
        ),
        (
            text(
                "all CUDA-capable devices are busy or unavailable",
                host__gpus=gpus("NVIDIA A100-SXM4-80GB", mig=True),
            ),
            "mig-instance-limit",
        ),
        (
            text(
                "NVRM: installed in this system is not supported by the NVIDIA 575.51.03 driver "
                "release.",
                "NVRM: The NVIDIA GPU 0000:03:00.0 (PCI ID: 10de:102d)",
            ),
            "gpu-dropped-by-driver",
        ),
        (
            text(
                "NVRM: installed in this system is not supported by the NVIDIA 510.47.03 driver "
                "release.",
                "NVRM: The NVIDIA GPU 0000:03:00.0 (PCI ID: 10de:2684)",
            ),
            "gpu-needs-newer-driver",
        ),
        (
            text("unsupported display driver / cuda driver combination"),
            "forward-compat-unsupported",
        ),
        (
            text(
                "unsupported display driver / cuda driver combination",
                host__driver=Driver(module_version="570.86.15", userspace_version="575.51.03"),
            ),
            "driver-library-mismatch",
        ),
        (text(NO_DEVICE, "export CUDA_VISIBLE_DEVICES=-1"), "cuda-visible-devices-invalid"),
        (text(NO_DEVICE, "docker run -it pytorch/pytorch bash"), "container-without-gpu"),
        (text(NO_DEVICE, "  MIG 1g.5gb   Device  0: (UUID: MIG-1)"), "mig-instance-limit"),
        (text(NO_DEVICE, "OS: macOS 15.1 (arm64)"), "no-gpu"),
        (text(NO_LIBCUDA, "GPU: RTX 4090"), "driver-missing"),
        (text(NO_LIBCUDA, host__wsl=2), "wsl-gpu-unavailable"),
        (text(NO_LIBCUDA, "NVIDIA_DRIVER_CAPABILITIES=utility"), "driver-capabilities-missing"),
        (text(NO_LIBCUDA, host__container=Container(kind="docker")), "container-without-gpu"),
        (
            text(
                "nvidia-container-cli: initialization error: load library failed: "
                "libnvidia-ml.so.1: cannot open shared object file",
                "desktop-linux *   Docker Desktop",
            ),
            "docker-desktop-no-gpu",
        ),
    ],
)
def test_a_message_about_the_machine_stands_for(snapshot: Snapshot, expected: str) -> None:
    assert found(snapshot)[0] == expected


@pytest.mark.parametrize(
    "snapshot",
    [
        text("Loading of unsigned module is rejected"),
        text("  Kernel driver in use: nouveau"),
        text("NVRM: Xid (PCI:0000:01:00): 13, pid=7", "NVRM: Xid (PCI:0000:01:00): 31, pid=7"),
        text("pcieport 0000:00:01.1: pciehp: Slot(1): Link Down"),
        text("ACSCtl: SrcValid+ TransBlk- ReqRedir+ CmpltRedir+"),
        text(
            "systemd[1]: Failed to start nvidia-fabricmanager.service - NVIDIA fabric manager "
            "service.",
            host__gpus=gpus("NVIDIA GeForce RTX 4090", "NVIDIA GeForce RTX 4090"),
        ),
        text("capabilities: [gpu]", "everything works"),
        text("NCCL INFO Bootstrap : Using lo:127.0.0.1<0>"),
        text("CUDA out of memory. Tried to allocate 2.00 GiB"),
        text("RuntimeError: CUDA error: device-side assert triggered"),
        text("Unable to register cuDNN factory: Attempting to register factory"),
        text("Could not find cuda drivers on your machine, GPU will not be used."),
    ],
)
def test_a_message_that_means_no_fault_here_gives_no_finding(snapshot: Snapshot) -> None:
    assert found(snapshot) == []


@pytest.mark.parametrize(
    ("snapshot", "check"),
    [
        (text(NO_KERNEL), "gpu-newer-than-build"),
        (text(NO_DEVICE), "no-gpu"),
        (text("No devices were found"), "gpu-init-failed"),
        (text("RuntimeError: CUDA error: invalid device ordinal"), "cuda-visible-devices-invalid"),
        (text("CUDA_HOME environment variable is not set."), "nvcc-cuda-major-mismatch"),
        (text("CUDA error: a PTX JIT compilation failed"), "ptx-newer-than-driver"),
    ],
)
def test_a_message_that_the_text_does_not_decide_is_asked_about(
    snapshot: Snapshot, check: str
) -> None:
    assert check in open_about(snapshot)
    assert judge(snapshot, tables(), RULES).ask


# -- memory ----------------------------------------------------------------------------------------

HOLDERS = (
    "CUDA out of memory. GPU 0 has a total capacity of 24.00 GiB of which 10.00 MiB is free. {} "
    "Of the allocated memory 3.00 GiB is allocated by PyTorch"
)


@pytest.mark.parametrize(
    ("holders", "expected"),
    [
        (
            "Process 7 has 20.10 GiB memory in use. Including non-PyTorch memory, this process has "
            "3.51 GiB memory in use.",
            ["gpu-memory-occupied"],
        ),
        ("Including non-PyTorch memory, this process has 23.90 GiB memory in use.", []),
        ("Process 7 has 23.90 GiB memory in use.", []),
        (
            "Process 7 has 20.10 GiB memory in use. Process 8 has 3.80 GiB memory in use.",
            ["gpu-memory-occupied"],
        ),
    ],
)
def test_who_holds_the_memory_decides(holders: str, expected: list[str]) -> None:
    assert found(text(HOLDERS.format(holders))) == expected


# -- CUDA's libraries ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("snapshot", "expected"),
    [
        (text(NCCL_SYMBOL), "library-path-shadows-nccl"),
        (text(NCCL_SYMBOL, "nvidia-nccl-cu11", "nvidia-nccl-cu12"), "mixed-cuda-majors"),
        (
            text("Found cuBLAS version 120205, but JAX was built against version 120304, which"),
            "cuda-runtime-mismatch",
        ),
        (
            text(
                "Found cuBLAS version 120205, but JAX was built against version 120304, which",
                env__packages=wheels(nvidia_cublas_cu12="12.4.2.65"),
            ),
            "library-path-shadows-cuda",
        ),
        (
            text(
                "Found cuBLAS version 120205, but JAX was built against version 120304, which",
                env__packages=wheels(nvidia_cublas_cu12="12.2.5.6"),
            ),
            "cuda-runtime-mismatch",
        ),
        (
            text(
                "cuDNN version incompatibility: PyTorch was compiled against (9, 1, 0) but found "
                "runtime version (8, 9, 7)",
                env__packages=wheels(nvidia_cudnn_cu12="8.9.7.29"),
            ),
            "cudnn-version-mismatch",
        ),
        (
            text(
                "cuDNN version incompatibility: PyTorch was compiled against (9, 1, 0) but found "
                "runtime version (8, 9, 7)",
                env__packages=wheels(nvidia_cudnn_cu12="9.1.0.70"),
            ),
            "library-path-shadows-cudnn",
        ),
        (
            text(
                "cuDNN error: CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH",
                env__variables=(Variable(name="LD_LIBRARY_PATH", value="/usr/local/cuda/lib64"),),
            ),
            "library-path-shadows-cudnn",
        ),
        (text(NO_CUDART), "cuda-libraries-missing"),
        (
            text(NO_CUDART, 'File "/v/lib/python3.9/site-packages/mmcv/utils/ext_loader.py"'),
            "extension-built-for-other-cuda",
        ),
        (
            text(
                "Failed to load library libonnxruntime_providers_cuda.so with error: "
                "libcublasLt.so.12: cannot open shared object file",
                env__toolkits=(Toolkit(root="/usr/local/cuda", version="13.0"),),
            ),
            "extension-built-for-other-cuda",
        ),
        (
            text(
                "Failed to load library libonnxruntime_providers_cuda.so with error: "
                "libcublasLt.so.12: cannot open shared object file"
            ),
            "cuda-libraries-missing",
        ),
        (
            text(
                "Specified provider 'CUDAExecutionProvider' is not in available provider names",
                env__packages=wheels(onnxruntime="1.20.0", onnxruntime_gpu="1.20.0"),
            ),
            "framework-variant-conflict",
        ),
        (
            text("nvcc fatal   : Unsupported gpu architecture 'compute_120'"),
            "ptxas-too-old-for-gpu",
        ),
        (text("nvcc fatal   : Unsupported gpu architecture 'compute_35'"), "gpu-older-than-build"),
    ],
)
def test_a_message_about_libraries_stands_for(snapshot: Snapshot, expected: str) -> None:
    assert found(snapshot)[0] == expected


def test_an_insufficient_driver_is_not_blamed_when_it_runs_what_is_installed() -> None:
    said = "CUDA driver version is insufficient for CUDA runtime version"
    driver = Driver(version="580.95.05", cuda="13.0")
    assert found(text(said))[0] == "driver-too-old"
    snapshot = text(said, host__driver=driver, env__frameworks=(torch("2.8.0+cu128"),))
    assert "driver-too-old" in open_about(snapshot)


# -- GPU and build ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("snapshot", "expected"),
    [
        (text(NO_KERNEL, "torch==2.5.1+cu121, RTX 5080"), "gpu-newer-than-build"),
        (text(NO_KERNEL, "torch==2.3.0+cu121, Tesla K80"), "gpu-older-than-build"),
        (text(NO_KERNEL, "pytorch 1.7.0, RTX 3090"), "gpu-newer-than-build"),
        (
            text(
                "Tesla K80 with CUDA capability sm_37 is not compatible with the current PyTorch "
                "installation.",
                "The current PyTorch install supports CUDA capabilities sm_50 sm_60 sm_70 sm_75.",
            ),
            "gpu-older-than-build",
        ),
        (
            text(
                "Found GPU0 NVIDIA GeForce RTX 5070 which is of cuda capability 12.0.",
                "Minimum and Maximum cuda capability supported by this version of PyTorch is",
                "(5.0) - (9.0)",
            ),
            "gpu-newer-than-build",
        ),
        (
            text(
                "Found GPU0 NVIDIA TITAN V which is of compute capability (CC) 7.0.",
                "The following list shows the CCs this version of PyTorch was built for and the "
                "hardware CCs it supports:",
                "- 7.5 which supports hardware CC >=7.5,<8.0",
                "- 8.0 which supports hardware CC >=8.0,<9.0 except {8.7}",
            ),
            "gpu-older-than-build",
        ),
        (text(NO_KERNEL, "torch==2.7.1+cu128, vllm, RTX 5090"), "gpu-newer-than-build"),
        (text(NO_KERNEL, "torch==2.7.0+cu126, vllm, GTX 1080 Ti"), "library-drops-gpu"),
        (text(NO_KERNEL, "Jetson Orin, pytorch 2.5.1 from conda"), "jetson-generic-wheel"),
        (
            text(
                "ERROR: CUDA kernel mul_mat has no device code compatible with CUDA arch 520. "
                "ggml-cuda.cu was compiled for: 600,700"
            ),
            "gpu-older-than-build",
        ),
    ],
)
def test_which_end_of_a_build_a_gpu_is_beyond(snapshot: Snapshot, expected: str) -> None:
    assert found(snapshot)[0] == expected


def test_a_warning_about_a_higher_minor_of_the_same_major_is_no_finding() -> None:
    snapshot = text(
        "Found GPU0 NVIDIA GB10 which is of cuda capability 12.1.",
        "Minimum and Maximum cuda capability supported by this version of PyTorch is",
        "(8.0) - (12.0)",
    )
    assert found(snapshot) == []


def test_a_gpu_that_torch_has_code_for_leaves_the_question_open() -> None:
    snapshot = text(NO_KERNEL, "torch==2.7.0+cu128, RTX 4090")
    assert "gpu-newer-than-build" in open_about(snapshot)


# -- the ids that only messages show ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("id", "line", "other"),
    [
        (
            "p2p-unavailable",
            "peer access is not supported between these two devices",
            "peer access is enabled",
        ),
        (
            "nccl-network-unreachable",
            "NCCL WARN NET/IB : Got completion with error 12, opcode 0, len 0, vendor err 129",
            "NCCL WARN Connect to 10.0.0.2<4000> failed : Connection refused",
        ),
        (
            "nccl-wrong-interface",
            "NCCL WARN Net : Connect to 127.0.0.1<4000> failed : Connection refused",
            "NCCL WARN Net : Connect to 10.0.0.2<4000> failed : Connection refused",
        ),
        (
            "nccl-cumem-unsupported",
            "transport/shm.cc:590 NCCL WARN Cuda failure 217 'peer access is not supported between "
            "these two devices'",
            "NCCL WARN Cuda failure 'out of memory'",
        ),
        (
            "ranks-share-gpu",
            "Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 4000",
            "NCCL INFO rank 1 on CUDA device 4000",
        ),
        (
            "library-drops-gpu",
            "RuntimeError: FlashAttention only supports Ampere GPUs or newer.",
            "FlashAttention is used",
        ),
        (
            "package-pair-mismatch",
            "flashinfer-cubin version (0.6.4) does not match flashinfer version (0.6.3).",
            "flashinfer version 0.6.3",
        ),
        (
            "extension-binary-missing",
            "ModuleNotFoundError: No module named 'vllm._C'",
            "ModuleNotFoundError: No module named 'tqdm'",
        ),
        (
            "no-wheel-for-python",
            "ERROR: No matching distribution found for torch==2.0.1",
            "ERROR: No matching distribution found for torch==2.0.1+cu118",
        ),
    ],
)
def test_a_finding_that_only_messages_show(id: str, line: str, other: str) -> None:
    assert found(text(line)) == [id]
    assert id not in found(text(other))


def test_duplicate_gpus_under_mig_are_instances() -> None:
    line = "Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 4000"
    snapshot = text(line, host__gpus=gpus("NVIDIA H100 80GB HBM3", mig=True))
    assert found(snapshot)[0] == "mig-instance-limit"


def test_no_candidate_on_a_broken_network_is_no_missing_build() -> None:
    assert (
        found(
            text(
                "WARNING: Retrying (Retry(total=4, connect=None)) after connection broken",
                "ERROR: No matching distribution found for torch",
            )
        )
        == []
    )


# -- beside facts, and on live machines ------------------------------------------------------------


def test_a_message_is_evidence_beside_the_facts_that_show_the_same() -> None:
    message = "The NVIDIA driver on your system is too old (found version 11040)."
    snapshot = text(
        message,
        host__driver=Driver(version="470.57.02", cuda="11.4"),
        env__frameworks=(torch("2.8.0+cu128"),),
    )
    (finding,) = judge(snapshot, tables(), RULES).findings
    assert finding.id == "driver-too-old"
    assert finding.found == "driver 470.57.02, which offers CUDA 11.4"
    assert finding.evidence[-1].value == message


def test_an_old_line_of_a_live_machines_kernel_log_is_no_finding() -> None:
    line = "NVRM: GPU 0000:01:00.0: RmInitAdapter failed! (0x22:0x56:884)"
    healthy = machine(frameworks=(torch(),))
    old = (Symptom(name="gpu-init-adapter", text=line, via="kernel log"),)
    assert found(dataclasses.replace(healthy, symptoms=old)) == []


def test_what_an_import_said_on_a_live_machine_is_a_finding() -> None:
    said = scan(["_C.so: undefined symbol: _ZN3c105ErrorC2E"], tables(), via="import torch")
    healthy = machine(frameworks=(torch(),))
    assert found(dataclasses.replace(healthy, symptoms=said)) == ["extension-built-for-other-torch"]


def test_consequences_are_folded_under_the_cause() -> None:
    snapshot = text(
        "modprobe: ERROR: could not insert 'nvidia': Key was rejected by service",
        SMI_SILENT,
        NO_DEVICE,
    )
    (finding,) = judge(snapshot, tables(), RULES).findings
    assert finding.id == "driver-module-rejected"
    assert finding.consequences == ("driver-not-loaded",)


@pytest.mark.parametrize("id", WORDS)
def test_every_wording_is_complete_on_a_bare_text_and_on_a_known_machine(id: str) -> None:
    rows = [row for row in tables().symptoms if row.finding == id]
    for snapshot in (
        Snapshot(source="report"),
        Snapshot(
            source="report",
            host=Host(
                gpus=gpus("NVIDIA GeForce RTX 4090", arch="8.9"),
                driver=Driver(version="550.54.14", cuda="12.4", nvml=ProbeAnswer(outcome="ok")),
            ),
            env=Environment(
                frameworks=(torch("2.8.0+cu128"), Framework(name="jax", version="0.7"))
            ),
        ),
    ):
        said = tuple(each for row in rows for each in scan([row.example], tables()))
        answers = [
            each
            for rule in RULES
            if rule.id == id and rule.told is not None
            for each in rule.told(dataclasses.replace(snapshot, symptoms=said), tables())
        ]
        for each in answers:
            if isinstance(each, Finding):
                assert each.title
                assert each.needed
                assert each.why.endswith(".")
                assert each.fix
                assert all(road.title for road in each.fix)
                assert each.component == WORDS[id].component
                assert "None" not in f"{each.fix}{each.subject}".replace("=None", "")
