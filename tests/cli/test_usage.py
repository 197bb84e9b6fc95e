"""What cannot be followed is said in one line, with what was probably meant, and ends with 2."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import envcheck
from tests.cli.runner import environment, run_cli


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("docter",), "no command 'docter': did you mean 'doctor'?"),
        (("--doctor",), "unexpected argument '--doctor'"),
        ((), "no command given: try 'envcheck doctor'"),
        (("doctor", "--jsn"), "unexpected argument '--jsn': did you mean '--json'?"),
        (
            ("doctor", "--requir-gpu"),
            "unexpected argument '--requir-gpu': did you mean '--require-gpu'?",
        ),
        (
            ("doctor", "--timeouts=3"),
            "unexpected argument '--timeouts=3': did you mean '--timeout'?",
        ),
        (("doctor", "torch"), "unexpected argument 'torch'"),
        (("plan", "torch"), "unexpected argument 'torch': did you mean '--want torch'?"),
        (("plan", "RTX 4090"), "unexpected argument 'RTX 4090': did you mean '--target RTX 4090'?"),
        (
            ("plan", "--os", "ubunto24.04"),
            "--os: 'ubunto24.04' is not known: did you mean 'ubuntu24.04'?",
        ),
        (
            ("plan", "--prefer", "newst"),
            "argument --prefer: 'newst' is not known: did you mean 'newest'?",
        ),
        (("emit", "dockerfil"), "no action 'dockerfil': did you mean 'dockerfile'?"),
        (
            ("emit", "dockerfile", "--profle", "ngc"),
            "unexpected argument '--profle': did you mean '--profile'?",
        ),
        (("image", "chek"), "no action 'chek': did you mean 'check'?"),
        (("fleet", "rport"), "no action 'rport': did you mean 'report'?"),
        (
            ("fleet", "run", "--inventry", "hosts"),
            "unexpected argument '--inventry': did you mean '--inventory'?",
        ),
        (
            ("smoke", "--device", "gpu"),
            "argument --device: 'gpu' is not known: did you mean 'cuda'?",
        ),
        (
            ("smoke", "--framework", "pytorch"),
            "argument --framework: 'pytorch' is not known: did you mean 'torch'?",
        ),
        (("watch", "--pdi", "3"), "unexpected argument '--pdi': did you mean '--pid'?"),
        (("watch", "--pid", "99999999"), "--pid 99999999: no such process"),
        (
            ("doctor", "--format", "markdwon"),
            "argument --format: 'markdwon' is not known: did you mean 'markdown'?",
        ),
        (
            ("doctor", "--fail-on", "info"),
            "argument --fail-on: 'info' is not known: choose from warning, error, never",
        ),
        (
            ("doctor", "--timeout", "0"),
            "argument --timeout: '0' is not a number of seconds between 0 and 86400",
        ),
        (
            ("doctor", "--timeout", "nan"),
            "argument --timeout: 'nan' is not a number of seconds between 0 and 86400",
        ),
        (
            ("doctor", "--select", "driver-to-old"),
            "--select: no finding 'driver-to-old': did you mean 'driver-too-old'?",
        ),
        (
            ("doctor", "--ignore", "zzzz"),
            "--ignore: no finding 'zzzz': see 'envcheck explain --list'",
        ),
        (
            ("doctor", "--select", "no-gpu", "--ignore", "no-gpu"),
            "--select and --ignore leave nothing to check",
        ),
        (("doctor", "--tables", "/nowhere"), "--tables /nowhere: no such folder"),
        (("explain", "no-gpus"), "no finding 'no-gpus': did you mean 'no-gpu'?"),
        (("explain",), "name one finding, or give --list"),
        (("explain", "no-gpu", "--list"), "name one finding, or give --list"),
        (
            ("completion", "bsh"),
            "argument SHELL: 'bsh' is not known: did you mean 'bash'?",
        ),
    ],
)
def test_a_mistake_ends_with_2_and_says_what_was_meant(args: tuple[str, ...], message: str) -> None:
    done = run_cli(*args)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[0] == f"envcheck: {message}"


def test_a_path_that_a_flag_takes(tmp_path: Path) -> None:
    """What people type first: the doctor and what it shall look at."""
    text = tmp_path / "collect_env.txt"
    text.write_text("PyTorch version: 2.8.0")
    recording = tmp_path / "machine"
    recording.mkdir()
    (recording / "machine.toml").touch()
    (tmp_path / "venv" / "bin").mkdir(parents=True)
    for path, flag in ((text, "report"), (recording, "machine"), (tmp_path / "venv", "python")):
        done = run_cli("doctor", str(path))
        assert done.returncode == 2
        meant = f"unexpected argument '{path}': did you mean '--{flag} {path}'?"
        assert done.stderr.splitlines()[0] == f"envcheck: {meant}"


def test_flags_of_a_watched_command_are_its_own() -> None:
    done = run_cli("watch", "--", "sh", "-c", "exit 7", "--jsn")
    assert done.returncode == 7


@pytest.mark.parametrize(
    "args",
    [
        ("doctor", "--json", "--jsn"),
        ("doctor", "--format", "json", "--jsn"),
        ("doctor", "--json", "--format", "text"),
        ("--json",),
    ],
)
def test_json_is_printed_for_a_mistake_too(args: tuple[str, ...]) -> None:
    done = run_cli(*args)
    error = json.loads(done.stdout)["error"]
    assert done.returncode == error["exit_code"] == 2
    assert error["message"] == done.stderr.splitlines()[0].removeprefix("envcheck: ")


def test_version() -> None:
    done = run_cli("--version")
    assert (done.returncode, done.stdout) == (0, f"envcheck {envcheck.__version__}\n")


@pytest.mark.parametrize("command", ["", "doctor", "snapshot", "explain", "completion"])
@pytest.mark.parametrize("columns", ["44", "80", "140"])
def test_help_is_a_manual_page_that_fits_the_screen(command: str, columns: str) -> None:
    done = run_cli(*command.split(), "--help", env=environment(COLUMNS=columns))
    assert (done.returncode, done.stderr) == (0, "")
    assert "examples:\n" in done.stdout
    assert command == "completion" or "exit status:\n" in done.stdout
    assert [line for line in done.stdout.splitlines() if len(line) > int(columns)] == []


def test_a_recording_that_is_none_ends_with_4(tmp_path: Path) -> None:
    done = run_cli("doctor", "--machine", str(tmp_path / "none"), "--json")
    assert done.returncode == json.loads(done.stdout)["error"]["exit_code"] == 4
    assert done.stderr == f"envcheck: {tmp_path / 'none'}: no such folder\n"


def test_a_damaged_table_ends_with_4(tmp_path: Path, recording: Path) -> None:
    (tmp_path / "cuda.toml").write_text("schema = [", encoding="utf-8")
    done = run_cli("doctor", "--machine", str(recording), "--tables", str(tmp_path), "--json")
    assert done.returncode == json.loads(done.stdout)["error"]["exit_code"] == 4
    assert "cuda.toml" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_interpreter_that_is_none_ends_with_2() -> None:
    done = run_cli("doctor", "--python", "/nowhere/python")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "envcheck: --python /nowhere/python: no such file or folder\n"
