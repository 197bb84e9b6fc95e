"""The text report: every word of it, and the same words in colour."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from envcheck.report import render
from envcheck.report.view import View
from tests.cli.runner import environment
from tests.report.sample import BAD, REPORT, VIEW

EXPECTED = """\
OS                 Ubuntu 24.04.3 LTS, kernel 6.8.0-60-generic, x86_64, glibc
                   2.39
NVIDIA driver      580.159.04 (open kernel module)
GPUs               2 x NVIDIA GeForce RTX 5090 (compute capability 12.0, 80.0
                   GiB)
CUDA driver API    13.0
CUDA toolkits      13.0 at /usr/local/cuda-13.0
Frameworks         torch 2.5.1+cu121 (CUDA 12.1)
cuDNN              9.1.0 (nvidia-cudnn-cu12, used by torch)
NCCL               not found
Python             3.12.3 at ~/venv (venv, packages by pip, chosen by
                   VIRTUAL_ENV)
Container runtime  docker 28.1.1 (NVIDIA runtime); NVIDIA Container Toolkit
                   1.17.8
Judged by          tables of 2026-11-29 to 2026-11-30

error gpu-newer-than-build: torch 2.5.1+cu121 has no kernels for NVIDIA GeForce
  RTX 5090
  found     machine code for sm_50, sm_60, sm_70, sm_75, sm_80, sm_86 and sm_90,
            and no PTX
  needed    machine code for sm_120
  why       The build is older than the GPU: kernels end in `no kernel image is
            available`.
  evidence  arch list: sm_50 sm_90 (libtorch_cuda.so)
            GPU 0: 12.0
  source    Arch lists of torch wheels, https://tables.example/torch (read
            2026-11-30)
  fix       Install the build for CUDA 12.8
      ~/venv/bin/python -m pip uninstall -y torch
      ~/venv/bin/python -m pip install 'torch==2.8.0' --index-url https://wheels.example/a-rather-long-folder-name/cu128
  or        Run it in an image that has such a build
  leads to  library-drops-gpu

warning driver-branch-ended: This branch gets no more fixes
  about     driver 580.159.04
  found     branch 580
  needed    a supported branch
  why       Security fixes end with the branch.

could not tell
  nccl-version-mismatch: no copy was resolved
  cudnn-missing: torch 9 is not listed (not in the tables)
  gpu-xid: ZeroDivisionError: no (the check itself crashed: please report it)

to find out
  Ask again as root
      sudo envcheck doctor

1 error, 1 warning, 3 unknown: torch 2.5.1+cu121 has no kernels for NVIDIA GeForce RTX 5090
"""
_STYLE = re.compile(r"\x1b\[[0-9;]*m")
_FRAME = re.compile("[\u2500-\u257f]+")


def _view(width: int) -> View:
    return View(version="0.1.0", exit_code=1, width=width)


def test_the_whole_text() -> None:
    assert render("text", REPORT, VIEW) == EXPECTED


@pytest.mark.parametrize("width", [40, 80, 120])
def test_colour_adds_no_word_and_takes_none(width: int) -> None:
    plain = render("text", REPORT, _view(width))
    coloured = render("text", REPORT, _view(width), colour=True)
    assert _FRAME.sub(" ", _STYLE.sub("", coloured)).split() == plain.split()
    assert "\x1b[" in coloured


@pytest.mark.parametrize("colour", [False, True])
@pytest.mark.parametrize("width", [40, 80, 120])
def test_commands_and_addresses_are_never_broken(width: int, colour: bool) -> None:
    text = _STYLE.sub("", render("text", REPORT, _view(width), colour=colour))
    lines = [line.strip() for line in text.splitlines()]
    for fix in (*REPORT.findings[0].fix, *REPORT.ask):
        assert set(fix.commands) <= set(lines)
    assert "https://tables.example/torch" in text
    assert lines[-1] == EXPECTED.splitlines()[-1]


def test_only_what_must_be_whole_is_wider_than_a_narrow_screen() -> None:
    wide = [line for line in render("text", REPORT, _view(40)).splitlines() if len(line) > 40]
    assert [line.split()[0] for line in wide] == [
        "~/venv/bin/python",
        "~/venv/bin/python",
        "1",
    ]


@pytest.mark.parametrize("colour", [False, True])
def test_foreign_text_cannot_steer_the_terminal_or_add_lines(colour: bool) -> None:
    text = render("text", BAD, VIEW, colour=colour)
    bare = _STYLE.sub("", text) if colour else text
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\ud800-\udfff]", bare)
    assert "\\x1b[2J" in bare
    assert "[red]<script>" in bare
    # A line end inside a command stays visible inside it: nothing hidden is ever typed.
    assert [line for line in bare.splitlines() if line.strip() == HOSTILE_COMMAND]


HOSTILE_COMMAND = (
    "\\x1b[2J\\x07[red]<script>`|*_\\u202e @octocat #1\\udc80\\n\\r\\x9b0m &amp; ]]> -- \\U000e0041"
)


def test_plain_text_needs_no_rich_and_colour_falls_back_without_it() -> None:
    script = """
import sys
sys.modules["rich"] = None
sys.path.insert(0, sys.argv[1])
from tests.report.sample import REPORT, VIEW
from envcheck.report import render
assert render("text", REPORT, VIEW, colour=True) == render("text", REPORT, VIEW)
"""
    root = __file__.rsplit("/tests/", 1)[0]
    done = subprocess.run(
        [sys.executable, "-c", script, root],
        capture_output=True,
        text=True,
        env=environment(),
        cwd="/",
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
