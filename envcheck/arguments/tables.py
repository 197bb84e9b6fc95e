"""What `envcheck tables` takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.arguments.base import Page, tables

if TYPE_CHECKING:
    import argparse

DESCRIPTION = """\
Everything envcheck knows about versions stands in tables: every row with its source, how it was
found out and how sure it is. 'envcheck tables ACTION --help' is about one action."""

_TABLES_EXIT = """\
exit status:
  0    done
  1    refresh: the wheels contradict a measured row
  2    the command line cannot be followed
  3    refresh: the package index cannot be reached
  4    a table is damaged; file, row and field are named"""

END = f"""\
examples:
  envcheck tables list
  envcheck tables show torch
  envcheck tables show torch --json | python3 -m json.tool
  envcheck tables check --dir my-tables
  envcheck tables refresh torch

{_TABLES_EXIT}"""

_LIST_END = f"""\
examples:
  envcheck tables list
  envcheck tables list --json

{_TABLES_EXIT}"""

_SHOW_END = f"""\
examples:
  envcheck tables show gpu
  envcheck tables show torch | grep 'linux_x86_64  cu128'
  envcheck tables show torch --json

{_TABLES_EXIT}"""

_CHECK = """\
Judges types, fields, versions, order, uniqueness, dates, sources, floors that must not fall, and
references from one table to another. Everything that is wrong is listed at once, with file, row and
field. A folder that holds some of the tables only is judged together with the shipped others."""

_CHECK_END = f"""\
examples:
  envcheck tables check
  envcheck tables check --dir matrices
  envcheck tables check --tables my-tables

{_TABLES_EXIT}"""

_REFRESH = """\
Derives the rows of a table from the wheels themselves and prints what differs, as a unified diff.
Asked is the package index that pip is configured to use: one request after the other, a few per
release, and of a wheel only its directory and the small files in question. What was read is kept,
and not asked for again.

Measured rows are never changed: where the wheels contradict one, this is said. Rows that the index
no longer has are listed and stay."""

_REFRESH_END = f"""\
examples:
  envcheck tables refresh torch
  envcheck tables refresh torch --release 2.8.0 --arches
  envcheck tables refresh jax --write
  envcheck tables refresh jax --tables my-tables --write     into tables of your own
  envcheck tables refresh torch --cache pages                then, where there is no network:
  envcheck tables refresh torch --from pages

{_TABLES_EXIT}

environment:
  PIP_INDEX_URL, PIP_CERT, PIP_CONFIG_FILE and pip's files
                    which package index is asked, and which certificates are trusted
  SSL_CERT_FILE     certificates to trust
  HTTPS_PROXY, NO_PROXY
                    how to get there
  XDG_CACHE_HOME    where what was read is kept: envcheck/ below it, else below ~/.cache"""

ACTIONS = {
    "list": Page(
        "list the tables",
        "Prints how many rows each table has, its newest version and its date.",
        _LIST_END,
    ),
    "show": Page(
        "print a table",
        "Prints every row with its source. In JSON a field that is not known is null.",
        _SHOW_END,
    ),
    "check": Page("check tables for mistakes", _CHECK, _CHECK_END),
    "refresh": Page("compare a table with the wheels", _REFRESH, _REFRESH_END),
}


def add_action_arguments(made: dict[str, argparse.ArgumentParser]) -> None:
    """Add the arguments of each action."""
    made["show"].add_argument("name", metavar="NAME", help="a table, as the list names it")
    made["refresh"].add_argument(
        "name", metavar="NAME", help="torch, tensorflow, jax, libraries, cudnn, nccl"
    )
    for name in ("list", "show"):
        made[name].add_argument("--json", action="store_true", help="print JSON")
    made["check"].add_argument("--dir", metavar="DIR", help="check the tables in a folder")
    _refresh(made["refresh"])
    for each in made.values():
        tables(each)


def _refresh(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--write", action="store_true", help="also change the file")
    parser.add_argument(
        "--release",
        action="append",
        default=[],
        metavar="VERSION",
        help="read this release only; repeatable (default: all from the oldest listed one on)",
    )
    parser.add_argument(
        "--arches",
        action="store_true",
        help="also read which GPUs torch was compiled for: some ten requests more a wheel",
    )
    parser.add_argument(
        "--index-url",
        metavar="URL",
        help="package index (default: the one that pip is configured to use)",
    )
    parser.add_argument(
        "--cache",
        metavar="DIR",
        help="keep what was read in this folder (default: below $XDG_CACHE_HOME)",
    )
    parser.add_argument(
        "--from",
        dest="saved",
        metavar="DIR",
        help="read from a folder that --cache filled, without any network",
    )
