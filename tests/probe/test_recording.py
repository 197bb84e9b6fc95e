"""Recordings: what is saved, what comes back, what is refused, and what must never be in them."""

from __future__ import annotations

import dataclasses
import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from envcheck.errors import NotRecordedError, RecordingError
from envcheck.model.codec import decode
from envcheck.model.snapshot import Snapshot
from envcheck.probe import record
from envcheck.probe.live import Live
from envcheck.probe.record import RECORDER_VERSION, Recorded, Recorder
from envcheck.probe.redact import Redactor, recorded_variables
from envcheck.probe.snapshot import take_snapshot
from envcheck.probe.source import Command, Result, Stat
from tests.probe.fake import Fake, done

Machine = Callable[..., Live]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory, stubs: Path) -> tuple[Path, Snapshot]:
    """A recording of this machine with a stub driver, and the snapshot taken meanwhile."""
    live = Live(
        variables={
            "PATH": "/usr/bin:/bin",
            "HOME": "/home/nobody",
            "LD_LIBRARY_PATH": str(stubs / "full"),
            "CUDA_VISIBLE_DEVICES": "0",
        }
    )
    recorder = Recorder(live)
    snapshot = take_snapshot(recorder, python="/usr/bin/python3")
    folder = tmp_path_factory.mktemp("machines") / "here"
    recorder.save(str(folder), snapshot, title='a "title"')
    return folder, snapshot


@pytest.fixture
def folder(original: tuple[Path, Snapshot], tmp_path: Path) -> Path:
    """A copy of the recording, to damage."""
    import shutil

    return Path(shutil.copytree(original[0], tmp_path / "copy"))


def test_replay_gives_the_same_snapshot(original: tuple[Path, Snapshot]) -> None:
    folder, snapshot = original
    again = take_snapshot(Recorded(str(folder)), python="/usr/bin/python3")
    assert again.source == "recorded:here"
    assert again.host.driver.version == "550.54.15"
    assert dataclasses.replace(again, source="live") == snapshot
    saved = json.loads((folder / "snapshot.json").read_text(encoding="utf-8"))
    assert decode(Snapshot, saved).host.driver == snapshot.host.driver


def test_a_recording_can_be_moved_and_recorded_again(
    original: tuple[Path, Snapshot], tmp_path: Path
) -> None:
    folder, snapshot = original
    recorder = Recorder(Recorded(str(folder)))
    taken = take_snapshot(recorder, python="/usr/bin/python3")
    recorder.save(str(tmp_path / "again"), taken, title='a "title"')
    names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    differing = [
        name
        for name in names
        if (folder / name).read_bytes() != (tmp_path / "again" / name).read_bytes()
    ]
    # Only the name of the source differs.
    assert differing == ["snapshot.json"]
    assert dataclasses.replace(taken, source="live") == snapshot


def test_replay_is_strict(original: tuple[Path, Snapshot]) -> None:
    source = Recorded(str(original[0]))
    for question in (
        lambda: source.read("/etc/never-asked"),
        lambda: source.list("/etc/never-asked"),
        lambda: source.stat("/etc/never-asked"),
        lambda: source.run(Command(name="never-asked", argv=("x",))),
    ):
        with pytest.raises(NotRecordedError, match=r"never-asked`; record the machine anew$"):
            question()


def test_an_older_recording_has_gaps_instead(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = json.loads((folder / "paths.json").read_text(encoding="utf-8"))
    del paths["/dev/shm"]
    (folder / "paths.json").write_text(json.dumps(paths), encoding="utf-8")
    commands = json.loads((folder / "commands.json").read_text(encoding="utf-8"))
    del commands["dmesg"]
    (folder / "commands.json").write_text(json.dumps(commands), encoding="utf-8")
    with pytest.raises(NotRecordedError):
        take_snapshot(Recorded(str(folder)), python="/usr/bin/python3")
    monkeypatch.setattr(record, "RECORDER_VERSION", RECORDER_VERSION + 1)
    snapshot = take_snapshot(Recorded(str(folder)), python="/usr/bin/python3")
    assert snapshot.gap("host.shm_bytes") == "/dev/shm is not there or could not be looked at"
    assert "not in this older recording" in (snapshot.gap("host.driver.kernel_log") or "")
    assert snapshot.host.driver.version == "550.54.15"


def test_refusals_and_absences_come_back(tmp_path: Path) -> None:
    recorder = Recorder(
        Fake(
            {"/a/file": "line\r\nnext\0\n"},
            refused=("/a/closed",),
            results={"tool": Result(outcome="timeout", stdout="part", seconds=2.5, error="slow")},
        )
    )
    for verb in (recorder.read, recorder.list, recorder.stat):
        with pytest.raises(PermissionError):
            verb("/a/closed")
    assert (recorder.read("/a/none"), recorder.list("/a/none"), recorder.stat("/a/none")) == (
        None,
        None,
        None,
    )
    recorder.read("/a/file")
    recorder.read("/a/b/../../../../../outside")
    recorder.list("/a")
    recorder.stat("/a/file")
    tool = Command(name="tool", argv=("tool",))
    ran = recorder.run(tool)
    recorder.save(str(tmp_path / "m"), Snapshot(taken_at="2026-01-01T00:00:00Z"))
    again = Recorded(str(tmp_path / "m"))
    for verb in (again.read, again.list, again.stat):
        with pytest.raises(OSError, match="Permission denied"):
            verb("/a/closed")
        assert verb("/a/none") is None
    assert again.read("/a/file") == "line\r\nnext\0\n"
    assert again.list("/a") == ("file",)
    assert again.stat("/a/file") == Stat(kind="file", executable=True)
    assert again.run(tool) == ran
    assert (again.taken_at(), again.interpreter()) == ("2026-01-01T00:00:00Z", "/usr/bin/python3")


def test_a_path_with_dots_stays_inside(tmp_path: Path) -> None:
    recorder = Recorder(Fake({"/../../../escaped": "text"}))
    recorder.read("/../../../escaped")
    recorder.save(str(tmp_path / "deep" / "m"), Snapshot())
    assert [path.name for path in tmp_path.iterdir()] == ["deep"]
    assert (tmp_path / "deep" / "m" / "root" / "escaped").read_text(encoding="utf-8") == "text"
    assert Recorded(str(tmp_path / "deep" / "m")).read("/../../../escaped") == "text"


# Damaged and hostile folders.


def use(folder: Path) -> Snapshot:
    return take_snapshot(Recorded(str(folder)), python="/usr/bin/python3")


def change(folder: Path, name: str, key: str, value: object) -> None:
    data = json.loads((folder / name).read_text(encoding="utf-8"))
    data[key] = value
    (folder / name).write_text(json.dumps(data), encoding="utf-8")


def link_out(folder: Path) -> None:
    target = folder / "root" / "etc" / "os-release"
    target.unlink()
    target.symlink_to("/etc/passwd")


def link_folder(folder: Path) -> None:
    (folder / "root" / "opt").symlink_to("/etc")


def link_nowhere(folder: Path) -> None:
    (folder / "root" / "dangling").symlink_to("/nonexistent")


def pipe(folder: Path) -> None:
    os.mkfifo(folder / "root" / "pipe")


def huge(folder: Path) -> None:
    with (folder / "root" / "proc" / "version").open("wb") as stream:
        stream.truncate(1 << 33)


def folder_for_file(folder: Path) -> None:
    (folder / "commands.json").unlink()
    (folder / "commands.json").mkdir()


def gone(folder: Path) -> None:
    (folder / "root" / "proc" / "version").unlink()


DAMAGES: dict[str, Callable[[Path], object]] = {
    "no machine.toml": lambda f: (f / "machine.toml").unlink(),
    "machine.toml of junk": lambda f: (f / "machine.toml").write_bytes(b"\xff\x00junk"),
    "machine.toml without version": lambda f: (f / "machine.toml").write_text('title = "x"\n'),
    "machine.toml with true": lambda f: (f / "machine.toml").write_text("recorder = true\n"),
    "machine.toml with text": lambda f: (f / "machine.toml").write_text('recorder = "1"\n'),
    "machine.toml deep": lambda f: (f / "machine.toml").write_text("recorder = " + "[" * 99_999),
    "newer recorder": lambda f: (f / "machine.toml").write_text("recorder = 999\n"),
    "no paths.json": lambda f: (f / "paths.json").unlink(),
    "paths.json cut off": lambda f: (f / "paths.json").write_text('{"/a": '),
    "paths.json a list": lambda f: (f / "paths.json").write_text("[]"),
    "paths.json deep": lambda f: (f / "paths.json").write_text("[" * 99_999),
    "paths.json binary": lambda f: (f / "paths.json").write_bytes(bytes(range(256))),
    "commands.json a folder": folder_for_file,
    "names that are no text": lambda f: change(f, "paths.json", "/dev", {"list": [1, 2]}),
    "names that are no list": lambda f: change(f, "paths.json", "/dev", {"list": "nvidia0"}),
    "a stat of junk": lambda f: change(f, "paths.json", "/dev/shm", {"stat": {"kind": "soup"}}),
    "a stat of numbers": lambda f: change(f, "paths.json", "/dev/shm", {"stat": 5}),
    "a program of junk": lambda f: change(f, "commands.json", "uname", "x86_64"),
    "a program's fields": lambda f: change(
        f, "commands.json", "uname", {"outcome": 5, "file": "u"}
    ),
    "output from outside": lambda f: change(
        f, "commands.json", "uname", {"outcome": "ok", "code": 0, "file": "../machine.toml/.."}
    ),
    "variables that are no text": lambda f: change(f, "variables.json", "PATH", 5),
    "link to a file": link_out,
    "link to a folder": link_folder,
    "dangling link": link_nowhere,
    "pipe": pipe,
    "huge file": huge,
    "file that is gone": gone,
}


@pytest.mark.parametrize("damage", [pytest.param(each, id=name) for name, each in DAMAGES.items()])
def test_damage_is_one_line(folder: Path, damage: Callable[[Path], object]) -> None:
    damage(folder)
    started = time.monotonic()
    try:
        snapshot = use(folder)
    except RecordingError as error:
        assert str(folder) in str(error)
        assert "\n" not in str(error)
        assert not isinstance(error, NotRecordedError)
    else:
        # What an output file outside would say is not taken for the program's words.
        assert damage is DAMAGES["output from outside"]
        assert snapshot.host.os.machine is None
    assert time.monotonic() - started < 5


@pytest.mark.parametrize("kind", ["absent", "file", "empty"])
def test_what_is_no_recording(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "x"
    if kind == "file":
        place.write_text("x", encoding="utf-8")
    if kind == "empty":
        place.mkdir()
    with pytest.raises(RecordingError, match=r"no such folder$|not a recorded machine"):
        Recorded(str(place))


# Saving.


def test_a_folder_that_holds_something_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "precious").write_text("x", encoding="utf-8")
    with pytest.raises(RecordingError, match=r"already holds something; name a new folder$"):
        Recorder(Fake()).save(str(tmp_path / "m"), Snapshot())
    assert [path.name for path in (tmp_path / "m").iterdir()] == ["precious"]
    file = tmp_path / "m" / "precious"
    with pytest.raises(RecordingError, match=r"Not a directory$"):
        Recorder(Fake()).save(str(file), Snapshot())
    assert file.read_text(encoding="utf-8") == "x"


def test_an_empty_folder_is_filled(tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    Recorder(Fake()).save(str(tmp_path / "m"), Snapshot())
    assert sorted(path.name for path in (tmp_path / "m").iterdir()) == [
        "commands",
        "commands.json",
        "machine.toml",
        "paths.json",
        "snapshot.json",
        "variables.json",
    ]


def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = []

    def full(path: Path, data: object) -> None:
        written.append(path.name)
        path.write_text("half", encoding="utf-8")
        if len(written) == 2:
            raise OSError(28, os.strerror(28), str(path))

    monkeypatch.setattr(record, "_dump", full)
    with pytest.raises(RecordingError, match=r"No space left on device$"):
        Recorder(Fake({"/a": "b"})).save(str(tmp_path / "m"), Snapshot())
    assert written == ["paths.json", "variables.json"]
    assert list(tmp_path.iterdir()) == []


def test_no_place_to_save(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with pytest.raises(RecordingError, match=r"^\S+/file/m: "):
        Recorder(Fake()).save(str(tmp_path / "file" / "m"), Snapshot())


# Redaction.

UUID = "8c1f0a52-77d4-4b1e-9c55-0123456789ab"
SECRETS = (
    "alice",
    "buildbox7",
    "corp.example",
    UUID,
    "52:54:00:ab:cd:ef",
    "192.168.17.23",
    "10.20.30.40",
    "172.31.5.6",
    "1654321098765",
    "hunter2",
    "ghp_",
)
KEPT = (
    "535.183.06",
    "12.4.127",
    "9.10.2.21",
    "10.3.5.147",
    "11.6.3.83",
    "0000:06:00.0",
    "00000000:06:00.0",
    "libcurand.so.10.3.5.147",
    "/opt/TensorRT-10.0.1.6/lib",
    "550.54.15-0ubuntu0.22.04.1",
)
TEXT = f"""NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.06  (alice@buildbox7)
[Mon] NVRM: Xid (PCI:0000:06:00): 79, pid=1, name=/home/alice/bin/train on buildbox7.corp.example
GPU 0: NVIDIA H200 (UUID: GPU-{UUID}) machine {UUID}
GPU 00000000:06:00.0, 0000:06:00.0, eth0 52:54:00:ab:cd:ef inet 192.168.17.23/24
NCCL 10.20.30.40:29500 tcp://10.20.30.40 172.31.5.6, Serial Number                 : 1654321098765
"serial": "1654321098765", "version": "9.10.2.21", nvidia-curand-cu12==10.3.5.147 10.3.5.147
cublas 12.4.127 cusolver 11.6.3.83 /usr/lib/libcurand.so.10.3.5.147 /opt/TensorRT-10.0.1.6/lib
nvidia-driver-550 550.54.15-0ubuntu0.22.04.1 /data/alice/venv /home/alice_old/x https://alice:hunter2@h/x
"""


def test_no_identifier_is_saved_and_no_version_lost(tmp_path: Path) -> None:
    recorder = Recorder(
        Fake(
            {"/etc/hostname": "buildbox7.corp.example\n", "/home/alice/notes": TEXT, "/x": TEXT},
            results={"tool": done(TEXT, 1, TEXT)},
            variables={
                "HOME": "/home/alice",
                "USER": "alice",
                "PATH": "/home/alice/bin:/usr/bin",
                "CUDA_HOME": "/data/alice/cuda",
                "NCCL_COMM_ID": "10.20.30.40:1234",
                "KUBERNETES_SERVICE_HOST": "10.20.30.40",
                "NVIDIA_API_KEY": "hunter2",
                "CONDA_TOKEN": "hunter2",
                "GITHUB_TOKEN": "ghp_hunter2",
                "LD_LIBRARY_PATH": "/opt/TensorRT-10.0.1.6/lib",
            },
        )
    )
    recorder.read("/etc/hostname")
    recorder.read("/home/alice/notes")
    recorder.read("/x")
    recorder.list("/home/alice")
    with_secrets = Snapshot(source="live", envcheck=TEXT)
    recorder.run(Command(name="tool", argv=("tool",)))
    recorder.save(str(tmp_path / "m"), with_secrets, title="alice's machine buildbox7")
    files = [path for path in (tmp_path / "m").rglob("*") if path.is_file()]
    everything = "".join(
        f"{path.relative_to(tmp_path)}\n{path.read_text(encoding='utf-8')}\n" for path in files
    )
    assert [secret for secret in SECRETS if secret in everything] == []
    for name in ("root/x", "root/home/user/notes", "commands/tool.stdout", "commands/tool.stderr"):
        text = (tmp_path / "m" / name).read_text(encoding="utf-8")
        assert [version for version in KEPT if version not in text] == []
    variables = json.loads((tmp_path / "m" / "variables.json").read_text(encoding="utf-8"))
    assert variables == {
        "HOME": "/home/user",
        "PATH": "/home/user/bin:/usr/bin",
        "CUDA_HOME": "/data/$USER/cuda",
        "NCCL_COMM_ID": "0.0.0.0:1234",
        "KUBERNETES_SERVICE_HOST": "0.0.0.0",
        "LD_LIBRARY_PATH": "/opt/TensorRT-10.0.1.6/lib",
    }


@pytest.mark.parametrize("name", ["dev", "cuda", "gpu", "nvidia", "torch", "name", "x", "total"])
def test_users_and_hosts_named_like_what_paths_are_made_of(name: str) -> None:
    redact = Redactor({"USER": name, "HOME": f"/home/{name}"}, lambda _path: f"{name}\n")
    text = '/dev/nvidia0 /usr/local/cuda/lib64 nvidia.com/gpu=all torch {"name": "x", "total": 1}'
    assert redact(text) == text
    assert redact(f"/home/{name}/venv") == "~/venv"


@pytest.mark.parametrize(
    ("home", "text", "expected"),
    [
        ("/home/alice", "/home/alice /home/alice/x -L/home/alice/y", "~ ~/x -L~/y"),
        ("/home/alice", "/home/alice2/x:/home/user-b/y", "~/x:~/y"),
        ("/root", "/root/x:/root /opt/root/x /rootfs", "~/x:~ /opt/root/x /rootfs"),
        ("/data/people/al", "/data/people/al/x /data/people/albert", "~/x /data/people/albert"),
        ("", "/usr/lib /x", "/usr/lib /x"),
        ("/", "/usr/lib /x", "/usr/lib /x"),
    ],
)
def test_homes(home: str, text: str, expected: str) -> None:
    assert Redactor({"HOME": home} if home else {}, lambda _path: None)(text) == expected


def test_short_names_are_not_cut_out_of_words() -> None:
    redact = Redactor({"USER": "max"}, lambda _path: None)
    assert redact("max pcie_generation_max max-autotune libmax.so maximum /data/max/x") == (
        "host pcie_generation_max max-autotune libmax.so maximum /data/$USER/x"
    )


def test_a_host_name_that_may_not_be_read_stops_nothing() -> None:
    def refuse(_path: str) -> str | None:
        raise PermissionError(13, "Permission denied")

    assert Redactor({}, refuse)("12.4.127") == "12.4.127"


def test_variables_that_are_recorded() -> None:
    given = {
        "CUDA_VISIBLE_DEVICES": "0,1",
        "NCCL_VERSION": "2.21.5-1",
        "NVIDIA_REQUIRE_CUDA": "cuda>=12.4 brand=tesla,driver>=470,driver<471",
        "NCCL_SOCKET_IFNAME": "eth0",
        "NVIDIA_API_KEY": "k",
        "JAX_SECRET": "s",
        "SSH_CONNECTION": "10.0.0.1 22",
        "HOSTNAME": "box",
    }
    kept = ("CUDA_VISIBLE_DEVICES", "NCCL_SOCKET_IFNAME", "NCCL_VERSION", "NVIDIA_REQUIRE_CUDA")
    assert recorded_variables(given) == {name: given[name] for name in kept}
