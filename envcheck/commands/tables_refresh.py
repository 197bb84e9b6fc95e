"""`envcheck tables refresh`: a table against the wheels of the configured package index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from envcheck.commands.folders import overlay
from envcheck.commands.output import emit, say, today, width
from envcheck.commands.tables import table_name
from envcheck.errors import UsageError
from envcheck.matrix.loader import Matrix
from envcheck.paths import data_dir
from envcheck.refresh import TABLES, merge, reader, toml_rows
from envcheck.refresh.derived import Scope
from envcheck.refresh.store import Store, default_cache
from envcheck.refresh.wheel_index import WheelIndex

if TYPE_CHECKING:
    from argparse import Namespace
    from pathlib import Path

    from envcheck.refresh.client import Client
    from envcheck.refresh.derived import Derived


def run(args: Namespace) -> int:
    """Print the difference as a unified diff, and write it when asked to.

    Returns:
        0, or 1 when the wheels contradict a measured row, which is never changed.
    """
    mine = overlay(args.tables)
    matrix = Matrix.shipped(mine)
    name = table_name(args.name, matrix)
    if name not in TABLES:
        names = ", ".join(each.rpartition("/")[2] for each in TABLES)
        msg = f"{args.name} does not follow from wheels: choose from {names}"
        raise UsageError(msg)
    target = _target(name, mine, write=args.write)
    before, own = _own(target, name, matrix)
    index, client = _index(args)
    day = today()
    scope = Scope(
        table=matrix.table(name),
        cuda_majors=tuple(row.cuda_major for row in matrix.minor_floors),
        releases=tuple(args.release),
        arches=args.arches,
    )
    derive, listed = reader(name)
    try:
        derived = derive(index, scope)
    finally:
        _progress("")
    outcome = merge.compare(derived, scope, listed, day)
    after = before
    if outcome.changes:
        comment = toml_rows.head_comment(before)
        after = toml_rows.dump(merge.applied(own, outcome, day), comment)
    emit(merge.difference(before, after, name), None)
    if args.write and after != before:
        _write(target, name, after)
    _say(name, derived, outcome, client)
    _say_missing(name, scope, derived)
    return 1 if outcome.contradicted else 0


def _target(name: str, mine: Path | None, *, write: bool) -> Path:
    """The file that holds the table, or is to hold it.

    Raises:
        UsageError: it is part of an installation, which is not for us to change.
    """
    if mine is not None:
        return mine / f"{name}.toml"
    if write and (data_dir("tables") / f"{name}.json").is_file():
        msg = (
            "an installed envcheck does not change its own tables: give --tables DIR, a folder of"
            " yours that is laid over them"
        )
        raise UsageError(msg)
    return data_dir("matrices") / f"{name}.toml"


def _own(target: Path, name: str, matrix: Matrix) -> tuple[str, dict[str, Any]]:
    """Text and content of the file; content with a head only for one that is not there yet.

    Raises:
        UsageError: writing it anew would lose something.
    """
    if not target.is_file():
        return "", {"schema": 1, "name": name, "date": matrix.date(name) or today()}
    from envcheck.matrix.validate import parsed

    table = parsed(target, name)
    text = target.read_text(encoding="utf-8")
    inner = toml_rows.inner_comments(text)
    if inner:
        msg = (
            f"{target}: line {inner[0]}: a comment below the head would be lost; move it to the"
            " head, or into the note of a row"
        )
        raise UsageError(msg)
    return text, table


def _index(args: Namespace) -> tuple[WheelIndex, Client | None]:
    """Saved pages, else the index that was named, else the one that pip is configured to use."""
    from pathlib import Path

    if args.saved is not None:
        if args.cache is not None or args.index_url is not None:
            msg = "--from reads saved pages only: give it without --cache and --index-url"
            raise UsageError(msg)
        folder = overlay(args.saved, "--from")
        return WheelIndex(Store(folder or Path(args.saved))), None
    from envcheck.refresh.client import Client
    from envcheck.refresh.settings import IndexSettings, configured

    if args.index_url is None:
        settings = configured()
    else:
        import os

        settings = IndexSettings(url=args.index_url, ca_file=os.environ.get("PIP_CERT") or None)
    client = Client(index=settings.url, ca_file=settings.ca_file)
    cache = default_cache(settings.url) if args.cache is None else Path(args.cache)
    urls = (settings.url, *settings.extra)
    return WheelIndex(Store(cache), client, urls, _progress), client


def _progress(name: str) -> None:
    """Name what is being fetched on the last line of a terminal, in place of the one before."""
    import sys

    from envcheck.report.foreign import clean

    if sys.stderr is not None and sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{clean(name)[: width() - 1]}" if name else "\r\x1b[K")
        sys.stderr.flush()


def _write(target: Path, name: str, text: str) -> None:
    """Replace the file, once the new text has proved to be a sound table."""
    import tempfile
    from pathlib import Path

    from envcheck.matrix.validate import parsed

    with tempfile.TemporaryDirectory() as folder:
        draft = Path(folder) / "draft.toml"
        draft.write_text(text, encoding="utf-8")
        parsed(draft, name)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        msg = f"cannot write {target}: {error.strerror or error}"
        raise UsageError(msg) from error
    emit(text, str(target))
    say(f"wrote {target}")


def _say(name: str, derived: Derived, outcome: merge.Outcome, client: Client | None) -> None:
    """On standard error: what the diff cannot say."""
    for text in outcome.contradicted:
        say(f"contradicted, left as measured: {text}")
    for text in outcome.vanished:
        say(f"no longer on the index, left as it is: {text}")
    for text in derived.notes:
        say(text)
    if derived.unread:
        left_out = (f"{release} ({', '.join(what)})" for release, what in derived.unread.items())
        say(f"could not be read: {', '.join(text.strip() for text in left_out)}")
        say(f"  {derived.reason}")
    asked = "" if client is None else f", {client.requests} requests"
    rows = len(derived.rows)
    say(f"{name}: {rows} rows derived, {len(outcome.changes)} to be changed or added{asked}")


def _say_missing(name: str, scope: Scope, derived: Derived) -> None:
    """Releases that were asked for by name and of which nothing was found."""
    known = {str(value) for row in derived.rows for value in row.values.values()}
    for release in scope.releases:
        if release not in known and release not in derived.unread:
            say(f"{name}: no release {release} on the index, or one older than the table")
