"""A run that Ctrl-C ends keeps what it learned, and the next one goes on from there."""

from __future__ import annotations

import importlib.util
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.runner import environment, run_cli

HOSTS = ("a", "b", "c")

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("ansible_runner") is None, reason="ansible-runner is not installed"
)


@pytest.fixture
def inventory(tmp_path: Path) -> Path:
    """This machine, under several names."""
    place = tmp_path / "inventory.ini"
    line = f"ansible_connection=local ansible_python_interpreter={sys.executable}"
    place.write_text("".join(f"{host} {line}\n" for host in HOSTS))
    return place


def test_ctrl_c_and_again(inventory: Path, tmp_path: Path) -> None:
    folder = tmp_path / "reports"
    command = ["fleet", "run", "-i", str(inventory), "-o", str(folder), "--forks", "1"]
    child = subprocess.Popen(
        [sys.executable, "-m", "envcheck", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
        cwd="/",
    )
    assert child.stderr is not None
    first = child.stderr.readline()
    child.send_signal(signal.SIGINT)
    stdout, rest = child.communicate(timeout=60)
    assert first.startswith("[1/3] a: ")
    assert child.returncode == 130
    assert rest.splitlines()[-1] == (
        "envcheck: interrupted; run it again to ask the hosts that are left"
    )
    assert "not asked: the run ended before" in stdout
    kept = {each.name for each in folder.glob("*.json")}
    assert {"a.json"} <= kept < {f"{host}.json" for host in HOSTS}
    before = (folder / "a.json").stat().st_mtime_ns

    done = run_cli(*command)
    assert f"{len(kept)} of 3 hosts have a report already" in done.stderr
    assert {each.name for each in folder.glob("*.json")} == {f"{host}.json" for host in HOSTS}
    assert (folder / "a.json").stat().st_mtime_ns == before
    assert "3 hosts judged" in done.stdout
    journal = [json.loads(line) for line in (folder / "run.jsonl").read_text().splitlines()]
    assert journal[0]["hosts"] == list(HOSTS)
    outcomes = {each["host"]: each["outcome"] for each in journal if "host" in each}
    assert outcomes == dict.fromkeys(HOSTS, "ok")


def test_other_flags_ask_everybody_anew(inventory: Path, tmp_path: Path) -> None:
    base = ("fleet", "run", "-i", str(inventory), "-o", str(tmp_path / "reports"))
    run_cli(*base, "--limit", "a")
    done = run_cli(*base, "--limit", "a", "--require-gpu")
    assert "[1/1] a: error: no-gpu" in done.stderr
    assert done.returncode == 1


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("-i", "nowhere.ini"), "--inventory nowhere.ini: no such file or folder"),
        (("-i", "INVENTORY", "--limit", "nobody"), "no host to ask in"),
        (("-i", "INVENTORY", "--forks", "0"), "'0' is not a number between 1 and 1000"),
        (("-i", "INVENTORY", "--against", "nowhere.lock"), "cannot read nowhere.lock"),
        ((), "the following arguments are required: -i/--inventory"),
    ],
)
def test_what_cannot_be_followed(
    inventory: Path, tmp_path: Path, args: tuple[str, ...], words: str
) -> None:
    given = [str(inventory) if each == "INVENTORY" else each for each in args]
    done = run_cli("fleet", "run", *given, "-o", "reports", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr.splitlines()[0]
    assert not (tmp_path / "reports").exists()


def test_without_ansible_it_says_what_to_install(inventory: Path, tmp_path: Path) -> None:
    script = (
        "import sys; sys.modules['ansible_runner'] = None\n"
        "from envcheck.cli import main\n"
        f"sys.exit(main(['fleet', 'run', '-i', {str(inventory)!r}, '-o', 'x']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        env=environment(),
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 2
    assert "pip install 'envcheck[fleet]'" in done.stderr
