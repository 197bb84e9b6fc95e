"""The doctor reads only, runs no shell, talks to nobody, and shows foreign text harmlessly."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import envcheck
from envcheck.errors import RecordingError
from envcheck.fleet.render import FORMATS as FLEET_FORMATS
from envcheck.fleet.render import render as render_fleet
from envcheck.model.codec import CodecError, decode, encode
from envcheck.model.plan import Plan
from envcheck.probe.live import Live
from envcheck.probe.record import Recorded
from envcheck.probe.source import Command
from envcheck.report import FORMATS, plan_text, render
from tests.cli.runner import environment
from tests.fleet.pictures import full
from tests.planner.asking import plan
from tests.report.sample import BAD, HOSTILE, VIEW

PACKAGE = Path(envcheck.__file__).parent
MACHINES = Path(__file__).resolve().parents[1] / "machines"

CALLS = (
    "open,openat,openat2,creat,connect,sendto,sendmsg,bind,execve,mkdir,mkdirat,unlink,unlinkat,"
    "rmdir,rename,renameat,renameat2,link,linkat,symlink,symlinkat,chmod,fchmodat,chown,fchownat,"
    "truncate,mknod,mknodat,mount,init_module,finit_module,delete_module"
)
WRITING = re.compile(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC|O_APPEND")


def traced(tmp_path: Path, *arguments: str) -> list[str]:
    """System calls that succeeded in a run of the doctor and in all its children."""
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("strace is not installed")
    log = tmp_path / "trace"
    command = [strace, "-f", "-qq", "-s", "300", "-e", f"trace={CALLS}", "-o", str(log)]
    probe = subprocess.run([*command, "true"], capture_output=True, text=True, check=False)
    if probe.returncode:
        pytest.skip(f"strace may not be used here: {probe.stderr.strip()}")
    done = subprocess.run(
        [*command, sys.executable, "-m", "envcheck", "doctor", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
        # What Python itself would keep of imported modules is no work of envcheck's.
        env=environment(PYTHONDONTWRITEBYTECODE="1"),
        timeout=120,
    )
    assert done.returncode in {0, 1}, done.stderr
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    assert len(lines) > 100
    return [re.sub(r"^\d+ +", "", line) for line in lines if " = -1 " not in line]


def written(calls: list[str]) -> list[str]:
    """Calls that open a file for writing, or change one in another way."""
    found = []
    for call in calls:
        name = call.partition("(")[0]
        if name.startswith("open"):
            if WRITING.search(call) and '"/dev/null"' not in call:
                found.append(call)
        elif name == "creat" or name not in {"connect", "sendto", "sendmsg", "bind", "execve"}:
            found.append(call)
    return [each for each in found if not each.startswith(("+++", "---", "<..."))]


def test_the_doctor_writes_nothing_and_talks_to_nobody(tmp_path: Path) -> None:
    calls = traced(tmp_path, "--json")
    assert written(calls) == []
    network = ("connect(", "sendto(", "sendmsg(", "bind(")
    assert [e for e in calls if e.startswith(network) and re.search(r"AF_INET|AF_PACKET", e)] == []
    started = [e for e in calls if e.startswith("execve(")]
    assert len(started) >= 5
    assert [
        e for e in started if re.match(r'execve\("\S*/(?:ba|da|z|k)?sh", \["\S+", "-c"', e)
    ] == []


def test_only_what_was_asked_for_is_written(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    calls = written(traced(tmp_path, "--json", "-o", str(folder / "report.json")))
    assert calls
    assert [each for each in calls if str(folder) not in each] == []
    assert [each.name for each in folder.iterdir()] == ["report.json"]


FORBIDDEN = {
    "os.system",
    "os.popen",
    "eval",
    "exec",
    "pickle.load",
    "pickle.loads",
    "marshal.loads",
}
FORBIDDEN |= {"yaml.load", "subprocess.getoutput", "subprocess.getstatusoutput", "os.execvp"}


def test_no_shell_and_no_code_out_of_data() -> None:
    found = []
    files = sorted(PACKAGE.rglob("*.py"))
    assert len(files) > 100
    for path in files:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            name = ast.unparse(node.func)
            shell = name.startswith("subprocess.") and any(
                each.arg == "shell" and ast.unparse(each.value) != "False" for each in node.keywords
            )
            if name in FORBIDDEN or shell:
                found.append(f"{path.name}:{node.lineno}: {name}")
    assert found == []


def test_children_get_listed_variables_only() -> None:
    secrets = {
        name: "hunter2"
        for name in ("AWS_SECRET_ACCESS_KEY", "HF_TOKEN", "SSH_AUTH_SOCK", "BASH_ENV", "ENV", "IFS")
    }
    live = Live(variables={**secrets, "PATH": "/usr/bin:/bin"})
    for payload in (False, True):
        text = live.run(Command(name="x", argv=("env",), payload=payload)).stdout
        assert "PATH=/usr/bin:/bin" in text
        assert "hunter2" not in text


# Foreign text.

STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def poisoned(cls: type, value: Any) -> Any:
    """A model whose every text that may be anything ends in hostile words."""
    data = encode(value)

    def texts(place: Any) -> Any:
        if isinstance(place, dict):
            yield from ((place, key) for key, each in place.items() if isinstance(each, str))
            for each in place.values():
                yield from texts(each)
        elif isinstance(place, list):
            yield from ((place, at) for at, each in enumerate(place) if isinstance(each, str))
            for each in place:
                yield from texts(each)

    changed = 0
    for place, key in list(texts(data)):
        old = place[key]
        place[key] = old + HOSTILE
        try:
            decode(cls, data)
        except CodecError:
            place[key] = old
        else:
            changed += 1
    assert changed > 20
    return decode(cls, data)


@pytest.mark.parametrize("form", list(FORMATS))
def test_no_report_steers_a_terminal(form: str) -> None:
    text = render(form, BAD, VIEW)
    assert not STEERING.search(text)
    assert not STEERING.search(render(form, BAD, VIEW, colour=False))


def test_no_plan_steers_a_terminal() -> None:
    made = poisoned(Plan, plan("H100, driver 580, python 3.12", "torch"))
    assert "[red]" in plan_text.render(made, 100)
    for text in (plan_text.render(made, 100), plan_text.document(made, 0)):
        assert not STEERING.search(text)


@pytest.mark.parametrize("form", FLEET_FORMATS)
def test_no_picture_of_a_fleet_steers_a_terminal_or_a_browser(form: str) -> None:
    text = render_fleet(form, full(HOSTILE))
    assert not STEERING.search(text)
    if form == "html":
        assert "<script>`" not in text


def test_the_command_line_does_not_echo_control_characters(tmp_path: Path) -> None:
    for arguments in (
        ["doctor", f"--{HOSTILE.replace(chr(0xDC80), '')}"],
        ["doctor", "--machine", str(tmp_path / "\x1b[2J\x07")],
        ["\x1b]0;title\x07"],
    ):
        done = subprocess.run(
            [sys.executable, "-m", "envcheck", *arguments],
            capture_output=True,
            text=True,
            check=False,
            cwd="/",
            env=environment(),
        )
        assert done.returncode in {2, 4}
        assert not STEERING.search(done.stderr + done.stdout)


# Recordings, beside those of tests/probe/test_recording.py.


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    shutil.copytree(MACHINES / "rtx4090-torch-cpu", tmp_path / "m")
    return tmp_path / "m"


def device(folder: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("only root makes device files")
    try:
        os.mknod(folder / "root" / "zero", 0o666 | 0o020000, os.makedev(1, 5))
    except PermissionError as error:
        pytest.skip(f"no device files here: {error}")


def nested(folder: Path) -> None:
    """Deeper than Python recurses, and than a path may be long."""
    place = os.open(folder / "root", os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("d", dir_fd=place)
        inner = os.open("d", os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = inner
    os.close(place)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (device, "plain files only"),
        (nested, "File name too long"),
        (lambda folder: (folder / "x").symlink_to("/"), "plain files only"),
        (lambda folder: os.truncate(folder / "paths.json", 1 << 33), "at most 100000000 bytes"),
    ],
    ids=["device", "nested", "link", "huge"],
)
def test_a_hostile_recording_is_refused(
    recording: Path, damage: Callable[[Path], object], words: str
) -> None:
    damage(recording)
    with pytest.raises(RecordingError, match=words) as caught:
        Recorded(str(recording))
    assert len(str(caught.value)) < 600
    subprocess.run(["rm", "-rf", str(recording)], check=True)


@pytest.mark.parametrize("path", ["/../../../etc/passwd", "../../../etc/passwd", "/a/../../b"])
def test_no_path_leads_out_of_a_recording(recording: Path, path: str) -> None:
    index = recording / "paths.json"
    index.write_text(
        index.read_text("utf-8").replace("{", f'{{"{path}": {{"read": true}},', 1), "utf-8"
    )
    with pytest.raises(RecordingError, match="No such file or directory"):
        Recorded(str(recording)).read(path)
