"""Plans asked for in a line, and judged again from nothing but what they say."""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path
from typing import TYPE_CHECKING

from envcheck.engine import judge
from envcheck.matrix.loader import Matrix
from envcheck.model.environment import Environment, Framework, Package, Python
from envcheck.model.plan import Plan, Preference, Request
from envcheck.planner.machine import hypothetical
from envcheck.planner.plan import make_plan
from envcheck.planner.target import parse_target, target_of
from envcheck.probe.record import Recorded
from envcheck.probe.snapshot import take_snapshot
from envcheck.rules import all_rules

if TYPE_CHECKING:
    from envcheck.model.finding import Report
    from envcheck.model.snapshot import Snapshot

MACHINES = Path(__file__).parents[1] / "machines"
MATRIX = Matrix.shipped()


def plan(target: str, *want: str, prefer: Preference = "newest", matrix: Matrix = MATRIX) -> Plan:
    """The plan for a target in words."""
    request = Request(want=want, target=parse_target(target, matrix), prefer=prefer)
    return make_plan(matrix, request)


@functools.cache
def recorded(name: str) -> Snapshot:
    """A recorded machine's snapshot."""
    return take_snapshot(Recorded(str(MACHINES / name)), python=None, deep=False, timeout=10.0)


def plan_for(name: str, *want: str, prefer: Preference = "newest") -> Plan:
    """The plan for a recorded machine."""
    machine = recorded(name)
    request = Request(want=want, target=target_of(machine, MATRIX), prefer=prefer)
    return make_plan(MATRIX, request, machine)


def pins(made: Plan) -> dict[str, str]:
    """Package -> version of a plan's stack."""
    assert made.stack is not None
    return {pin.name: pin.version for pin in made.stack.pins}


def judged(made: Plan, machine: Snapshot | None = None) -> Report:
    """Judge a plan's stack as if it were installed, built from the stack alone.

    Where the plan leaves the driver open, it is the oldest one that the stack is said to need.
    """
    stack = made.stack
    assert stack is not None
    target = made.request.target
    if target.driver is None:
        target = dataclasses.replace(target, driver=stack.min_driver)
    base = hypothetical(MATRIX, target, machine)
    locals_ = {each.name: each for each in stack.frameworks}
    packages = tuple(
        Package(name=pin.name, version=pin.version, build="manylinux_2_28") for pin in stack.pins
    )
    frameworks = tuple(
        Framework(
            name=each.name,
            version=f"{each.version}+{each.variant}" if each.variant else each.version,
            cuda=each.cuda,
            cpu_only=each.cuda is None,
            origin="framework-index" if "+" in pins(made)[each.name] else "index",
            platform=stack.platform,
        )
        for each in locals_.values()
    )
    # What torch brings along by itself.
    brought = tuple(
        Package(name=f"nvidia-{stem}-cu{each.cuda.partition('.')[0]}", version=version)
        for each in stack.frameworks
        if each.cuda
        for stem, version in (("cudnn", each.cudnn), ("nccl", each.nccl))
        if version
    )
    env = Environment(
        python=Python(
            version=stack.python,
            tag=f"cp{stack.python.replace('.', '')}",
            platform=stack.platform,
            implementation="cpython",
        ),
        packages=tuple({each.name: each for each in (*packages, *brought)}.values()),
        frameworks=frameworks,
        libraries=(),
        shared_files=(),
        toolkits=(),
        compilers=(),
    )
    return judge(dataclasses.replace(base, env=env), MATRIX, all_rules())
