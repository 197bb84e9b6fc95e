"""Locks to emit from: the committed examples, and random ones made of the tables' own rows."""

from __future__ import annotations

import random
from pathlib import Path

from envcheck.emit.options import IPC, PROFILES, TOOLS, Options
from envcheck.matrix.loader import Matrix
from envcheck.model.plan import Lock, Pin, PlannedFramework, Stack, Target
from envcheck.planner.lock import parse_lock

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "containers" / "examples"
MATRIX = Matrix.shipped()


def example(name: str = "torch-ubuntu24.04") -> Lock:
    """The lock of a committed example."""
    place = EXAMPLES / name / "envcheck.lock"
    return parse_lock(place.read_text(encoding="utf-8"), name)


def random_lock(number: int) -> tuple[Lock, Options]:
    """A lock with a torch build of the tables, and options; the same for the same number."""
    pick = random.Random(number)  # noqa: S311
    profile = PROFILES[number % len(PROFILES)]
    builds = [row for row in MATRIX.torch_builds if row.python]
    if profile == "ngc":  # of which there are few
        builds = [row for row in builds if row.cuda == "13.0" and "cp312" in (row.python or ())]
    build = pick.choice(builds)
    tags = [tag for tag in build.python or () if tag[3:].isdigit()]
    python = "3.12" if profile == "ngc" else f"3.{pick.choice(tags)[3:]}"
    gpu = build.cuda != "cpu"
    product = pick.choice(MATRIX.products)
    stack = Stack(
        frameworks=(
            PlannedFramework(
                name="torch",
                version=build.version,
                variant=build.variant,
                cuda=build.cuda if gpu else None,
                cudnn=build.cudnn,
                nccl=build.nccl,
            ),
        ),
        pins=(
            Pin(
                name="torch",
                version=f"{build.version}+{build.variant}",
                index=f"https://download.pytorch.org/whl/{build.variant}",
            ),
            *([Pin(name="flash-attn", version="2.8.3")] if gpu and pick.random() < 0.3 else []),
            Pin(name="transformers", version="4.57.1", extras=("torch",)),
        ),
        python=python,
        platform=build.platform,
        os=pick.choice(["ubuntu22.04", "ubuntu24.04", "debian12", "debian13", "rhel9", None]),
        min_driver=pick.choice(["525.60.13", "570.26", "580"]) if gpu else None,
    )
    target = Target(
        gpus=(product.name,) if gpu else (),
        arches=(product.cc,) if gpu else (),
        driver=pick.choice(["535", "570.124.06", None]) if gpu else None,
        platform=build.platform,
        os=stack.os,
        python=python,
        forward_compat=pick.choice([True, False, None]),
    )
    lock = Lock(
        envcheck="0.1.0",
        target=target,
        want=("torch",),
        stack=stack,
        tables=(("cuda", "2026-11-30"), ("frameworks/torch", "2026-12-01")),
    )
    options = Options(
        profile=profile,
        tools=tuple(tool for tool in TOOLS if gpu and pick.random() < 0.2),
        ipc=pick.choice(IPC),
        gpus=pick.choice(["all", "2"]),
    )
    return lock, options
