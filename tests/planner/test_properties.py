"""What holds for every plan, whatever is asked for."""

from __future__ import annotations

import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from envcheck.engine import judge
from envcheck.matrix.loader import Matrix
from envcheck.model.plan import Preference, Request
from envcheck.planner.bundle import Bundle, Conflict, environment, share
from envcheck.planner.lock import lock_text, parse_lock
from envcheck.planner.machine import hypothetical
from envcheck.planner.options import options
from envcheck.planner.plan import lock_of, make_plan
from envcheck.planner.preference import option_key
from envcheck.planner.target import parse_target, target_of
from envcheck.rules import all_rules
from tests.planner.asking import MACHINES, MATRIX, judged, recorded

SLOWEST = 1.0
"""Seconds of processor time that a plan may take."""
NAMES = sorted(path.name for path in MACHINES.iterdir() if (path / "machine.toml").is_file())
GPUS = ("RTX 5090", "4x H100", "V100", "GTX 1080 Ti", "A100", "T4", "L40S", "GH200", "sm_103", "")
DRIVERS = (
    "",
    "driver 450",
    "driver 470",
    "driver 535",
    "driver 570",
    "driver 580.95.05",
    "cuda 12.4",
)
SYSTEMS = ("", "ubuntu 20.04", "debian 12", "rhel 8")
WANTS = (
    "torch",
    "torch>=2.6",
    "torch<2.5",
    "tensorflow",
    "jax",
    "jax<0.5",
    "torchvision",
    "deepspeed",
)
PREFERENCES: tuple[Preference, ...] = ("newest", "lts", "oldest-driver")

targets = st.builds(
    lambda *parts: ", ".join(filter(None, parts)),
    st.sampled_from(GPUS),
    st.sampled_from(DRIVERS),
    st.sampled_from(("", "python 3.9", "python 3.10", "python 3.12", "python 3.13")),
    st.sampled_from(SYSTEMS),
)
wanted = st.lists(
    st.sampled_from(WANTS), max_size=3, unique_by=lambda line: line.split("<")[0].split(">")[0]
)
steady = settings(
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.parametrize("prefer", PREFERENCES)
@pytest.mark.parametrize("name", NAMES)
def test_a_recorded_machine_gets_a_stack_without_errors(name: str, prefer: Preference) -> None:
    machine = recorded(name)
    request = Request(want=("torch",), target=target_of(machine, MATRIX), prefer=prefer)
    made = make_plan(MATRIX, request, machine)
    report = judged(made, machine)
    assert [each for each in report.findings if each.severity == "error"] == []


@settings(steady, max_examples=100)
@given(target=targets, want=wanted, prefer=st.sampled_from(PREFERENCES))
def test_a_plan_has_no_errors_is_quick_and_always_the_same(
    target: str, want: list[str], prefer: Preference
) -> None:
    request = Request(want=tuple(want), target=parse_target(target, MATRIX), prefer=prefer)
    fresh = Matrix.shipped()
    started = time.process_time()
    made = make_plan(fresh, request)
    assert time.process_time() - started < SLOWEST
    again = make_plan(MATRIX, request)
    # The dates are of the tables that were read, and the other matrix has read more.
    assert (made.stack, made.install, made.rejections, made.unlocks) == (
        again.stack,
        again.install,
        again.rejections,
        again.unlocks,
    )
    if made.stack is None:
        assert made.rejections
        return
    lock = lock_of(made, "0.1.0")
    assert parse_lock(lock_text(lock), "lock") == lock
    report = judged(made)
    assert [each for each in report.findings if each.severity == "error"] == []


@settings(steady, max_examples=12)
@given(
    target=targets,
    name=st.sampled_from(("torch", "tensorflow", "jax")),
    prefer=st.sampled_from(PREFERENCES),
)
def test_every_better_build_is_refused_by_a_rule(
    target: str, name: str, prefer: Preference
) -> None:
    request = Request(want=(name,), target=parse_target(target, MATRIX), prefer=prefer)
    made = make_plan(MATRIX, request)
    key = option_key(MATRIX, prefer, request.target.arches)
    base = hypothetical(MATRIX, request.target)
    gpu = bool(request.target.arches or request.target.driver)
    ordered = sorted(options(MATRIX, name, request.target.platform, gpu=gpu), key=key)
    chosen = made.stack.frameworks[0] if made.stack is not None else None
    refused_alike: dict[object, bool] = {}
    for option in ordered:
        if chosen is not None and (option.version, option.planned.variant, option.cuda) == (
            chosen.version,
            chosen.variant,
            chosen.cuda,
        ):
            break
        python = request.target.python
        if option.weak or (python is not None and python not in option.pythons):
            continue
        alike = (
            option.cuda,
            option.framework.arches,
            getattr(option.row, "arches", None),
            getattr(option.row, "glibc", None),
            bool(option.pins[0].extras),
        )
        if alike not in refused_alike:
            shared = share(MATRIX, base, (option,))
            assert not isinstance(shared, Conflict)
            bundle = Bundle(options=(option,), nvidia=shared)
            snapshot = environment(base, bundle, python or option.pythons[-1])
            report = judge(snapshot, MATRIX, all_rules())
            errors = any(each.severity == "error" for each in report.findings)
            unlisted = bool(report.unknown)
            by_host = made.stack is None and made.rejections[0].stack.startswith("every stack")
            no_extra = gpu and name == "tensorflow" and not option.pins[0].extras
            refused_alike[alike] = errors or unlisted or by_host or no_extra
        assert refused_alike[alike], f"{option.label} is better than {chosen} and not refused"
    else:
        assert chosen is None
