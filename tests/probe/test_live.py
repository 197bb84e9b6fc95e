"""Programs and files on this machine: limits, searching, and what is left behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import envcheck
from envcheck.probe.live import Live
from envcheck.probe.source import Command

SHELL = "/bin/sh"


def script(folder: Path, name: str, body: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!{SHELL}\n{body}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def shell(body: str, timeout: float = 5.0, **settings: object) -> Command:
    return Command(name="test", argv=(SHELL, "-c", body), timeout=timeout, **settings)  # type: ignore[arg-type]


def gone(pid: int) -> bool:
    """Whether a process has ended (a zombie that its new parent has not read yet has)."""
    for _ in range(50):
        try:
            state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state[0] in "ZX":
            return True
        time.sleep(0.02)
    return False


def test_a_child_that_ignores_signals_goes_with_its_children(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    body = (
        f"trap '' TERM INT HUP; echo $$ >> {pids}; "
        f"(trap '' TERM; echo $(exec sh -c 'echo $PPID') >> {pids}; sleep 60; sleep 60) & "
        f"sleep 60 & echo $! >> {pids}; wait; sleep 60"
    )
    result = Live().run(shell(body, timeout=0.5))
    assert (result.outcome, result.error) == (
        "timeout",
        "did not answer within 0.5 s and was stopped",
    )
    assert result.seconds < 2.5
    found = [int(each) for each in pids.read_text(encoding="utf-8").split()]
    assert len(found) == 3
    assert [pid for pid in found if not gone(pid)] == []


def test_what_a_child_leaves_behind_does_not_delay_its_answer(tmp_path: Path) -> None:
    """A daemon that holds the output open: the answer counts, the daemon's group is ended."""
    pid = tmp_path / "pid"
    result = Live().run(shell(f"sleep 60 & echo $! > {pid}; echo answer", timeout=8.0))
    assert (result.outcome, result.code, result.stdout) == ("ok", 0, "answer\n")
    assert result.seconds < 4
    assert gone(int(pid.read_text(encoding="utf-8")))


def test_output_that_never_ends_is_cut_off() -> None:
    result = Live().run(shell("head -c 100000000 /dev/zero", limit_bytes=1_000_000))
    assert (result.outcome, result.error) == (
        "timeout",
        "printed more than 1000000 bytes and was stopped",
    )
    assert 1_000_000 < len(result.stdout) < 1_200_000


def test_both_outputs_exit_status_and_junk_bytes() -> None:
    result = Live().run(shell("printf 'a\\377b'; echo words >&2; exit 7"))
    assert (result.outcome, result.code, result.stdout, result.stderr) == (
        "ok",
        7,
        "a\ufffdb",
        "words\n",
    )


def test_a_signal_is_a_crash() -> None:
    result = Live().run(shell("kill -SEGV $$"))
    assert (result.outcome, result.code) == ("crash", -11)


def test_only_lines_that_matter_are_kept() -> None:
    result = Live().run(shell("echo secret; echo 'NVRM: hello'; echo nvrm too", keep="NVRM"))
    assert result.stdout == "NVRM: hello\nnvrm too\n"


def test_programs_run_side_by_side() -> None:
    started = time.monotonic()
    results = Live().run_all(tuple(shell(f"sleep 0.6; echo {each}") for each in range(4)))
    assert [each.stdout for each in results] == ["0\n", "1\n", "2\n", "3\n"]
    assert time.monotonic() - started < 2.0


def test_a_program_is_found_on_path_then_in_the_usual_folders(tmp_path: Path) -> None:
    script(tmp_path / "own", "uname", "echo mine")
    own = Live(variables={"PATH": str(tmp_path / "own")})
    assert own.run(Command(name="x", argv=("uname", "-m"))).stdout == "mine\n"
    for variables in ({}, {"PATH": ""}, {"PATH": "::/nonexistent"}):
        result = Live(variables=variables).run(Command(name="x", argv=("uname", "-m")))
        assert result.stdout.strip() == os.uname().machine


@pytest.mark.parametrize("path", [".", "", "bin", "./bin", "bin::."])
def test_the_working_directory_is_never_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    for folder in (tmp_path, tmp_path / "bin"):
        script(folder, "envcheck-trap", f"touch {tmp_path}/sprung")
    monkeypatch.chdir(tmp_path)
    result = Live(variables={"PATH": path}).run(Command(name="x", argv=("envcheck-trap",)))
    assert (result.outcome, result.error) == ("missing", "envcheck-trap: not found")
    assert not (tmp_path / "sprung").exists()


def test_what_cannot_be_started_says_why(tmp_path: Path) -> None:
    broken = script(tmp_path, "broken", "")
    broken.write_text("#!/nonexistent/interpreter\n", encoding="utf-8")
    result = Live().run(Command(name="x", argv=(str(broken),)))
    assert (result.outcome, result.error) == ("missing", f"{broken}: No such file or directory")
    plain = tmp_path / "plain"
    plain.write_text("text", encoding="utf-8")
    assert Live().run(Command(name="x", argv=(str(plain),))).outcome == "missing"
    nul = Live().run(Command(name="x", argv=(SHELL, "-c", "a\0b")))
    assert (nul.outcome, nul.error) == ("missing", "could not be started: embedded null byte")


def environment_of(payload: bool, variables: dict[str, str]) -> dict[str, str]:
    body = "import json, os; print(json.dumps(dict(os.environ)))"
    command = Command(name="x", argv=(sys.executable, "-c", body), payload=payload)
    found: dict[str, str] = json.loads(Live(variables=variables).run(command).stdout)
    return found


def test_payloads_get_what_the_users_programs_get() -> None:
    variables = {
        "PATH": "/usr/bin",
        "LD_LIBRARY_PATH": "/opt/x",
        "CUDA_VISIBLE_DEVICES": "1",
        "NCCL_DEBUG": "WARN",
        "PYTHONPATH": "/opt/y",
        "HF_TOKEN": "secret",
    }
    seen = environment_of(True, variables)
    assert {name: seen.get(name) for name in variables} == {**variables, "HF_TOKEN": None}
    tool = environment_of(False, variables)
    assert (tool["LD_LIBRARY_PATH"], tool["LC_ALL"]) == ("/opt/x", "C.UTF-8")
    assert not {"CUDA_VISIBLE_DEVICES", "PYTHONPATH", "HF_TOKEN"} & set(tool)


def test_files_absent_refused_and_odd(tmp_path: Path) -> None:
    live = Live()
    (tmp_path / "junk").write_bytes(b"\xff\x00x")
    (tmp_path / "link").symlink_to("nowhere")
    assert live.read(str(tmp_path / "junk")) == "\ufffd\0x"
    assert live.read(str(tmp_path / "junk" / "below")) is None
    assert live.read(str(tmp_path)) is None
    assert live.list(str(tmp_path)) == ("junk", "link")
    assert live.list(str(tmp_path / "junk")) is None
    assert live.stat(str(tmp_path / "nothing")) is None
    link = live.stat(str(tmp_path / "link"))
    assert link is not None
    assert (link.kind, link.target) == ("link", "nowhere")
    null = live.stat("/dev/null")
    assert null is not None
    assert (null.kind, null.major, null.minor, null.writable) == ("char", 1, 3, True)


AS_NOBODY = """
import os, sys
sys.path[:0] = [{root!r}]
from envcheck.probe.live import Live
from envcheck.probe.snapshot import take_snapshot

class Here(Live):
    def interpreter(self):
        return {python!r}

live = Here(variables={{"PATH": "/usr/bin:/bin", "LD_LIBRARY_PATH": {stubs!r}}})
if os.getuid() == 0:
    # Loads all modules, which may lie where only root may look.
    take_snapshot(live, python={python!r})
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
for verb in (live.read, live.list, live.stat):
    try:
        verb({closed!r} + "/inside")
    except PermissionError as error:
        print("refused:", error.strerror)
snapshot = take_snapshot(live, python={python!r})
driver = snapshot.host.driver
print(driver.version, driver.nvml.outcome, driver.libcuda.outcome, len(snapshot.host.gpus or ()))
print((driver.kernel_log is None) == (snapshot.gap("host.driver.kernel_log") is not None))
print(snapshot.env.python.error, snapshot.env.python.version)
"""


def test_without_root_everything_else_is_read(stubs: Path, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    (closed / "inside").mkdir(parents=True)
    closed.chmod(0)
    # Some folder above an interpreter may be closed to others.
    here = Path(sys.executable).resolve()
    open_to_all = all(folder.stat().st_mode & 0o001 for folder in here.parents)
    python = sys.executable if open_to_all else "/usr/bin/python3"
    body = AS_NOBODY.format(
        root=str(Path(envcheck.__file__).parents[1]),
        stubs=str(stubs / "full"),
        closed=str(closed),
        python=python,
    )
    done = subprocess.run(
        [sys.executable, "-c", body], capture_output=True, text=True, check=False, cwd="/"
    )
    closed.chmod(0o700)
    assert done.stderr == ""
    *refused, driver, log, interpreter = done.stdout.splitlines()
    assert refused == ["refused: Permission denied"] * 3
    assert driver == "550.54.15 ok ok 1"
    assert log == "True"
    assert interpreter.startswith("None 3.")
