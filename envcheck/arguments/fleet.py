"""What `envcheck fleet` takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.arguments.base import Page, one_of, output, seconds, tables

if TYPE_CHECKING:
    import argparse

FORMATS = ("text", "json", "markdown", "junit", "html", "prometheus")

DESCRIPTION = """\
Many machines at once: asks the hosts of an Ansible inventory, and makes one picture of their
reports. 'envcheck fleet ACTION --help' is about one action."""

_EXIT = """\
exit status:
  0    every host was judged, and none has a finding at or above --fail-on
  1    a host has such a finding, or differs from the lock
  2    the command line cannot be followed
  3    a host could not be judged or did not answer, and none of the others fails
  4    a report or the lock is damaged, and none of the others fails
  130  interrupted; what was learned is kept"""

END = f"""\
examples:
  envcheck fleet run -i inventory.ini -o reports
  envcheck fleet report reports
  envcheck fleet report reports --format html -o fleet.html

{_EXIT}"""

_RUN = """\
Asks every host of an inventory through Ansible, judges what it answers here, and writes a report
for each into a folder. Nothing is installed on a host and nothing stays there: the probe is sent
along, and needs no more than Python 3.8. Hosts that cannot be reached or fail are named apart.

Run again with the same folder and flags, it asks only the hosts that have given no report yet.
Needs 'envcheck[fleet]': ansible-core and ansible-runner."""

_RUN_END = f"""\
examples:
  envcheck fleet run -i inventory.ini -o reports
  envcheck fleet run -i gpu1,gpu2, -o reports --smoke
  envcheck fleet run -i inventory.ini --limit 'rack3:!gpu7' --forks 50 -o reports
  envcheck fleet run -i inventory.ini --against stack.lock -o reports --again

The variable envcheck_python of a host or group names the environment to judge there, as --python
does for all. With ansible_become a host is read as root, which reads more.

{_EXIT}

environment:
  ANSIBLE_*    Ansible's own settings are obeyed, ansible.cfg in the working folder too"""

_REPORT = """\
Reads reports that 'envcheck fleet run', or 'envcheck doctor --json' on each host, has written: one
file per host, called HOST.json. Shows the hosts whose stack differs from that of most with the same
GPUs, findings by number of hosts, drift, and which drivers meet which builds of PyTorch. Damaged
reports are listed and keep no other from being read."""

_REPORT_END = f"""\
examples:
  envcheck fleet report reports
  envcheck fleet report rack1 rack2 --format html -o fleet.html
  envcheck fleet report reports --against stack.lock
  envcheck fleet report reports --format prometheus -o /var/lib/node_exporter/envcheck.prom
  envcheck fleet report reports --format junit -o fleet.xml

{_EXIT}"""

ACTIONS = {
    "run": Page("ask the hosts of an inventory and judge them", _RUN, _RUN_END),
    "report": Page("make one picture of many reports", _REPORT, _REPORT_END),
}


def add_action_arguments(made: dict[str, argparse.ArgumentParser]) -> None:
    """Add the arguments of each action."""
    _run(made["run"])
    _report(made["report"])
    for each in made.values():
        each.add_argument(
            "--against",
            metavar="LOCK",
            help="compare with a lock of 'envcheck plan'; drift makes the exit status 1",
        )
        each.add_argument(
            "--fail-on",
            type=one_of(("warning", "error", "never")),
            choices=("warning", "error", "never"),
            default="error",
            metavar="LEVEL",
            help="mildest severity that makes the exit status 1: warning, error (default) or never",
        )
        tables(each)
        each.add_argument(
            "-v", "--verbose", action="store_true", help="name every host of every list"
        )


def _run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-i",
        "--inventory",
        action="append",
        required=True,
        metavar="INVENTORY",
        help="an inventory as Ansible takes it: file, folder, or 'host1,host2,'; repeatable",
    )
    parser.add_argument(
        "-o", "--output", required=True, metavar="DIR", help="folder of the reports, made if absent"
    )
    parser.add_argument("--limit", metavar="PATTERN", help="only these hosts of the inventory")
    parser.add_argument(
        "--forks",
        type=_count,
        default=20,
        metavar="N",
        help="hosts that are asked at the same time (default: 20)",
    )
    parser.add_argument(
        "--again", action="store_true", help="ask also hosts whose report is there already"
    )
    parser.add_argument(
        "--smoke",
        action="store_true",
        help="also run a tiny training step on every GPU, as 'envcheck smoke' does",
    )
    parser.add_argument(
        "--deep", action="store_true", help="also import the frameworks and ask tools, as doctor's"
    )
    parser.add_argument(
        "--python",
        metavar="PATH",
        help="interpreter or environment to judge on the hosts (default: python3 on their PATH)",
    )
    parser.add_argument(
        "--timeout",
        type=seconds,
        default=10.0,
        metavar="S",
        help="seconds that each child process on a host gets (default: 10)",
    )
    parser.add_argument(
        "--require-gpu", action="store_true", help="a host without a GPU is an error"
    )


def _report(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths", nargs="+", metavar="DIR", help="folders of reports, or single reports"
    )
    parser.add_argument(
        "--format",
        type=one_of(FORMATS),
        choices=FORMATS,
        default=None,
        metavar="FORMAT",
        help="text (default), json, markdown, junit, html or prometheus",
    )
    parser.add_argument("--json", action="store_true", help="the same as --format json")
    output(parser, "the picture")


def _count(text: str) -> int:
    import argparse

    if text.isascii() and text.isdigit() and 0 < int(text) <= 1000:
        return int(text)
    msg = f"'{text}' is not a number between 1 and 1000"
    raise argparse.ArgumentTypeError(msg)
