"""`envcheck watch` as a process, beside a stub GPU: what it says, and what it leaves alone."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest

import envcheck
from tests.cli.runner import run_cli
from tests.watch.conftest import Watch

SCHEMA = Path(envcheck.__file__).parent / "schema" / "report-1.schema.json"

BUSY = "import time\nend = time.time() + {}\nwhile time.time() < end: pass\n"
"""A program that uses a core up for some seconds."""


def test_the_machine_as_json(watch: Watch) -> None:
    done = watch("--seconds", "2", "--json", work="matmul")
    report = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    jsonschema.validate(report, json.loads(SCHEMA.read_text(encoding="utf-8")))
    assert [each["id"] for each in report["findings"]] == ["near-limit"]
    activity = report["snapshot"]["activity"]
    (gpu,) = activity["gpus"]
    assert 18 <= activity["samples"] <= 21
    assert (gpu["via"], gpu["sm"]["mean"], gpu["tensor"]["mean"]) == ("gpm", 94.92, 92.16)
    assert (gpu["power_limit_watts"], gpu["nvlink_in"]) == (700.0, None)
    assert activity["sampler_cpu"] < 0.2


def test_the_text_begins_with_what_was_watched(watch: Watch) -> None:
    done = watch("--seconds", "2", "--gpus", "0", work="idle")
    assert done.stdout.startswith("Watched    this machine for 2.")
    assert "info gpu-idle: Nothing runs on GPU 0: NVIDIA H200" in done.stdout
    assert done.stdout.endswith("ok: no problem found (1 note)\n")


def test_a_command_keeps_its_output_its_input_and_its_status(watch: Watch) -> None:
    script = (
        BUSY.format(2.0) + "print('out')\nimport sys; print('err', file=sys.stderr); sys.exit(9)"
    )
    done = watch("--", sys.executable, "-c", script, "--help", work="tiny", gpm="0")
    assert (done.returncode, done.stdout) == (9, "out\n")
    first, _, rest = done.stderr.partition("\n")
    assert first == "err"
    assert rest.startswith("Watched    a command for ")


def test_with_a_file_for_the_report_a_command_is_left_alone(watch: Watch, tmp_path: Path) -> None:
    out = tmp_path / "report.json"
    argv = ("--json", "-o", str(out), "--", sys.executable, "-c", BUSY.format(1.7))
    done = watch(*argv, work="matmul")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    report = json.loads(out.read_text(encoding="utf-8"))
    assert report["snapshot"]["activity"]["target"] == "command"
    assert [each["id"] for each in report["findings"]] == ["near-limit"]


def test_fail_on_does_not_touch_the_status_of_a_command(watch: Watch) -> None:
    done = watch("--fail-on", "warning", "--", "sleep", "2", work="idle", throttle="0x40")
    assert done.returncode == 0
    assert "warning gpu-throttled: GPU 0: NVIDIA H200 is slowed down" in done.stderr


def test_throttling_over_the_window_fails_where_it_was_asked_to(watch: Watch) -> None:
    done = watch("--seconds", "2", "--fail-on", "warning", work="matmul", throttle="0x44")
    assert done.returncode == 1
    assert "warning gpu-throttled" in done.stdout


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
def test_signals_reach_the_command(
    variables: Callable[..., dict[str, str]], sent: signal.Signals
) -> None:
    script = (
        "import signal, sys, time\n"
        f"signal.signal({int(sent)}, lambda number, frame: sys.exit(40 + number))\n"
        "print('ready', flush=True)\n"
        "time.sleep(30)\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-m", "envcheck", "watch", "--", sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=variables("tiny"),
        cwd="/",
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    child.send_signal(sent)
    _, errors = child.communicate(timeout=30)
    assert child.returncode == 40 + sent
    assert "Traceback" not in errors


def test_a_command_that_a_signal_ends_is_counted_as_shells_do(watch: Watch) -> None:
    done = watch("--", "sh", "-c", "kill -SEGV $$", work="tiny")
    assert done.returncode == 128 + signal.SIGSEGV


def test_commands_that_cannot_be_started(watch: Watch, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("text", encoding="utf-8")
    missing = watch("--", "no-such-program-here")
    assert (missing.returncode, missing.stdout) == (127, "")
    assert missing.stderr == "envcheck: no-such-program-here: No such file or directory\n"
    assert watch("--", str(plain)).returncode == 126


def test_without_nvml_the_command_runs_all_the_same() -> None:
    done = run_cli("watch", "--", "sh", "-c", "echo hi; exit 5")
    assert (done.returncode, done.stdout) == (5, "hi\n")
    assert done.stderr.startswith("envcheck: cannot watch: ")


def test_without_nvml_the_machine_is_judged_as_one_that_should_have_a_gpu() -> None:
    done = run_cli("watch", "--json")
    report = json.loads(done.stdout)
    assert (done.returncode, report["verdict"]) == (1, "error")
    assert done.stderr.startswith("envcheck: cannot watch: ")


def test_a_gpu_that_is_not_there(watch: Watch) -> None:
    done = watch("--gpus", "3", "--seconds", "1")
    assert done.returncode != 0
    assert done.stderr.startswith("envcheck: cannot watch: no GPU 3: NVML shows 1\n")


def test_a_process_and_the_end_of_it(watch: Watch) -> None:
    child = subprocess.Popen([sys.executable, "-c", BUSY.format(2.5)])
    begun = time.monotonic()
    done = watch("--pid", str(child.pid), "--seconds", "30", "--json", work="tiny")
    assert time.monotonic() - begun < 15
    child.wait()
    activity = json.loads(done.stdout)["snapshot"]["activity"]
    assert activity["target"] == "process"
    assert activity["gpu_context"] is False
    # Its share of a core, which others may want as well; 0 when the process itself is not counted.
    assert activity["host"]["worker_cpu"]["median"] > 0.1


def test_recorded_samples_give_the_same_report_again(watch: Watch, tmp_path: Path) -> None:
    series, table = tmp_path / "s.jsonl", tmp_path / "s.csv"
    argv = ("--seconds", "2", "--json", "--record", str(series), "--csv", str(table))
    first = json.loads(watch(*argv, work="matmul").stdout)
    again = run_cli("watch", "--replay", str(series), "--json")
    second = json.loads(again.stdout)
    assert again.returncode == 0
    assert second["findings"] == first["findings"]
    assert second["snapshot"]["activity"] == first["snapshot"]["activity"]
    heading, *rows = table.read_text(encoding="utf-8").splitlines()
    assert heading.startswith("seconds,gpu,utilization_percent,sm_percent,")
    assert len(rows) == first["snapshot"]["activity"]["samples"]
    assert rows[0].split(",")[1:4] == ["0", "99", "94.92"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ("{}\n", "no series"),
        ('{"envcheck_series":1}\nnonsense\n', "line 2 is not JSON"),
        ('{"envcheck_series":1}\n{"t":"x"}\n', "line 2 is no tick"),
        ('{"envcheck_series":1,"gpus":[{}]}\n', "damaged"),
        ('{"envcheck_series":1,"machine":{"host":3}}\n', "damaged"),
    ],
)
def test_damaged_recordings(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text(text, encoding="utf-8")
    done = run_cli("watch", "--replay", str(path))
    assert (done.returncode, done.stdout) == (4, "")
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--pid", "0"), "'0' is no process number"),
        (("--pid", "999999999"), "no such process"),
        (("--interval", "0.001"), "not between 0.02 and 10"),
        (("--gpus", "all"), "no list of GPU numbers"),
        (("--csv", "/nowhere/x.csv"), "--csv /nowhere/x.csv: cannot be written"),
        (("--pid", "1", "--", "true"), "--pid and COMMAND contradict each other"),
        (("--tables", "/nowhere"), "no such folder"),
    ],
)
def test_mistakes_are_found_before_anything_starts(args: tuple[str, ...], words: str) -> None:
    done = run_cli("watch", *args)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr


def test_steps_that_a_program_times_are_in_its_report(watch: Watch, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import sys, time\n"
        "from envcheck.watch import step\n"
        "assert 'torch' not in sys.modules\n"
        "for at in range(150):\n"
        "    time.sleep(0.010)\n"
        "    with step() as now:\n"
        "        with now.to_device():\n"
        "            time.sleep(0.002)\n"
        "        time.sleep(0.004)\n",
        encoding="utf-8",
    )
    out = tmp_path / "report.json"
    done = watch("--json", "-o", str(out), "--", sys.executable, str(script), work="tiny")
    assert (done.returncode, done.stderr) == (0, "")
    steps = json.loads(out.read_text(encoding="utf-8"))["snapshot"]["activity"]["steps"]
    assert 0.010 <= steps["data_wait"] < 0.013
    assert 0.002 <= steps["to_device"] < 0.004
    assert 0.004 <= steps["compute"] < 0.007
    assert steps["communication"] is None
    assert steps["overhead"] < 0.01
