"""Words of `--help`, and how they are set: the manual page of the command line."""

from __future__ import annotations

import argparse
import re
import textwrap
from typing import Any

MAIN = """\
Tells whether this machine's GPU stack fits together - NVIDIA driver, CUDA, cuDNN, NCCL, PyTorch and
what is built on it - says why not, and exactly what to type.

It reads files and asks NVIDIA's libraries in child processes. It changes nothing, sends nothing and
needs no network, no GPU and no root."""

EXIT = """\
exit status:
  0    no finding at or above --fail-on
  1    at least one such finding
  2    the command line cannot be followed
  3    nothing could be determined: neither driver nor environment could be read
  4    a table, a report or a recording is damaged
  5    no plan meets the request
  130  interrupted"""

ENVIRONMENT = """\
environment:
  NO_COLOR                 not empty: never colour
  FORCE_COLOR              not empty: colour even when standard output is no terminal
  COLUMNS                  width of the text
  VIRTUAL_ENV, CONDA_PREFIX, PATH
                           which Python environment is judged, in this order
  ENVCHECK_DRIVER_VERSION  take this as the driver's version instead of reading it
  LD_LIBRARY_PATH, CUDA_HOME, CUDA_VISIBLE_DEVICES, NVIDIA_*, NCCL_*
                           are judged, as programs on this machine would see them"""

MAIN_END = f"""\
examples:
  envcheck doctor                        judge this machine and the active environment
  envcheck doctor --python ~/venv        judge another environment
  envcheck explain driver-too-old        what a finding means
  envcheck COMMAND --help                everything about one command

{EXIT}

{ENVIRONMENT}"""

_DOCTOR = """\
Prints a table of the components, then the findings, the root cause first: what was found, what is
needed and by which source, and the commands that put it right on this distribution, with this
package manager and this GPU. What follows from a cause is named under it and not repeated. A check
that cannot tell says so. The last line sums up."""

_DOCTOR_END = f"""\
examples:
  envcheck doctor
  envcheck doctor --python ~/miniforge3/envs/train
  envcheck doctor --require-gpu --fail-on warning       in a job's prologue
  envcheck doctor --json | python3 -m json.tool
  envcheck doctor --format junit -o envcheck.xml        in CI
  envcheck doctor --machine recorded-node               a machine that somebody recorded
  envcheck doctor --ignore driver-branch-ended,gpu-throttled

{EXIT}

{ENVIRONMENT}"""

_SNAPSHOT = """\
Prints everything that envcheck reads, as JSON, without judging it. With --record, everything that
was read is also kept in a folder that 'envcheck doctor --machine DIR' judges anywhere; this is what
to attach to a bug report. Host, user, addresses, UUIDs and serial numbers are left out, the home
folder is written '~'."""

_SNAPSHOT_END = f"""\
examples:
  envcheck snapshot -o facts.json
  envcheck snapshot --record my-node && tar czf my-node.tgz my-node

{EXIT}"""

_EXPLAIN = """\
Prints the page of a finding: what is checked, why it matters, and what puts it right."""

_EXPLAIN_END = """\
examples:
  envcheck explain gpu-newer-than-build
  envcheck explain --list

exit status:
  0    printed
  2    no such id; the nearest one is suggested"""

_TABLES = """\
Everything envcheck knows about versions stands in tables: every row with its source, how it was
found out and how sure it is. 'envcheck tables ACTION --help' is about one action."""

_TABLES_EXIT = """\
exit status:
  0    done
  1    refresh: the wheels contradict a measured row
  2    the command line cannot be followed
  3    refresh: the package index cannot be reached
  4    a table is damaged; file, row and field are named"""

_TABLES_END = f"""\
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

TABLES: dict[str, tuple[str, str, str]] = {
    "list": (
        "list the tables",
        "Prints how many rows each table has, its newest version and its date.",
        _LIST_END,
    ),
    "show": (
        "print a table",
        "Prints every row with its source. In JSON a field that is not known is null.",
        _SHOW_END,
    ),
    "check": ("check tables for mistakes", _CHECK, _CHECK_END),
    "refresh": ("compare a table with the wheels", _REFRESH, _REFRESH_END),
}
"""Action of `envcheck tables` -> one-line summary, description, what stands after the flags."""

_COMPLETION = """\
Prints a script that teaches a shell the commands and flags of envcheck."""

_COMPLETION_END = """\
examples:
  eval "$(envcheck completion bash)"
  envcheck completion zsh > "${fpath[1]}/_envcheck"
  envcheck completion tcsh > ~/.envcheck.tcsh"""

COMMANDS: dict[str, tuple[str, str, str]] = {
    "doctor": ("judge a machine and say what to type", _DOCTOR, _DOCTOR_END),
    "snapshot": ("print or record the facts, without judging", _SNAPSHOT, _SNAPSHOT_END),
    "explain": ("explain a finding", _EXPLAIN, _EXPLAIN_END),
    "tables": ("list, show, check and refresh the compatibility tables", _TABLES, _TABLES_END),
    "completion": ("print a completion script for a shell", _COMPLETION, _COMPLETION_END),
}
"""Command -> one-line summary, description, what stands after the flags."""


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Keeps the layout of examples and lists, and fills paragraphs to the reader's screen."""

    def __init__(self, prog: str, **settings: Any) -> None:
        """Give flags a column that takes the longest command."""
        super().__init__(prog, max_help_position=28, **settings)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        paragraphs = (_paragraph(each, width) for each in text.split("\n\n"))
        return textwrap.indent("\n\n".join(paragraphs), indent)


def _paragraph(text: str, width: int) -> str:
    # A paragraph with indented lines is a list; prose has none.
    if "\n " not in text:
        return textwrap.fill(text, width)
    return "\n".join(_item(line, width) for line in text.split("\n"))


def _item(line: str, width: int) -> str:
    """A line of a list; what does not fit continues below the last column, or indented."""
    if len(line) <= width:
        return line
    columns = [match.end() for match in re.finditer(r"(?:^|(?<=\S)) {2,}", line)]
    aligned = bool(columns) and 4 < columns[-1] < width - 20
    column = columns[-1] if aligned else 4
    body = line[column:] if aligned else " ".join(line.split())
    head = line[:column] if aligned else "  "
    lines = textwrap.wrap(body, width - column, break_long_words=False, break_on_hyphens=False)
    return ("\n" + " " * column).join([head + lines[0], *lines[1:]])
