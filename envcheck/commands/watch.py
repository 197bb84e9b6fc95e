"""`envcheck watch`: sample, average, judge, report."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from envcheck.commands.folders import overlay
from envcheck.commands.output import emit, say
from envcheck.commands.watch_report import Outcome, judged, stack_of, without_gpu
from envcheck.errors import EnvcheckError, UsageError

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable

    from envcheck.model.snapshot import Snapshot
    from envcheck.watch.sampler import Sampler
    from envcheck.watch.series import Series

DEFAULT_SECONDS = 10.0


def run(args: Namespace) -> int:
    """Run the command; with a COMMAND, the exit status is that one's."""
    _check(args)
    if args.replay is not None:
        from envcheck.watch.series import read_series

        return _report(args, read_series(args.replay), None)
    if args.watched:
        return _around_command(args)
    return _here(args)


def _check(args: Namespace) -> None:
    """Find mistakes before anything is started.

    Raises:
        UsageError: flags contradict each other, or a file cannot be written where it is wanted.
    """
    chosen = [
        name
        for name, given in (
            ("--pid", args.pid is not None),
            ("COMMAND", bool(args.watched)),
            ("--replay", args.replay is not None),
        )
        if given
    ]
    if len(chosen) > 1:
        msg = f"{' and '.join(chosen)} contradict each other"
        raise UsageError(msg)
    overlay(args.tables)
    files = {"--csv": args.csv, "--plot": args.plot, "--record": args.record, "-o": args.output}
    for flag, name in files.items():
        if name is None or (flag == "-o" and name == "-"):
            continue
        place = Path(name)
        if place.is_dir() or not os.access(place.parent, os.W_OK):
            msg = f"{flag} {name}: cannot be written"
            raise UsageError(msg)
    if args.plot is not None:
        from envcheck.watch.plot import require_matplotlib

        require_matplotlib()
    if args.pid is not None and not Path(f"/proc/{args.pid}").is_dir():
        msg = f"--pid {args.pid}: no such process"
        raise UsageError(msg)


def _here(args: Namespace) -> int:
    """Watch the machine or a process, with a live view where somebody looks."""
    from envcheck.watch.sampler import NoSamplesError, Sampler

    # Before the watching starts, so that it is not seen itself.
    stack = _stack(_python_of(args.pid))
    roots = None if args.pid is None else (args.pid,)
    try:
        sampler = Sampler(interval=args.interval, gpus=args.gpus, roots=roots)
    except NoSamplesError as error:
        return _no_gpu(args, stack, str(error))
    sampler.series.head["target"] = "machine" if args.pid is None else "process"
    until = time.monotonic() + (args.seconds or DEFAULT_SECONDS)

    def stop() -> bool:
        over = time.monotonic() >= until
        return over or (
            args.pid is not None and sampler.tree is not None and not sampler.tree.alive
        )

    try:
        series = _run_live(args, sampler, stop)
    except KeyboardInterrupt:
        sampler.close()
        series = sampler.series
    return _report(args, series, stack)


def _run_live(args: Namespace, sampler: Sampler, stop: Callable[[], bool]) -> Series:
    closing = _add_dcgm(sampler, args.interval)
    try:
        if args.json or not _on_screen():
            return sampler.run(stop)
        from envcheck.watch.live import LiveView

        with LiveView(sampler.series.head["gpus"]) as view:
            return sampler.run(stop, view.show)
    finally:
        closing()


def _on_screen() -> bool:
    try:
        return (
            sys.stdout is not None
            and sys.stderr is not None
            and sys.stdout.isatty()
            and sys.stderr.isatty()
            and os.environ.get("TERM") != "dumb"
        )
    except ValueError:
        return False


def _around_command(args: Namespace) -> int:
    """Run a command and watch it; whatever happens to the watching, its exit status wins."""
    import tempfile

    from envcheck.watch.child import CommandChild, status_of
    from envcheck.watch.steps import VARIABLE

    descriptor, steps = tempfile.mkstemp(prefix="envcheck-steps-")
    os.close(descriptor)
    try:
        try:
            child = CommandChild(args.watched, {VARIABLE: os.environ.get(VARIABLE) or steps})
        except OSError as error:
            say(f"envcheck: {args.watched[0]}: {error.strerror or error}")
            return status_of(error)
        watcher = _Watcher(args, child.pid)
        code = child.wait()
        try:
            watcher.finish(steps)
        except EnvcheckError as error:
            say(f"envcheck: {error}")
        except Exception as error:  # the command is done, and its end is what counts
            say(f"envcheck: internal error, please report it: {type(error).__name__}: {error}")
    finally:
        Path(steps).unlink(missing_ok=True)
    return code


class _Watcher:
    """Samples in a thread while the main one waits for the command."""

    def __init__(self, args: Namespace, pid: int) -> None:
        import threading

        self._args = args
        self._pid = pid
        self._python = _python_for(args.watched)
        self._over = threading.Event()
        self._series: Series | None = None
        self._why = "it ended before sampling began"
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        from envcheck.watch.sampler import NoSamplesError, Sampler

        until = time.monotonic() + (self._args.seconds or float("inf"))
        try:
            sampler = Sampler(
                interval=self._args.interval, gpus=self._args.gpus, roots=(self._pid,)
            )
        except (NoSamplesError, OSError) as error:
            self._why = str(error)
            return
        closing = _add_dcgm(sampler, self._args.interval)
        sampler.series.head["target"] = "command"
        try:
            sampler.run(lambda: self._over.is_set() or time.monotonic() >= until)
        finally:
            self._series = sampler.series
            closing()

    def finish(self, steps: str) -> None:
        """Stop and report, where it does not mix with what the command prints."""
        self._over.set()
        self._thread.join(35.0)
        stack = _stack(self._python)
        if self._series is None:
            _no_gpu(self._args, stack, self._why)
            return
        self._series.steps = _read_steps(steps)
        _report(self._args, self._series, stack, quiet=True)


def _read_steps(path: str) -> list[dict[str, object]]:
    import json

    found = []
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    for line in lines:
        try:
            data = json.loads(line)
        except ValueError:
            continue  # the program was killed while it wrote
        if isinstance(data, dict):
            data.pop("pid", None)
            found.append(data)
    return found


def _add_dcgm(sampler: Sampler, interval: float) -> Callable[[], None]:
    """Lay DCGM's counters over those of GPUs without GPM, where dcgmi is installed."""
    import shutil

    program = shutil.which("dcgmi")
    if program is None or all(each.get("gpm") for each in sampler.series.head["gpus"]):
        return lambda: None
    from envcheck.watch.dcgm import Dcgm

    dcgm = Dcgm(program, interval)
    without = {each["index"] for each in sampler.series.head["gpus"] if not each.get("gpm")}
    sampler.extra = lambda: {at: each for at, each in dcgm.latest().items() if at in without}
    return dcgm.close


def _stack(python: str | None) -> Snapshot:
    """Versions of what runs here, as the doctor finds them; watching goes on without them."""
    from envcheck.model.snapshot import Gap, Snapshot

    try:
        from envcheck.commands.machine import this_machine
        from envcheck.probe.snapshot import take_snapshot

        try:
            return take_snapshot(this_machine(), python=python)
        except UsageError:
            return take_snapshot(this_machine())
    except Exception as error:
        reason = f"versions could not be read: {type(error).__name__}: {error}"
        return Snapshot(gaps=(Gap(path="host", reason=reason),))


def _python_for(command: list[str]) -> str | None:
    """The interpreter that a command most likely runs in: itself, or the one beside it."""
    import shutil

    found = shutil.which(command[0])
    if found is None:
        return None
    if Path(found).name.startswith("python"):
        return found
    beside = Path(found).parent / "python3"
    return str(beside) if beside.exists() and beside.parent.name == "bin" else None


def _python_of(pid: int | None) -> str | None:
    """The interpreter that runs a process, as its command line names it."""
    if pid is None:
        return None
    try:
        first = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0].decode()
        program = first if first.startswith("/") else os.readlink(f"/proc/{pid}/exe")  # noqa: PTH115
    except (OSError, UnicodeDecodeError):
        return None
    return program if Path(program).name.startswith("python") else None


def _no_gpu(args: Namespace, stack: Snapshot, why: str) -> int:
    """Say why there is nothing to watch, as the doctor would."""
    say(f"envcheck: cannot watch: {why}")
    if args.watched and args.output is None:
        # The command did its work: a line beside its output is enough.
        say("  'envcheck doctor --require-gpu' says why, and what to do")
        return 0
    outcome = without_gpu(args, stack)
    _write(args, outcome, quiet=bool(args.watched))
    return outcome.code


def _report(args: Namespace, series: Series, stack: Snapshot | None, *, quiet: bool = False) -> int:
    """Judge a series and write everything that was asked for."""
    if stack is not None:
        series.head["machine"] = stack_of(stack)
        series.head["taken_at"] = stack.taken_at
        series.head.setdefault("notes", []).extend(
            each.reason for each in stack.gaps if each.path == "host"
        )
    outcome = judged(args, series)
    if args.record is not None:
        emit(series.text(), args.record)
    if args.csv is not None:
        from envcheck.watch.table import csv_text

        emit(csv_text(series), args.csv)
    if args.plot is not None:
        from envcheck.watch.plot import draw

        draw(series, args.plot, outcome.summary)
    _write(args, outcome, quiet=quiet)
    return outcome.code


def _write(args: Namespace, outcome: Outcome, *, quiet: bool) -> None:
    if args.output is not None:
        emit(outcome.text, args.output)
        if not quiet and args.output != "-":
            say(outcome.summary)
    elif quiet:
        say(outcome.text.rstrip("\n"))
    else:
        emit(outcome.text, None)
