"""A report with everything in it, and one whose every text is hostile."""

from __future__ import annotations

from envcheck.model.environment import Library, Toolkit
from envcheck.model.finding import Citation, Evidence, Finding, Fix, Report, Unknown
from envcheck.model.snapshot import Gap
from envcheck.report.view import Check, View
from tests.support import evolve, gpu, machine, torch

HOSTILE = "\x1b[2J\x07[red]<script>`|*_\u202e @octocat #1\udc80\n\r\x9b0m &amp; ]]> -- \U000e0041"

RTX = "NVIDIA GeForce RTX 5090"

SNAPSHOT = evolve(
    machine(gpus=(gpu(0, RTX, "12.0"), gpu(1, RTX, "12.0")), frameworks=(torch("2.5.1+cu121"),)),
    {
        "taken_at": "2026-11-30T12:00:00Z",
        "env.toolkits": (Toolkit(version="13.0", root="/usr/local/cuda-13.0", nvcc=True),),
        "env.libraries": (
            Library(
                name="cudnn",
                soname="libcudnn.so.9",
                version="9.1.0",
                path="~/venv/lib/libcudnn.so.9",
                origin="wheel",
                package="nvidia-cudnn-cu12",
                wins_for=("torch",),
            ),
        ),
        "gaps": (Gap(path="host.virtual", reason="systemd-detect-virt: not found"),),
    },
)

REPORT = Report(
    verdict="error",
    findings=(
        Finding(
            id="gpu-newer-than-build",
            severity="error",
            component="framework",
            subject="torch 2.5.1+cu121",
            title=f"torch 2.5.1+cu121 has no kernels for {RTX}",
            found="machine code for sm_50, sm_60, sm_70, sm_75, sm_80, sm_86 and sm_90, and no PTX",
            needed="machine code for sm_120",
            why="The build is older than the GPU: kernels end in `no kernel image is available`.",
            fix=(
                Fix(
                    title="Install the build for CUDA 12.8",
                    commands=(
                        "~/venv/bin/python -m pip uninstall -y torch",
                        "~/venv/bin/python -m pip install 'torch==2.8.0' --index-url"
                        " https://wheels.example/a-rather-long-folder-name/cu128",
                    ),
                ),
                Fix(title="Or run it in an image that has such a build"),
            ),
            evidence=(
                Evidence(label="arch list", value="sm_50 sm_90", via="libtorch_cuda.so"),
                Evidence(label="GPU 0", value="12.0"),
            ),
            sources=(
                Citation(
                    title="Arch lists of torch wheels",
                    url="https://tables.example/torch",
                    retrieved="2026-11-30",
                ),
            ),
            consequences=("library-drops-gpu",),
        ),
        Finding(
            id="driver-branch-ended",
            severity="warning",
            component="driver",
            subject="driver 580.159.04",
            title="This branch gets no more fixes",
            found="branch 580",
            needed="a supported branch",
            why="Security fixes end with the branch.",
        ),
    ),
    ask=(Fix(title="Ask again as root", commands=("sudo envcheck doctor",)),),
    unknown=(
        Unknown(check="nccl-version-mismatch", reason="no copy was resolved"),
        Unknown(check="cudnn-missing", reason="torch 9 is not listed", kind="newer-than-table"),
        Unknown(check="gpu-xid", reason="ZeroDivisionError: no", kind="crashed"),
    ),
    snapshot=SNAPSHOT,
    tables=(("cuda", "2026-11-30"), ("gpu", "2026-11-29")),
)

_IDS = ("no-gpu", "gpu-newer-than-build", "driver-branch-ended", "nccl-version-mismatch")
VIEW = View(
    version="0.1.0",
    exit_code=1,
    width=80,
    checks=tuple(
        Check(id=id, component="gpu", title=f"Title of {id}.", page=f"Page of {id}.", rule=id)
        for id in (*_IDS, "library-drops-gpu")
    ),
    artifact="this-machine/machine.toml",
)

BAD = Report(
    verdict="error",
    findings=(
        Finding(
            id="gpu-newer-than-build",
            severity="error",
            component="framework",
            subject=HOSTILE,
            title=HOSTILE,
            found=HOSTILE,
            needed=HOSTILE,
            why=HOSTILE,
            fix=(Fix(title=HOSTILE, commands=(HOSTILE, "```")),),
            evidence=(Evidence(label=HOSTILE, value=HOSTILE, via=HOSTILE),),
            sources=(
                Citation(title=HOSTILE, url=f"https://x.example/{HOSTILE}", retrieved=HOSTILE),
            ),
        ),
    ),
    ask=(Fix(title=HOSTILE, commands=(HOSTILE,)),),
    unknown=(Unknown(check=HOSTILE, reason=HOSTILE),),
    snapshot=evolve(
        SNAPSHOT,
        {
            "host.os.name": HOSTILE,
            "host.gpus.0.name": HOSTILE,
            "host.gpus.0.power_watts": float("nan"),
            "env.python.prefix": HOSTILE,
            "gaps": (Gap(path="host", reason=HOSTILE),),
        },
    ),
    tables=(("cuda", "2026-11-30"),),
)
