"""Wording of findings about CUDA, cuDNN and NCCL that rest on messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.model.finding import Fix
from envcheck.rules import builds, drivers, install
from envcheck.rules.told.wording import Wording, captured, fixed

if TYPE_CHECKING:
    from envcheck.model.symptom import Symptom
    from envcheck.rules.told.heard import Heard


def _compat(heard: Heard, _symptoms: tuple[Symptom, ...]) -> tuple[Fix, ...]:
    choice = drivers.choose(heard.snapshot, heard.matrix)
    return (
        Fix(
            title="Take cuda-compat out of the way: out of LD_LIBRARY_PATH and of the loader's "
            "configuration",
            commands=(
                "ldconfig -p | grep libcuda.so",
                "sudo rm -f /etc/ld.so.conf.d/*compat*",
                "sudo ldconfig",
            ),
        ),
        Fix(title="Or use an image or a build for a CUDA release that the driver itself runs"),
        *drivers.install_driver(heard.snapshot, heard.matrix, choice),
    )


def _ptx(heard: Heard, _symptoms: tuple[Symptom, ...]) -> tuple[Fix, ...]:
    choice = drivers.choose(heard.snapshot, heard.matrix)
    return (
        *drivers.install_driver(heard.snapshot, heard.matrix, choice),
        Fix(
            title="Or use a build that has machine code for this GPU, or one from a toolkit not "
            "newer than the driver"
        ),
    )


def _framework(heard: Heard, symptoms: tuple[Symptom, ...]) -> tuple[str, str]:
    """The framework that is meant, and the extra that brings its libraries."""
    said = " ".join(each.text for each in symptoms).lower()
    names = {each.name for each in symptoms}
    if any(name.startswith("tensorflow") for name in names) or "tensorflow" in said:
        return "tensorflow", "[and-cuda]"
    if any(name.startswith("jax") for name in names):
        return "jax", "[cuda]"
    env = heard.snapshot.env
    for name, extra in (("torch", ""), ("tensorflow", "[and-cuda]"), ("jax", "[cuda]")):
        if env.framework(name) is not None:
            return name, extra
    return "torch", ""


def again(heard: Heard, symptoms: tuple[Symptom, ...]) -> tuple[Fix, ...]:
    """Install the framework that is meant again, with the libraries that it requires."""
    name, extra = _framework(heard, symptoms)
    installed = heard.snapshot.env.framework(name)
    commands = (
        builds.same_again(heard.matrix, heard.snapshot, installed, extra)
        if installed is not None
        else install.install(heard.snapshot, (f"{name}{extra}",), upgrade=True)
    )
    return (
        Fix(title=f"Install {name} with the CUDA libraries that it requires", commands=commands),
        Fix(
            title="If they are installed, see that the loader finds them and nothing older first",
            commands=("echo $LD_LIBRARY_PATH", "python -m pip list | grep -i nvidia"),
        ),
    )


_UNSET = Fix(
    title="Take the other copy off the loader's path; wheels find their own without it",
    commands=("unset LD_LIBRARY_PATH",),
)
_WHICH = Fix(
    title="See which copies there are",
    commands=("ldconfig -p | grep -e libcudart -e libcublas -e libcudnn -e libnccl",),
)


def _one_major(heard: Heard, _symptoms: tuple[Symptom, ...]) -> tuple[Fix, ...]:
    packages = tuple(
        sorted(
            each.name
            for each in heard.snapshot.env.packages or ()
            if each.name.startswith("nvidia-") and "-cu" in each.name
        )
    )
    mentioned = {
        f"nvidia-{wheel}-cu{major}"
        for wheel in heard.captures("wheel", "nvidia-wheel-mentioned")
        for major in heard.wheel_majors()
    }
    remove = packages or tuple(sorted(mentioned))
    name, extra = _framework(heard, ())
    return (
        Fix(
            title="Uninstall the wheels of both majors (they share files), then install the "
            "framework again, which brings the right ones",
            commands=(
                *(install.uninstall(heard.snapshot, remove) if remove else ()),
                *install.install(heard.snapshot, (f"{name}{extra}",), reinstall=True),
            ),
        ),
        Fix(title="Take one of the majors out of the list of requirements"),
    )


def _nvcc(heard: Heard, symptoms: tuple[Symptom, ...]) -> tuple[Fix, ...]:
    wanted = captured(symptoms, "torch")
    installed = heard.snapshot.env.framework("torch")
    wanted = wanted or (installed.cuda if installed is not None else None)
    return (
        Fix(
            title=f"Build with the toolkit of CUDA {wanted}"
            if wanted
            else "Build with the toolkit of the CUDA release that torch was built for",
            commands=(
                f"export CUDA_HOME=/usr/local/cuda-{wanted or '<release>'}",
                'export PATH="$CUDA_HOME/bin:$PATH"',
                "nvcc --version",
            ),
        ),
        Fix(title="Or install a torch build for the CUDA release of the toolkit that is there"),
    )


def _compiler(heard: Heard, symptoms: tuple[Symptom, ...]) -> tuple[Fix, ...]:
    del heard
    newest = captured(symptoms, "newest")
    if (captured(symptoms, "compiler") or "GNU") != "GNU":
        return (
            Fix(
                title="Use a version of this compiler that the toolkit accepts, or a newer "
                "CUDA toolkit"
            ),
        )
    number = newest or "<version>"
    return (
        Fix(
            title=f"Let nvcc use gcc {newest}" if newest else "Let nvcc use an older gcc",
            commands=(
                f"export CC=gcc-{number} CXX=g++-{number}",
                f'export NVCC_PREPEND_FLAGS="-ccbin g++-{number}"',
            ),
        ),
        Fix(title="Or use a CUDA toolkit that accepts this compiler"),
    )


def _triton(heard: Heard, _symptoms: tuple[Symptom, ...]) -> tuple[Fix, ...]:
    return (
        Fix(
            title="Update triton, together with its torch",
            commands=install.install(heard.snapshot, ("torch", "triton"), upgrade=True),
        ),
        Fix(
            title="Or point Triton to the ptxas of a newer toolkit",
            commands=("export TRITON_PTXAS_PATH=/usr/local/cuda/bin/ptxas",),
        ),
    )


WORDS: dict[str, Wording] = {
    "forward-compat-unsupported": Wording(
        component="cuda",
        subject="cuda-compat",
        title="cuda-compat is used where forward compatibility is not offered",
        needed="a driver that runs this CUDA release itself, or a GPU and driver branch for which "
        "cuda-compat is made",
        why="A libcuda newer than the kernel module was loaded. That works on data-center GPUs and "
        "for listed branches only.",
        roads=_compat,
    ),
    "ptx-newer-than-driver": Wording(
        component="cuda",
        subject="PTX",
        title="The driver cannot compile PTX from a toolkit newer than itself",
        needed="a driver whose CUDA is not older than the toolkit that made the PTX",
        why="Minor-version compatibility covers machine code, not PTX that the driver compiles.",
        roads=_ptx,
    ),
    "cuda-libraries-missing": Wording(
        component="cuda",
        subject="CUDA libraries",
        title="CUDA libraries that are needed are not found",
        needed="the CUDA libraries of the release that the framework was built for",
        why="They are opened when the program starts; without them it fails to import, or runs on "
        "the CPU.",
        roads=again,
        names=("library", "cupy"),
    ),
    "cuda-runtime-mismatch": Wording(
        component="cuda",
        subject="CUDA libraries",
        title="The CUDA libraries found are not of the release that the framework needs",
        needed="libraries at least as new as those that it was built with",
        why="Libraries of an older CUDA release are the ones that are installed, or found.",
        roads=again,
        names=("library",),
    ),
    "mixed-cuda-majors": Wording(
        component="cuda",
        subject="CUDA libraries",
        title="Libraries of two CUDA majors overwrite or shadow each other",
        needed="the libraries of one CUDA major",
        why="Wheels of both majors put files of the same name into one folder; the one installed "
        "last wins, and an older one lacks what the framework asks for.",
        roads=_one_major,
        names=("symbol",),
    ),
    "library-path-shadows-cuda": Wording(
        component="cuda",
        subject="CUDA libraries",
        title="Another copy of a CUDA library wins over the framework's own",
        needed="the copy that the framework was built for, first on the loader's path",
        why="LD_LIBRARY_PATH, conda or the system supplies a copy of another release, which is "
        "found first.",
        roads=fixed(_UNSET, _WHICH),
        names=("library", "symbol"),
    ),
    "library-path-shadows-cudnn": Wording(
        component="cudnn",
        subject="cuDNN",
        title="Another cuDNN wins over the framework's own",
        needed="the cuDNN that the framework was built for, first on the loader's path",
        why="LD_LIBRARY_PATH, conda or the system supplies another release, and cuDNN's parts must "
        "all be of one.",
        roads=fixed(_UNSET, _WHICH),
        names=("path",),
    ),
    "library-path-shadows-nccl": Wording(
        component="nccl",
        subject="NCCL",
        title="Another NCCL wins over the framework's own",
        needed="the NCCL that the framework was built for, first on the loader's path",
        why="An older libnccl.so.2, of the system, of conda or of another package, is found first "
        "and lacks what the framework asks for.",
        roads=fixed(_UNSET, _WHICH),
        names=("symbol",),
    ),
    "nvcc-cuda-major-mismatch": Wording(
        component="cuda",
        subject="nvcc",
        title="Extensions are built with a toolkit of another CUDA release than torch's",
        needed="a toolkit of the CUDA major that torch was built for",
        why="An extension and torch share one CUDA runtime, so both must be built for the same "
        "major release.",
        roads=_nvcc,
    ),
    "host-compiler-unsupported": Wording(
        component="cuda",
        subject="host compiler",
        title="This nvcc does not accept this host compiler",
        needed="a host compiler that this toolkit accepts",
        why="nvcc hands host code to a compiler whose headers it must understand; each toolkit has "
        "a newest version. Running what is built already is not affected.",
        roads=_compiler,
        names=("compiler",),
    ),
    "libcuda-not-linkable": Wording(
        component="cuda",
        subject="libcuda",
        title="The linker or loader does not find libcuda.so",
        needed="libcuda.so where the linker or ldconfig finds it",
        why="The driver installs libcuda.so.1; code that is compiled at run time asks for "
        "libcuda.so.",
        roads=fixed(
            Fix(title="Refresh the loader's cache", commands=("sudo ldconfig",)),
            Fix(
                title="Or put the link beside the driver's library",
                commands=(
                    "d=$(dirname $(ldconfig -p | awk '/libcuda.so.1 /{print $NF; exit}'))",
                    'sudo ln -s "$d/libcuda.so.1" "$d/libcuda.so"',
                ),
            ),
            Fix(
                title="Inside WSL, name its folder",
                commands=("export LD_LIBRARY_PATH=/usr/lib/wsl/lib:$LD_LIBRARY_PATH",),
            ),
        ),
    ),
    "ptxas-too-old-for-gpu": Wording(
        component="cuda",
        subject="ptxas",
        title="The assembler or compiler in use does not know this GPU",
        needed="a ptxas from a CUDA release that knows this GPU",
        why="Kernels that are compiled at run time, or built here, cannot be assembled for it.",
        roads=_triton,
        names=("arch", "cc"),
    ),
}
