"""`envcheck emit`: files that reproduce a lock, written as a whole or not at all."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import envcheck
from envcheck.commands.folders import overlay
from envcheck.commands.machine import this_machine
from envcheck.commands.output import emit
from envcheck.emit import TARGETS
from envcheck.emit.options import Options
from envcheck.errors import LockError, NoPlanError, UsageError
from envcheck.matrix.loader import Matrix

if TYPE_CHECKING:
    from argparse import Namespace

    from envcheck.model.plan import Lock

DEFAULT_LOCK = "envcheck.lock"


def run(args: Namespace) -> int:
    """Run the command."""
    from envcheck.commands.write_files import write_files

    folder = overlay(args.tables)
    matrix = Matrix.shipped(folder)
    if folder is not None:
        matrix.load_all()
    lock = read_or_plan(args.lock, matrix)
    module = import_module(TARGETS[args.action])
    contents: dict[str, str] = module.files(lock, matrix, options(args))
    files: dict[str, bytes] = {path: text.encode() for path, text in contents.items()}
    inside = getattr(module, "WHEEL_IN", None)
    if inside is not None:
        from envcheck.commands.own_wheel import own_wheel

        name, wheel = own_wheel()
        files[f"{inside}/{name}" if inside else name] = wheel
    needs = getattr(module, "NEEDS_IN", None)
    if needs is not None:
        from envcheck.commands.needed_wheels import needed_wheels

        files |= {f"{needs}/{name}": content for name, content in needed_wheels().items()}
    written = write_files(Path(args.output), files, force=args.force)
    lines = [
        f"{'wrote' if path in written else 'kept '} {Path(args.output) / path}"
        for path in sorted(files)
    ]
    emit("\n".join(lines) + "\n", None)
    return 0


def options(args: Namespace) -> Options:
    """What the command line says about the target; a flag that it lacks has its default."""
    import dataclasses

    given: dict[str, Any] = {}
    for field in dataclasses.fields(Options):
        value = getattr(args, field.name, None)
        if isinstance(value, list):
            value = tuple(dict.fromkeys(word for group in value for word in group))
        if value is not None:
            given[field.name] = value
    return Options(**given)


def read_or_plan(path: str | None, matrix: Matrix) -> Lock:
    """The lock of a file; where none is named or lies here, that of a plan for this machine.

    Raises:
        LockError: the file cannot be read, or is no lock.
        NoPlanError: there is no lock, and no plan fits this machine.
    """
    from envcheck.planner.lock import LARGEST, parse_lock

    place = Path(path or DEFAULT_LOCK)
    if path is None and not place.exists():
        return _planned(matrix)
    try:
        if not place.is_file():
            msg = f"{place}: no such file"
            raise UsageError(msg) if not place.exists() else LockError(f"{place}: is no file")
        # A character has at most four bytes.
        with place.open("rb") as file:
            text = file.read(4 * LARGEST + 1).decode()
    except OSError as error:
        msg = f"{place}: cannot be read: {error.strerror or error}"
        raise UsageError(msg) from error
    except UnicodeDecodeError as error:
        msg = f"{place}: not TOML: no UTF-8"
        raise LockError(msg) from error
    return parse_lock(text, str(place))


def _planned(matrix: Matrix) -> Lock:
    from envcheck.model.plan import Request
    from envcheck.planner.plan import lock_of, make_plan
    from envcheck.planner.target import target_of
    from envcheck.probe.snapshot import take_snapshot

    machine = take_snapshot(this_machine(), python=None, deep=False, timeout=10.0)
    plan = make_plan(matrix, Request(target=target_of(machine, matrix)), machine)
    if plan.stack is None:
        msg = "no plan fits this machine: 'envcheck plan' says why"
        raise NoPlanError(msg)
    return lock_of(plan, envcheck.__version__)
