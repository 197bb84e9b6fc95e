"""Each kind of text that people paste, and the facts that it gives."""

from __future__ import annotations

import functools

import pytest

from envcheck.intake import read
from envcheck.matrix.loader import Matrix
from envcheck.model.snapshot import Snapshot


@functools.cache
def tables() -> Matrix:
    return Matrix.shipped()


def facts(text: str) -> Snapshot:
    return read(text, tables())


# -- collect_env -----------------------------------------------------------------------------------

OLD = """\
Collecting environment information...
PyTorch version: 1.4.0
Is debug build: No
CUDA used to build PyTorch: 10.1

OS: CentOS Linux 7 (Core)
GCC version: (GCC) 4.8.5 20150623 (Red Hat 4.8.5-39)
CMake version: version 2.8.12.2

Python version: 3.7
Is CUDA available: Yes
CUDA runtime version: 10.1.243
GPU models and configuration:
GPU 0: Tesla V100-SXM2-32GB
GPU 1: Tesla V100-SXM2-32GB

Nvidia driver version: 440.33.01
cuDNN version: /usr/local/cuda/lib64/libcudnn.so.7
"""

SECTIONED = """\
==============================
        System Info
==============================
OS                           : Ubuntu 22.04.5 LTS (x86_64)
GCC version                  : (Ubuntu 11.4.0-1ubuntu1~22.04) 11.4.0
Libc version                 : glibc-2.35

==============================
       PyTorch Info
==============================
PyTorch version              : 2.7.0+cu126
Is debug build               : False
CUDA used to build PyTorch   : 12.6
ROCM used to build PyTorch   : N/A
Python version               : 3.12.9 (main, Feb  5 2025, 08:49:00) [GCC 11.4.0] (64-bit runtime)
Python platform              : Linux-5.15.0-134-generic-x86_64-with-glibc2.35
Is CUDA available            : True
CUDA runtime version         : 12.4.131
GPU models and configuration : GPU 0: NVIDIA L40S
Nvidia driver version        : 550.144.03
"""


def test_an_old_collect_env() -> None:
    found = facts(OLD)
    torch = found.env.framework("torch")
    assert torch is not None
    assert (torch.version, torch.cuda, torch.cpu_only, torch.gpu_available) == (
        "1.4.0",
        "10.1",
        False,
        True,
    )
    assert [(gpu.index, gpu.name, gpu.arch) for gpu in found.host.gpus or ()] == [
        (0, "Tesla V100-SXM2-32GB", "7.0"),
        (1, "Tesla V100-SXM2-32GB", "7.0"),
    ]
    assert found.host.driver.version == "440.33.01"
    assert (found.host.os.id, found.host.os.version) == ("centos", "7")
    assert (found.env.python.version, found.env.python.tag) == ("3.7", "cp37")
    assert [(each.name, each.version) for each in found.env.compilers or ()] == [("gcc", "4.8.5")]


def test_the_sectioned_form() -> None:
    found = facts(SECTIONED)
    torch = found.env.framework("torch")
    assert torch is not None
    assert (torch.version, torch.cuda, torch.origin) == ("2.7.0+cu126", "12.6", "framework-index")
    assert [(gpu.name, gpu.arch) for gpu in found.host.gpus or ()] == [("NVIDIA L40S", "8.9")]
    assert (found.host.os.id, found.host.os.glibc, found.host.wsl) == ("ubuntu", "2.35", 0)
    assert [each.version for each in found.env.toolkits or ()] == ["12.4.131"]


def test_values_on_the_next_line() -> None:
    found = facts("PyTorch version:\n2.2.1+cu121\nIs CUDA available:\nFalse\n")
    torch = found.env.framework("torch")
    assert torch is not None
    assert (torch.version, torch.cuda, torch.gpu_available) == ("2.2.1+cu121", "12.1", False)


@pytest.mark.parametrize("said", ["None", "Could not collect"])
def test_a_build_without_cuda(said: str) -> None:
    found = facts(f"PyTorch version: 2.1.0\nCUDA used to build PyTorch: {said}\n")
    torch = found.env.framework("torch")
    assert torch is not None
    assert (torch.cuda, torch.cpu_only) == (None, True)


def test_a_rocm_build_is_no_cpu_build() -> None:
    found = facts(
        "PyTorch version: 2.1.0+rocm5.6\nCUDA used to build PyTorch: N/A\n"
        "ROCM used to build PyTorch: 5.6.31061-8c743ae5d\n"
    )
    torch = found.env.framework("torch")
    assert torch is not None
    assert (torch.hip, torch.cpu_only) == ("5.6.31061-8c743ae5d", None)


def test_wsl_and_windows() -> None:
    wsl = facts(
        "PyTorch version: 2.1.0\n"
        "Python platform: Linux-5.15.90.1-microsoft-standard-WSL2-x86_64-with-glibc2.35\n"
    )
    assert wsl.host.wsl == 2
    windows = facts(
        "PyTorch version: 2.1.0\nOS: Microsoft Windows 11 Pro\n"
        "Python platform: Windows-10-10.0.22621-SP0\n"
    )
    assert (windows.host.os.id, windows.host.os.version) == ("windows", "11")
    assert windows.env.python.platform == "win_amd64"


# -- nvidia-smi ------------------------------------------------------------------------------------

TABLE = """\
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI {smi}             {driver} Version: {smi}     {cuda} Version: {api}     |
|-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
|   0  NVIDIA A100-SXM4-80GB          On  |   00000000:07:00.0 Off |                    2 |
| N/A   31C    P0             63W /  400W |   80123MiB /  81920MiB |     97%   E. Process |
|                                         |                        |              Enabled |
+-----------------------------------------+------------------------+----------------------+
| Processes:                                                                              |
|  GPU   GI   CI        PID   Type   Process name                              GPU Memory |
|=========================================================================================|
|    0   N/A  N/A     12345      C   python3                                    80001MiB |
+-----------------------------------------------------------------------------------------+
"""


@pytest.mark.parametrize(("driver", "cuda"), [("Driver", "CUDA"), ("KMD", "CUDA UMD")])
def test_the_table(driver: str, cuda: str) -> None:
    found = facts(TABLE.format(smi="550.144.03", driver=driver, cuda=cuda, api="12.4"))
    assert (found.host.driver.version, found.host.driver.cuda) == ("550.144.03", "12.4")
    assert found.host.driver.smi.outcome == "ok"
    (gpu,) = found.host.gpus or ()
    assert (gpu.name, gpu.arch, gpu.bus_id) == ("NVIDIA A100-SXM4-80GB", "8.0", "0000:07:00.0")
    assert (gpu.persistence, gpu.ecc_uncorrected, gpu.mig) == (True, 2, True)
    assert (gpu.compute_mode, gpu.utilization_percent) == ("exclusive-process", 97)
    assert gpu.memory_used_bytes == 80123 << 20
    assert [(each.pid, each.name) for each in gpu.processes or ()] == [(12345, "python3")]


def test_a_name_that_the_table_cut_short() -> None:
    row = (
        "|   0  Tesla V100S-PCI...  Off  | 00000000:00:07.0 Off |                    0 |\n"
        "| N/A   50C    P0   219W / 250W |   4617MiB / 32510MiB |    100%      Default |\n"
    )
    (gpu,) = facts(row).host.gpus or ()
    assert gpu.arch == "7.0"


def test_a_list_with_mig_instances() -> None:
    found = facts(
        "GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-00000000-0000-0000-0000-000000000001)\n"
        "  MIG 3g.40gb     Device  0: (UUID: MIG-00000000-0000-0000-0000-000000000011)\n"
        "  MIG 3g.40gb     Device  1: (UUID: MIG-00000000-0000-0000-0000-000000000012)\n"
        "GPU 1: NVIDIA A100-SXM4-80GB (UUID: GPU-00000000-0000-0000-0000-000000000002)\n"
    )
    assert [(gpu.mig, gpu.mig_instances) for gpu in found.host.gpus or ()] == [
        (True, 2),
        (None, None),
    ]


def test_csv() -> None:
    found = facts(
        "name, driver_version, memory.total [MiB], compute_cap\n"
        "NVIDIA GeForce RTX 5090, 570.86.10, 32607 MiB, 12.0\n"
        "NVIDIA GeForce RTX 3090, 570.86.10, 24576 MiB, 8.6\n"
    )
    assert [(gpu.name, gpu.arch) for gpu in found.host.gpus or ()] == [
        ("NVIDIA GeForce RTX 5090", "12.0"),
        ("NVIDIA GeForce RTX 3090", "8.6"),
    ]
    assert found.host.driver.version == "570.86.10"


def test_the_long_form() -> None:
    found = facts(
        "==============NVSMI LOG==============\n"
        "Driver Version                            : 535.183.06\n"
        "CUDA Version                              : 12.2\n"
        "Attached GPUs                             : 1\n"
        "GPU 00000000:17:00.0\n"
        "    Product Name                          : NVIDIA H100 80GB HBM3\n"
        "    MIG Mode\n"
        "        Current                           : Disabled\n"
        "    ECC Errors\n"
        "        Volatile\n"
        "            SRAM Correctable              : 0\n"
        "            SRAM Uncorrectable            : 0\n"
        "            DRAM Uncorrectable            : 3\n"
        "        Aggregate\n"
        "            DRAM Uncorrectable            : 9\n"
        "    Remapped Rows\n"
        "        Correctable Error                 : 0\n"
        "        Uncorrectable Error               : 1\n"
        "        Pending                           : Yes\n"
        "        Remapping Failure Occurred        : No\n"
        "    Fabric\n"
        "        State                             : In Progress\n"
    )
    (gpu,) = found.host.gpus or ()
    assert (gpu.name, gpu.bus_id, gpu.mig) == ("NVIDIA H100 80GB HBM3", "0000:17:00.0", False)
    assert (gpu.ecc_uncorrected, gpu.remap_pending, gpu.remap_failed) == (3, True, False)
    assert gpu.fabric_state == "in-progress"
    assert (found.host.driver.version, found.host.driver.cuda) == ("535.183.06", "12.2")


def test_what_nvidia_smi_says_instead() -> None:
    found = facts(
        "Failed to initialize NVML: Driver/library version mismatch\n"
        "NVML library version: 535.230\n"
    )
    assert (found.host.driver.nvml.outcome, found.host.driver.nvml.code) == ("error", 18)
    assert found.host.driver.userspace_version == "535.230"
    assert facts("No devices were found\n").host.gpus == ()


# -- packages --------------------------------------------------------------------------------------


def packages(text: str) -> dict[str, str]:
    return {each.name: each.version for each in facts(text).env.packages or ()}


def test_pip_list_freeze_and_uv() -> None:
    listed = (
        "Package    Version\n---------- -----------\ntorch      2.8.0+cu128\nflash_attn 2.8.3\n"
    )
    assert packages(listed) == {"torch": "2.8.0+cu128", "flash-attn": "2.8.3"}
    assert packages("torch==2.8.0\nnvidia-nccl-cu12==2.27.3\n") == {
        "torch": "2.8.0",
        "nvidia-nccl-cu12": "2.27.3",
    }


def test_conda_list() -> None:
    text = (
        "# packages in environment at /opt/conda:\n"
        "#\n"
        "# Name                    Version                   Build  Channel\n"
        "pytorch                   2.1.0           py3.11_cuda12.1_cudnn8.9.2_0    pytorch\n"
        "numpy                     1.26.4          py311h64a7726_0    conda-forge\n"
        "transformers              4.40.1                   pypi_0    pypi\n"
    )
    found = facts(text)
    torch = found.env.framework("torch")
    assert torch is not None
    assert (torch.version, torch.cuda, torch.origin) == ("2.1.0", "12.1", "conda")
    assert packages(text)["transformers"] == "4.40.1"


def test_what_is_about_to_be_installed_is_not_installed() -> None:
    assert packages("$ pip install xformers==0.0.27 vllm==0.5.0\n").get("vllm") is None


def test_a_plain_version_with_its_wheels_is_the_default_build() -> None:
    found = facts(
        "Package                  Version\n------------------------ ---------\n"
        "nvidia-cuda-runtime-cu12 12.1.105\ntorch                    2.1.2\n"
    )
    torch = found.env.framework("torch")
    assert torch is not None
    assert (torch.cuda, torch.origin) == ("12.1", "index")


# -- what frameworks print -------------------------------------------------------------------------


def test_transformers_and_accelerate_env() -> None:
    found = facts(
        "- `transformers` version: 4.41.2\n"
        "- Platform: Linux-6.5.0-1020-aws-x86_64-with-glibc2.35\n"
        "- Python version: 3.10.12\n"
        "- Accelerate version: 0.30.1\n"
        "- PyTorch version (GPU?): 2.3.0+cu121 (False)\n"
        "- Tensorflow version (GPU?): not installed (NA)\n"
    )
    torch = found.env.framework("torch")
    assert torch is not None
    assert (torch.version, torch.gpu_available) == ("2.3.0+cu121", False)
    assert found.env.framework("tensorflow") is None
    assert found.env.package("accelerate") is not None
    assert (found.host.os.kernel, found.env.python.tag) == ("6.5.0-1020-aws", "cp310")


def test_ds_report() -> None:
    found = facts(
        "torch version .................... 2.4.0+cu121\n"
        "deepspeed info ................... 0.15.1, unknown, unknown\n"
        "torch cuda version ............... 12.1\n"
        "torch hip version ................ None\n"
        "nvcc version ..................... 11.8\n"
        "shared memory (/dev/shm) size .... 64.00 MB\n"
    )
    torch = found.env.framework("torch")
    assert torch is not None
    assert (torch.version, torch.cuda) == ("2.4.0+cu121", "12.1")
    assert [each.version for each in found.env.toolkits or ()] == ["11.8"]
    assert found.host.shm_bytes == 64 << 20
    assert packages("deepspeed info ................... 0.15.1, unknown\n") == {
        "deepspeed": "0.15.1"
    }


def test_jax_environment_info() -> None:
    found = facts(
        "jax:    0.4.35\njaxlib: 0.4.34\nnumpy:  1.26.4\n"
        "python: 3.11.9 (main, Apr  6 2024, 17:59:24) [GCC 11.4.0]\n"
        "jax.devices (1 total, 1 local): [CudaDevice(id=0)]\n"
        "process_count: 1\n"
    )
    jax = found.env.framework("jax")
    assert jax is not None
    assert (jax.version, jax.gpu_available) == ("0.4.35", True)
    assert found.env.python.version == "3.11.9"


def test_the_line_of_ultralytics() -> None:
    found = facts(
        "Ultralytics YOLOv8.2.0 Python-3.10.12 torch-2.2.1+cu121 CUDA:0 (Tesla T4, 15102MiB)\n"
    )
    torch = found.env.framework("torch")
    assert torch is not None
    assert (torch.version, torch.gpu_available) == ("2.2.1+cu121", True)
    assert [(gpu.name, gpu.arch) for gpu in found.host.gpus or ()] == [("Tesla T4", "7.5")]


def test_python_at_a_prompt() -> None:
    found = facts(
        ">>> import torch\n>>> torch.__version__\n'2.6.0+cu124'\n"
        ">>> torch.cuda.is_available()\nTrue\n>>> torch.cuda.get_arch_list()\n"
        "['sm_50', 'sm_80', 'sm_90']\n"
    )
    torch = found.env.framework("torch")
    assert torch is not None
    assert (torch.version, torch.gpu_available) == ("2.6.0+cu124", True)
    assert torch.arches == ("sm_50", "sm_80", "sm_90")


# -- the machine -----------------------------------------------------------------------------------


def test_kernel_module_packages_and_variables() -> None:
    found = facts(
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.124.06  Release Build\n"
        "ii  libnvidia-compute-570:amd64  570.133.07-0ubuntu1  amd64  NVIDIA libcompute package\n"
        "export LD_LIBRARY_PATH=/usr/local/cuda-12.1/lib64\n"
        "CUDA_VISIBLE_DEVICES=0,1 python train.py\n"
    )
    driver = found.host.driver
    assert (driver.module_version, driver.open_module) == ("570.124.06", True)
    assert driver.userspace_version == "570.133.07"
    assert found.env.variable("LD_LIBRARY_PATH") == "/usr/local/cuda-12.1/lib64"
    assert found.env.variable("CUDA_VISIBLE_DEVICES") == "0,1"


def test_lspci_and_docker_info() -> None:
    found = facts(
        "01:00.0 VGA compatible controller [0300]: NVIDIA Corporation GA102 [GeForce RTX 3090] "
        "[10de:2204] (rev a1)\n\tSubsystem: Gigabyte\n\tKernel driver in use: nouveau\n"
        "Server:\n Server Version: 24.0.7\n Runtimes: io.containerd.runc.v2 nvidia runc\n"
        " Default Runtime: runc\n"
    )
    (device,) = found.host.pci or ()
    assert (device.address, device.device, device.kernel_driver) == (
        "0000:01:00.0",
        "2204",
        "nouveau",
    )
    (engine,) = found.host.engines or ()
    assert (engine.version, engine.runtimes) == (
        "24.0.7",
        ("io.containerd.runc.v2", "nvidia", "runc"),
    )


def test_jetson() -> None:
    found = facts("# R35 (release), REVISION: 4.1, GCID: 33958178, BOARD: t186ref\n")
    assert found.host.jetson == "35.4.1"


def test_wrappings_are_taken_off() -> None:
    plain = "torch==2.8.0+cu128"
    for text in (
        f"> > {plain}",
        f"```\n{plain}\n```",
        f"\x1b[32m{plain}\x1b[0m",
        f"Oct 04 13:19:39 host trainer[394]: {plain}",
        f"2025-10-04T13:19:39.123456789Z stdout F {plain}",
        f"trainer-1  | {plain}",
        f"(EngineCore_0 pid=71) {plain}",
        f"[rank0]: {plain}",
        f"<details><summary>env</summary>\n{plain}\n</details>",
        plain.replace("=", "\uff1d").replace(".", "\uff0e"),
        f"a#012{plain}#012b",
    ):
        assert packages(text) == {"torch": "2.8.0+cu128"}, text
