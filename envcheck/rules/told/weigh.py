"""Which finding each message stands for, in the circumstances of its snapshot."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.rules.told import containers, frameworks, libraries, machine

if TYPE_CHECKING:
    from collections.abc import Callable

    from envcheck.matrix.schema import SymptomRow
    from envcheck.model.symptom import Symptom
    from envcheck.rules.told.heard import Heard

WEIGHING: dict[str, Callable[[Heard, Symptom], str | None]] = {
    "acs-redirect": machine.exposed,
    "arch-not-in-build": frameworks.arch_refused,
    "bf16-not-supported": frameworks.bf16,
    "bitsandbytes-without-gpu": frameworks.bitsandbytes,
    "bootstrap-virtual-interface": libraries.virtual_interface,
    "capabilities-without-compute": containers.capabilities,
    "container-cli-file-exists": containers.file_exists,
    "container-cli-no-library": machine.absent_driver,
    "container-cli-nvml": containers.hook_failed,
    "container-cli-request-failed": containers.hook_silent,
    "container-gpu-unsupported": frameworks.image_gpu,
    "cuda-init-failed": machine.no_device,
    "cuda-initialization-error": machine.initialization_error,
    "cuda-library-absent": libraries.library_absent,
    "cuda-library-symbol": libraries.cuda_symbol,
    "cuda-os-call-failed": machine.unknown_error,
    "cuda-unknown-error": machine.unknown_error,
    "cudnn-dnn-absent": libraries.cudnn_silent,
    "cudnn-found-older": libraries.cudnn_older,
    "cudnn-sublibrary-mismatch": libraries.cudnn_parts,
    "cudnn-symbol": libraries.cudnn_symbol,
    "cuinit-no-device": machine.no_device,
    "device-count-assert": machine.device_count,
    "device-count-out-of-memory": machine.unknown_error,
    "device-file-refused": containers.nvml_refused,
    "device-function-invalid": frameworks.no_kernel,
    "devices-busy": machine.devices_busy,
    "dkms-build-failed": machine.build_failed,
    "driver-found-no-gpu": machine.nothing_found,
    "driver-symbol-missing": libraries.insufficient,
    "driver-combination-unsupported": machine.driver_combination,
    "driver-insufficient": libraries.insufficient,
    "duplicate-gpu": machine.duplicate,
    "extension-op-not-built": frameworks.not_built,
    "fabric-manager-failed": machine.fabric_manager,
    "forward-compat-refused": machine.compat_refused,
    "ggml-arch-absent": frameworks.ggml_arch,
    "gpu-handle-unknown": machine.handle_unknown,
    "gpu-ignored-by-driver": machine.ignored_gpu,
    "gpu-link-down": machine.link_down,
    "gpu-probe-failed": machine.probe_failed,
    "invalid-device-ordinal": machine.device_count,
    "jax-cpu-fallback": frameworks.jax_on_cpu,
    "jax-cudnn-older": libraries.jax_cudnn,
    "jax-cudnn-outdated": libraries.jax_cudnn,
    "jax-library-older": libraries.jax_library,
    "jax-library-outdated": libraries.jax_library,
    "libcuda-absent": machine.absent_driver,
    "library-needs-newer-gpu": frameworks.newer_gpu_asked,
    "library-load-failed": libraries.load_failed,
    "library-without-cuda": frameworks.cpu_build,
    "memory-holders": machine.memory_held,
    "memory-startup-short": machine.memory_short,
    "module-signature-refused": machine.signature_refused,
    "nccl-connect-failed": libraries.connect_failed,
    "nccl-cuda-error": libraries.nccl_unexplained,
    "nccl-iommu-advice": machine.exposed,
    "nccl-symbol": libraries.nccl_symbol,
    "nccl-system-error": libraries.nccl_unexplained,
    "no-kernel-image": frameworks.no_kernel,
    "nouveau-bound": machine.nouveau,
    "numpy-unavailable-to-torch": frameworks.numpy_unavailable,
    "nvcc-absent": libraries.no_nvcc,
    "nvcc-arch-unsupported": frameworks.nvcc_arch,
    "nvrtc-arch-unknown": frameworks.nvrtc_arch,
    "nvidia-smi-absent": machine.absent_driver,
    "nvml-driver-not-loaded": machine.not_loaded,
    "nvml-library-absent": machine.absent_driver,
    "nvml-no-permission": containers.nvml_refused,
    "nvml-unknown-error": containers.nvml_unknown,
    "onnx-library-absent": libraries.provider_library,
    "onnx-provider-failed": libraries.provider_failed,
    "onnx-provider-unavailable": libraries.provider_unavailable,
    "onnx-providers-listed": libraries.providers_listed,
    "p2p-disable-helps": machine.without_p2p_well,
    "p2p-not-supported": libraries.peer_access,
    "path-unset-helps": libraries.path_blamed,
    "pip-no-candidate": frameworks.no_candidate,
    "pip-no-match": frameworks.no_candidate,
    "proc-driver-absent": machine.proc_absent,
    "ptx-invalid": libraries.invalid_ptx,
    "smi-no-communication": machine.not_loaded,
    "smi-no-devices": machine.no_devices_listed,
    "smi-without-cuda-version": containers.no_cuda_version,
    "tensorflow-libraries-absent": libraries.tensorflow_libraries,
    "tensorflow-library-absent": libraries.tensorflow_library,
    "tensorflow-no-driver": machine.no_cudart,
    "toolkit-runtime-failed": machine.runtime_failed,
    "torch-capability-range": frameworks.capability_range,
    "torch-code-list": frameworks.code_list,
    "torch-library-absent": frameworks.torch_library,
    "torch-no-driver": machine.absent_driver,
    "torch-no-gpus": machine.no_device,
    "torch-nvml-init": machine.torch_nvml,
    "torch-symbol": frameworks.torch_symbol,
    "torch-without-cuda": frameworks.cpu_build,
    "uvm-file-absent": machine.uvm_absent,
    "windows-dependency-absent": libraries.dll_absent,
    "xid": machine.xid,
}
"""How messages are weighed that do not always mean the same; others mean what their row says."""


def meaning(heard: Heard, symptom: Symptom, row: SymptomRow) -> str | None:
    """The finding that a message stands for here.

    Returns:
        An id of the catalogue; `none` when it is no fault of the environment; None when the text
        does not decide it.
    """
    weighing = WEIGHING.get(row.name)
    return weighing(heard, symptom) if weighing is not None else row.finding
