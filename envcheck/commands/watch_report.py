"""From a series to a judged report."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import envcheck
from envcheck.commands.checks import checks
from envcheck.commands.folders import overlay
from envcheck.commands.output import wants_colour, width
from envcheck.engine import exit_code, judge
from envcheck.errors import RecordingError, UndeterminedError
from envcheck.matrix.loader import Matrix
from envcheck.model.base import model
from envcheck.model.codec import CodecError, decode, encode
from envcheck.model.environment import Environment
from envcheck.model.finding import Fix
from envcheck.model.host import Driver, Gpu, Host
from envcheck.model.snapshot import Snapshot
from envcheck.report import render
from envcheck.report.describe import status
from envcheck.report.view import View

if TYPE_CHECKING:
    from argparse import Namespace

    from envcheck.model.activity import Activity, GpuActivity
    from envcheck.model.finding import Report
    from envcheck.rules.base import Rule
    from envcheck.watch.series import Series


@model
class Outcome:
    """A report, ready to be written."""

    text: str
    summary: str
    """Its last line."""
    code: int


def judged(args: Namespace, series: Series) -> Outcome:
    """Average and judge a series.

    Args:
        args: the command's arguments.
        series: what was sampled, with what ran on it in its head.

    Raises:
        RecordingError: the head or a sample of a recorded series is damaged.
    """
    from envcheck.rules.activity import ACTIVITY_RULES
    from envcheck.rules.gpu.gpu_throttled import gpu_throttled
    from envcheck.watch.analysis import analyse

    matrix = Matrix.shipped(overlay(args.tables))
    try:
        machine = decode(Snapshot, series.head.get("machine") or {})
        activity = analyse(series)
    except (CodecError, KeyError, TypeError, ValueError, AttributeError) as error:
        msg = f"{args.replay or 'the series'}: damaged: {error}"
        raise RecordingError(msg) from error
    snapshot = _with_activity(machine, activity, matrix)
    if args.replay is not None:
        snapshot = dataclasses.replace(snapshot, source="recorded:watch")
    rules = (gpu_throttled, *ACTIVITY_RULES)
    report = judge(snapshot, matrix, rules)
    if report.ask:
        longer = Fix(
            title="Watch for longer, while the program works",
            commands=("envcheck watch --seconds 60",),
        )
        report = dataclasses.replace(report, ask=(longer,))
    return _outcome(args, report, rules, exit_code(report, args.fail_on))


def without_gpu(args: Namespace, machine: Snapshot) -> Outcome:
    """Why there is no GPU to watch, judged as `doctor --require-gpu` does."""
    from envcheck.rules.container import CONTAINER_RULES
    from envcheck.rules.driver import DRIVER_RULES
    from envcheck.rules.gpu import GPU_RULES

    rules = (*DRIVER_RULES, *GPU_RULES, *CONTAINER_RULES)
    report = judge(machine, Matrix.shipped(overlay(args.tables)), rules, require_gpu=True)
    code = exit_code(report, args.fail_on, require_gpu=True)
    return _outcome(args, report, rules, code or UndeterminedError.exit_code)


def _outcome(args: Namespace, report: Report, rules: tuple[Rule, ...], code: int) -> Outcome:
    form = "json" if args.json else "text"
    path = args.output
    view = View(
        version=envcheck.__version__,
        exit_code=code,
        fail_on=args.fail_on,
        checks=checks(rules),
        width=width(),
        verbose=args.verbose,
    )
    # With a command the report goes to standard error, where colour would be guessed at.
    refused = args.no_color or bool(args.watched)
    last = status(report, code)
    return Outcome(
        text=render(form, report, view, colour=wants_colour(refused=refused, path=path)),
        summary=f"{last.word} {last.text}",
        code=code,
    )


def stack_of(snapshot: Snapshot) -> dict[str, Any]:
    """The part of a snapshot that says what ran, as plain data without what is not known."""
    host, driver = snapshot.host, snapshot.host.driver
    kept = Snapshot(
        source=snapshot.source,
        taken_at=snapshot.taken_at,
        envcheck=snapshot.envcheck,
        host=Host(
            os=host.os,
            driver=Driver(version=driver.version, cuda=driver.cuda, installed=driver.installed),
            gpus=None
            if host.gpus is None
            else tuple(dataclasses.replace(each, processes=None) for each in host.gpus),
            tools=host.tools,
        ),
        env=Environment(frameworks=snapshot.env.frameworks),
    )
    plain: dict[str, Any] = _known(encode(kept))
    return plain


def _known(data: Any) -> Any:
    if isinstance(data, dict):
        found = {name: _known(each) for name, each in data.items()}
        return {name: each for name, each in found.items() if each not in (None, {}, [])}
    return [_known(each) for each in data] if isinstance(data, list) else data


def _with_activity(machine: Snapshot, activity: Activity, matrix: Matrix) -> Snapshot:
    """The machine as it was over the window, in place of one moment before it."""
    from envcheck.rules.activity.figures import Limits

    before = {each.index: each for each in machine.host.gpus or ()}
    enough = Limits(matrix).share("throttled-time")
    gpus = tuple(
        _over_window(before.get(each.index) or Gpu(index=each.index, name=each.name), each, enough)
        for each in activity.gpus
    )
    host = dataclasses.replace(machine.host, gpus=gpus)
    return dataclasses.replace(machine, host=host, activity=activity)


def _over_window(gpu: Gpu, activity: GpuActivity, enough: float) -> Gpu:
    heat, power = activity.temperature_c, activity.power_watts
    return dataclasses.replace(
        gpu,
        arch=gpu.arch or activity.arch,
        memory_total_bytes=gpu.memory_total_bytes or activity.memory_total_bytes,
        throttle_reasons=tuple(each.name for each in activity.throttle if each.share >= enough),
        temperature_c=round(heat.peak) if heat is not None else None,
        power_watts=power.mean if power is not None else None,
        power_limit_watts=activity.power_limit_watts,
        utilization_percent=round(activity.utilization.mean) if activity.utilization else None,
    )
