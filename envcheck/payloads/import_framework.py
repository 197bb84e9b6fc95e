"""Imports one framework and says what it really loaded; prints one JSON line. Run as a file.

Only for `--deep`: it costs seconds and hundreds of megabytes, and it may crash, which is why it has
a process of its own.
"""

import json
import re
import sys

MARKER = "envcheck-json:"
CUDA_LIBRARY = re.compile(
    r"/lib(cudart|cublas|cublasLt|cudnn\w*|nccl|cufft|curand|cusolver|cusparse|cusparseLt|nvrtc|cuda)"
    r"(-[0-9a-f]{8})?\.so[.\d]*$"
)


def asked(question):
    """An answer, None when the framework refuses: that it was imported is not less true for it."""
    try:
        return question()
    except Exception:
        return None


def torch_facts(torch):
    """What torch says of its build and its GPUs."""
    version, facts = str(torch.__version__), {}
    if torch.version.cuda:
        facts["arches"] = asked(
            lambda: list(torch.cuda.get_arch_list()) or torch._C._cuda_getArchFlags().split()
        )
        facts["gpu_available"] = asked(lambda: bool(torch.cuda.is_available()))
        facts["versions"] = {
            "cudnn": asked(torch.backends.cudnn.version),
            "nccl": asked(lambda: list(torch.cuda.nccl.version())),
        }
    return dict(facts, version=version)


def jax_facts(jax):
    """What jax says of its devices; it must not take the GPU's memory for that."""
    return {
        "version": jax.__version__,
        "gpu_available": asked(
            lambda: any(each.platform in ("gpu", "cuda") for each in jax.devices())
        ),
    }


def tensorflow_facts(tensorflow):
    """What TensorFlow says of its build and its GPUs."""
    facts = {"version": tensorflow.__version__}
    facts["build"] = {
        name: str(value) for name, value in tensorflow.sysconfig.get_build_info().items()
    }
    facts["gpu_available"] = asked(lambda: bool(tensorflow.config.list_physical_devices("GPU")))
    return facts


def loaded():
    """CUDA libraries in this process's memory map."""
    found = {}
    try:
        with open("/proc/self/maps") as maps:
            for line in maps:
                path = line.split(None, 5)[-1].strip()
                match = CUDA_LIBRARY.search(path)
                if match:
                    found[path] = match.group(1)
    except OSError:
        pass
    return [{"name": name, "path": path} for path, name in sorted(found.items())]


def main(name):
    """Import `name` and describe it."""
    import os

    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [each for each in sys.path if each not in ("", here)]
    describe = {"torch": torch_facts, "jax": jax_facts, "tensorflow": tensorflow_facts}[name]
    answer = {}
    try:
        answer = describe(__import__(name))
    except Exception as error:
        answer["error"] = "%s: %s" % (type(error).__name__, error)
    answer["loaded"] = loaded()
    print("\n" + MARKER + json.dumps(answer))


if __name__ == "__main__":
    main(sys.argv[1])
