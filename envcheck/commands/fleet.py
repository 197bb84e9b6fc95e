"""`envcheck fleet`: many machines at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.errors import UsageError

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from envcheck.fleet.drift import Comparison
    from envcheck.fleet.model import Fleet
    from envcheck.fleet.picture import Collection
    from envcheck.fleet.reading import Read


def run(args: Namespace) -> int:
    """Run the action."""
    if args.action == "run":
        from envcheck.commands.fleet_run import run as ask

        return ask(args)
    from envcheck.commands.doctor import wanted_format
    from envcheck.commands.output import emit, say, width
    from envcheck.fleet import words
    from envcheck.fleet.render import render

    form = wanted_format(args)
    fleet = picture(args, args.paths)
    emit(render(form, fleet, width=width(), verbose=args.verbose), args.output)
    if args.output not in (None, "-"):
        say(words.status(fleet))
    return fleet.exit_code


def picture(args: Namespace, paths: Sequence[str]) -> Fleet:
    """The picture of all reports in folders, or in files.

    Raises:
        UsageError: a path is not there, or there is no report in any.
        LockError: the lock is damaged.
    """
    from pathlib import Path

    from envcheck.fleet.journal import Journal
    from envcheck.fleet.model import Absent, Damaged
    from envcheck.fleet.picture import Collection
    from envcheck.fleet.reading import Reader, report_files

    comparison = _comparison(args)
    reader, collection = Reader(), Collection()
    absent = {}
    files = []
    try:
        for path in paths:
            if Path(path).is_dir():
                absent.update({each.name: each for each in Journal(path).absent()})
        files = list(report_files(paths))
    except OSError as error:
        msg = f"cannot read {error.filename}: {error.strerror or error}"
        raise UsageError(msg) from error
    if not files and not absent:
        msg = f"no reports in {', '.join(paths)}: they are called HOST.json"
        raise UsageError(msg)
    for path, name in files:
        read = reader.read(path, name)
        if isinstance(read, Damaged):
            collection.add_damaged(read)
        elif isinstance(read, Absent):
            absent.setdefault(name, read)
        else:
            _add(collection, read, comparison, path)
    for each in absent.values():
        collection.add_absent(each)
    return collection.picture(args.fail_on, args.against)


def _add(collection: Collection, read: Read, comparison: Comparison | None, path: str) -> None:
    import dataclasses

    from envcheck.fleet.model import Damaged
    from envcheck.model.codec import CodecError

    node = read.node
    if comparison is not None:
        try:
            drift, unknown = comparison.drift(read.snapshot)
        except (CodecError, KeyError, TypeError, AttributeError) as error:
            reason = f"not a report of envcheck: {error}"
            collection.add_damaged(Damaged(path=path, reason=reason))
            return
        checks = dict.fromkeys((*node.unknown, *(["lock"] if unknown else [])))
        node = dataclasses.replace(node, drift=drift, unknown=tuple(checks))
    collection.add(node, read.fixes)


def _comparison(args: Namespace) -> Comparison | None:
    if args.against is None:
        return None
    from envcheck.commands.doctor import read_lock
    from envcheck.commands.folders import overlay
    from envcheck.fleet.drift import Comparison
    from envcheck.matrix.loader import Matrix

    return Comparison(read_lock(args.against), Matrix.shipped(overlay(args.tables)))
