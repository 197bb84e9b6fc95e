"""Whoever listens, or has stopped listening, in whatever locale: no traceback, the same status."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.runner import environment, run_cli


@pytest.fixture(scope="module")
def status(recording: Path) -> int:
    """Exit status of an undisturbed run."""
    done = run_cli("doctor", "--machine", str(recording))
    assert done.stderr == ""
    return done.returncode


@pytest.mark.parametrize("form", ["text", "json", "markdown", "junit", "sarif"])
def test_a_reader_that_goes_away_is_no_error(recording: Path, status: int, form: str) -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        done = run_cli("doctor", "--machine", str(recording), "--format", form, stdout=write)
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (status, "")


@pytest.mark.parametrize("args", [("--help",), ("explain", "--list"), ("completion", "bash")])
def test_other_commands_survive_a_closed_pipe_too(args: tuple[str, ...]) -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        done = run_cli(*args, stdout=write)
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("closed", "kept"), [("1>&-", "stderr"), ("2>&-", "stdout"), ("0<&- 1>&- 2>&-", "stdout")]
)
def test_closed_descriptors(recording: Path, status: int, closed: str, kept: str) -> None:
    command = f'"$0" -m envcheck doctor --machine "$1" {closed}'
    done = subprocess.run(
        ["/bin/sh", "-c", command, sys.executable, str(recording)],
        capture_output=True,
        text=True,
        env=environment(),
        cwd="/",
        timeout=60,
        check=False,
    )
    assert done.returncode == status
    assert "Traceback" not in getattr(done, kept)
    if closed == "2>&-":
        assert done.stdout.startswith("OS ")


def test_a_full_disk_is_said(recording: Path) -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        done = run_cli("doctor", "--machine", str(recording), stdout=full)
    assert done.returncode == 2
    assert done.stderr.startswith("envcheck: cannot write to standard output: ")
    assert done.stderr.count("\n") == 1


def test_a_full_disk_is_no_success_for_the_help_either() -> None:
    for args in (("--help",), ("--version",)):
        with Path("/dev/full").open("w", encoding="utf-8") as full:
            done = run_cli(*args, stdout=full)
        assert done.returncode == 2
        assert "Traceback" not in done.stderr


def test_a_device_is_written_to_and_not_replaced(recording: Path, status: int) -> None:
    done = run_cli("doctor", "--machine", str(recording), "-o", os.devnull)
    assert done.returncode == status
    assert not Path(os.devnull).is_file()


@pytest.mark.parametrize(
    "changes",
    [
        {"PYTHONIOENCODING": "ascii"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"HOME": "/proc/nowhere"},
        {"HOME": None},
        {"PATH": None},
        {"PATH": ""},
        {"TERM": None},
        {"COLUMNS": "40"},
        {"COLUMNS": "nonsense"},
    ],
)
def test_poor_surroundings_change_nothing_but_the_layout(
    recording: Path, status: int, changes: dict[str, str | None]
) -> None:
    done = run_cli("doctor", "--machine", str(recording), env=environment(**changes), text=False)
    assert (done.returncode, done.stderr) == (status, b"")
    assert done.stdout.isascii()
    plain = run_cli("doctor", "--machine", str(recording)).stdout
    assert done.stdout.decode("ascii").split() == plain.split()


def test_colour_is_for_terminals_and_those_who_force_it(recording: Path) -> None:
    args = ("doctor", "--machine", str(recording))
    plain = run_cli(*args).stdout
    forced = run_cli(*args, env=environment(FORCE_COLOR="1", TERM="xterm-256color")).stdout
    assert "\x1b[" not in plain
    assert "\x1b[" in forced
    for off in (
        run_cli(*args, env=environment(FORCE_COLOR="1", NO_COLOR="1")),
        run_cli(*args, "--no-color", env=environment(FORCE_COLOR="1")),
    ):
        assert off.stdout == plain


def test_colour_in_a_locale_without_box_characters(recording: Path) -> None:
    done = run_cli(
        "doctor",
        "--machine",
        str(recording),
        env=environment(FORCE_COLOR="1", PYTHONIOENCODING="ascii", TERM="xterm"),
    )
    assert done.stderr == ""
    assert done.stdout.isascii()
    assert "\\u25" not in done.stdout


def test_a_terminal_gets_colour(recording: Path, status: int) -> None:
    leader, follower = os.openpty()
    args = [sys.executable, "-m", "envcheck", "doctor", "--machine", str(recording)]
    with subprocess.Popen(
        args, stdout=follower, stderr=follower, cwd="/", env=environment(TERM="xterm", COLUMNS=None)
    ) as child:
        os.close(follower)
        seen = b""
        while True:
            try:
                chunk = os.read(leader, 65536)
            except OSError:  # the other end is closed
                break
            if not chunk:
                break
            seen += chunk
        assert child.wait(timeout=60) == status
    os.close(leader)
    assert b"\x1b[1m" in seen
    assert b"Traceback" not in seen


def test_json_survives_any_locale(recording: Path) -> None:
    done = run_cli(
        "doctor",
        "--machine",
        str(recording),
        "--json",
        env=environment(PYTHONIOENCODING="ascii"),
    )
    assert json.loads(done.stdout)["schema_version"] == "1"
