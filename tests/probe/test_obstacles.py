"""What stands in a probe's way (odd files, silence, Ctrl-C, names) and must not mislead it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from envcheck.model.environment import Package
from envcheck.model.host import Engine, Os, PciDevice
from envcheck.probe import driver, driver_files, engines, kernel, operating_system
from envcheck.probe.driver_files import DriverFiles
from envcheck.probe.kernel import Kernel
from envcheck.probe.live import Live
from envcheck.probe.notes import Notes
from envcheck.probe.record import Recorder
from envcheck.probe.redact import Redactor
from envcheck.probe.snapshot import _without_identifiers, take_snapshot
from envcheck.probe.source import Command, Result
from tests.probe.fake import Fake, done, quiet

# Files.


def test_what_is_no_file_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    live = Live()
    assert live.read(str(tmp_path / "pipe")) is None
    assert live.read(str(tmp_path)) is None
    assert live.read("/dev/zero") is None


def test_a_path_that_no_file_can_have_is_absent() -> None:
    live = Live()
    assert (live.read("/a\0b"), live.list("/a\0b"), live.stat("/a\0b")) == (None, None, None)


# Waiting.


def children_of(session_leader_argument: str) -> str:
    done = subprocess.run(
        ["pgrep", "-f", f"^sleep {session_leader_argument}$"],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout


def test_ctrl_c_ends_the_children_at_once(tmp_path: Path) -> None:
    """Each child leads a process group of its own, which the terminal's signal does not reach."""
    ready = tmp_path / "ready"
    program = (
        "from envcheck.probe.live import Live; from envcheck.probe.source import Command;"
        f"argv = ('sh', '-c', 'sleep 8731 & touch {ready}; wait');"
        "Live().run_all((Command(name='a', argv=argv, timeout=60.0),))"
    )
    parent = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 20
    while not ready.exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert children_of("8731") != ""
    started = time.monotonic()
    parent.send_signal(signal.SIGINT)
    assert parent.wait(20) == -signal.SIGINT
    assert time.monotonic() - started < 5
    assert children_of("8731") == ""


class Slow(Fake):
    """A machine whose programs take their time."""

    def run_all(self, commands: tuple[Command, ...]) -> tuple[Result, ...]:
        """How programs end, later."""
        time.sleep(3)
        return super().run_all(commands)


def test_a_failure_of_the_caller_does_not_wait_for_the_children() -> None:
    def fail() -> None:
        raise LookupError

    # Two rounds of programs are started; only the first may be waited for.
    started = time.monotonic()
    with pytest.raises(LookupError):
        take_snapshot(Slow(), meanwhile=fail)
    assert time.monotonic() - started < 5


class Asked(Fake):
    """A machine that remembers how long each program was given."""

    def __init__(self, results: Mapping[str, Result]) -> None:
        """Take how programs end."""
        super().__init__(results=results)
        self.patience: dict[str, float] = {}

    def run_all(self, commands: tuple[Command, ...]) -> tuple[Result, ...]:
        """How programs end."""
        self.patience.update({each.name: each.timeout for each in commands})
        return super().run_all(commands)


@pytest.mark.parametrize(
    ("nvml", "patience"),
    [
        (Result(outcome="timeout", error="did not answer"), 3.0),
        (Result(outcome="crash", code=-11), 8.0),
    ],
)
def test_nvidia_smi_is_not_waited_for_as_long_once_nvml_hangs(
    nvml: Result, patience: float
) -> None:
    source = Asked({"payload:query_nvml": nvml})
    take_snapshot(source, timeout=8.0)
    assert source.patience["payload:query_nvml"] == 8.0
    assert source.patience["nvidia-smi-query"] == patience
    assert source.patience["nvidia-smi-banner"] == patience


# The kernel's log.

PCI = (PciDevice(address="0000:06:00.0", device="2335", class_code="0302"),)


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("NVRM: Xid (PCI:0000:06:00): 79, GPU has fallen off the bus.", True),
        ("pcieport 0000:00:01.0: AER: Corrected error message received from 0000:06:00.0", True),
        ("pci 0000:06:00.0: BAR 1: no space for [mem size 0x2000000000 64bit pref]", True),
        ("pci 0000:06:00.0: [10de:2335] type 00 class 0x030200", False),
        ("pcieport 0000:00:01.0: AER: Corrected error message received from 0000:05:00.0", False),
        ("Loading of module with unavailable key is rejected", True),
        ("usb 1-1: new high-speed USB device", False),
    ],
)
def test_lines_that_are_kept(line: str, kept: bool) -> None:
    pattern = kernel.log_command(PCI).keep
    assert pattern is not None
    assert bool(re.search(pattern, line, re.IGNORECASE)) is kept


def test_without_devices_their_trouble_is_not_looked_for() -> None:
    pattern = kernel.log_command(None).keep
    assert pattern is not None
    assert re.search(pattern, "pcieport 0000:00:01.0: AER: Corrected error", re.IGNORECASE) is None


REFUSED = done("", 1, "dmesg: read kernel buffer failed: Operation not permitted\n")
JOURNALS = Fake({"/var/log/journal/0123/system.journal": ""})


def test_the_journal_is_asked_where_the_log_may_not_be_read() -> None:
    log = kernel.log_command(PCI)
    with_journal, without = quiet(JOURNALS)[0], quiet(Fake())[0]
    (command,) = kernel.journal_command(with_journal, {"dmesg": REFUSED}, log)
    assert (command.name, command.argv[0], command.keep) == ("journalctl", "journalctl", log.keep)
    assert kernel.journal_command(with_journal, {"dmesg": done("")}, log) == ()
    assert kernel.journal_command(without, {"dmesg": REFUSED}, log) == ()


def test_an_empty_journal_is_no_answer() -> None:
    line = "NVRM: Xid (PCI:0000:06:00): 48"
    assert kernel.kernel_log(REFUSED, Notes(), done(line + "\n")) == (line,)
    notes = Notes()
    assert kernel.kernel_log(REFUSED, notes, done("")) is None
    assert [(gap.path, "not permitted" in gap.reason) for gap in notes.gaps] == [
        ("host.driver.kernel_log", True)
    ]


# The driver's libraries.


@pytest.mark.parametrize(
    ("path", "compat"),
    [
        ("/usr/local/cuda-13.0/compat/libcuda.so.1", True),
        ("/usr/local/cuda/compat/lib.real/libcuda.so.1", True),
        ("/opt/conda/cuda-compat/libcuda.so.1", True),
        ("/usr/local/cuda/compat", True),
        ("/opt/compatible/lib/libcuda.so.1", False),
        ("/usr/lib/x86_64-linux-gnu/libcuda.so.1", False),
    ],
)
def test_which_paths_are_of_cuda_compat(path: str, compat: bool) -> None:
    assert driver_files._is_compat(quiet(Fake())[0], path) is compat


NO_KERNEL = Kernel(
    module_version=None,
    proc_version=None,
    module_loaded=None,
    uvm_loaded=None,
    nouveau_loaded=None,
    secure_boot=None,
    lockdown=None,
)


def libcuda(folder: Path, version: int) -> None:
    folder.mkdir(parents=True)
    (folder / "source.c").write_text(
        f"int cuDriverGetVersion(int *v) {{ *v = {version}; return 0; }}\n"
        "int cuInit(unsigned flags) { (void)flags; return 804; }\n",
        encoding="utf-8",
    )
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-o", folder / "libcuda.so.1", folder / "source.c"], check=True
    )


def test_the_drivers_own_cuda_behind_cuda_compat(tmp_path: Path) -> None:
    libcuda(tmp_path / "compat", 13020)
    libcuda(tmp_path / "driver", 12040)
    path = f"{tmp_path}/compat:{tmp_path}/driver"
    live = Live(variables={"LD_LIBRARY_PATH": path, "PATH": "/usr/bin:/bin"})
    facts = take_snapshot(live, python="/usr/bin/python3").host.driver
    assert facts.compat_path == f"{tmp_path}/compat/libcuda.so.1"
    assert facts.cuda == "12.4"
    assert [(each.value, each.via) for each in facts.cuda_readings] == [
        ("12.4", f"{tmp_path}/driver/libcuda.so.1"),
        ("13.2", f"libcuda of {tmp_path}/compat/libcuda.so.1"),
    ]
    assert (facts.libcuda.outcome, facts.libcuda.code) == ("error", 804)


def test_files_that_cannot_be_loaded_are_not_called_missing(tmp_path: Path) -> None:
    for name in ("libcuda.so.1", "libnvidia-ml.so.1"):
        (tmp_path / name).write_bytes(Path("/bin/true").read_bytes()[:100])
    live = Live(variables={"LD_LIBRARY_PATH": str(tmp_path), "PATH": "/usr/bin:/bin"})
    facts = take_snapshot(live, python="/usr/bin/python3").host.driver
    for answer, name in ((facts.nvml, "libnvidia-ml.so.1"), (facts.libcuda, "libcuda.so.1")):
        assert (answer.outcome, answer.code) == ("error", None)
        assert f"{tmp_path}/{name}" in (answer.message or "")


def test_an_interpreter_that_does_not_start_says_nothing_of_the_libraries() -> None:
    results = {
        f"payload:{name}": Result(outcome="missing", error="Resource temporarily unavailable")
        for name in ("query_nvml", "query_libcuda")
    }
    facts = driver.read_driver(quiet(Fake())[0], NO_KERNEL, DriverFiles(), results, Notes())
    for answer in (facts.nvml, facts.libcuda):
        assert (answer.outcome, answer.message) == ("not-asked", "Resource temporarily unavailable")


def test_the_drivers_libcuda_is_found_after_compat_in_the_cache() -> None:
    fake = Fake(
        {
            "/usr/local/cuda-13.0/compat/libcuda.so.580.65.06": "",
            "/usr/lib64/libcuda.so.550.54.15": "",
        },
        links={
            "/usr/local/cuda-13.0/compat/libcuda.so.1": "libcuda.so.580.65.06",
            "/usr/lib64/libcuda.so.1": "libcuda.so.550.54.15",
        },
    )
    cache = done(
        "\tlibcuda.so.1 (libc6,x86-64) => /usr/local/cuda-13.0/compat/libcuda.so.1\n"
        "\tlibcuda.so.1 (libc6,x86-64) => /usr/lib64/libcuda.so.1\n"
    )
    found = driver_files.find_libcuda(quiet(fake)[0], {"ldconfig": cache})
    assert found.compat == ("/usr/local/cuda-13.0/compat/libcuda.so.580.65.06", "580.65.06")
    assert found.own == ("/usr/lib64/libcuda.so.550.54.15", "550.54.15")


# The system.


@pytest.mark.parametrize("content", [b"\xff\xfe\x00ID=ubuntu", b'ID="unfinished'])
def test_a_release_file_that_is_no_text_leaves_the_rest(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "os-release").write_bytes(content)
    fake = Fake({"/proc/version": "Linux version 6.8.0-60-generic (x@y)\n"})
    fake.root = str(tmp_path)
    found = operating_system.read_os(quiet(fake)[0], {"uname": done("x86_64\n")})
    assert (found.kernel, found.machine) == ("6.8.0-60-generic", "x86_64")
    assert found.id in {None, "unfinished"}


def test_a_container_on_a_jetson() -> None:
    tree = Fake({"/proc/device-tree/compatible": "nvidia,p3737-0000\0nvidia,tegra234\0"})
    board = Fake({"/proc/device-tree/compatible": "raspberrypi,5-model-b\0brcm,bcm2712\0"})
    assert operating_system.read_jetson(quiet(tree)[0], "aarch64") == "unknown"
    assert operating_system.read_jetson(quiet(tree)[0], "x86_64") is None
    assert operating_system.read_jetson(quiet(board)[0], "aarch64") is None


# Engines.

RUNTIME = '{"runtimes": {"nvidia": {"path": "nvidia-container-runtime"}}}'
NVIDIA_TOML = "[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.nvidia]\n"


@pytest.mark.parametrize(
    ("files", "engine"),
    [
        (
            {"/usr/bin/docker": "", "/opt/docker-desktop/bin/x": ""},
            Engine(name="docker", desktop=True),
        ),
        (
            {"/usr/bin/docker": "", "/usr/bin/dockerd": "", "/opt/docker-desktop/bin/x": ""},
            Engine(name="docker", runtimes=()),
        ),
        (
            {"/usr/bin/dockerd": "", "/home/al/.config/docker/daemon.json": RUNTIME},
            Engine(name="docker", runtimes=("nvidia",)),
        ),
        (
            {
                "/snap/bin/docker": "",
                "/run/docker.sock": "",
                "/var/snap/docker/current/config/daemon.json": RUNTIME,
            },
            Engine(name="docker", runtimes=("nvidia",)),
        ),
        (
            {
                "/usr/bin/containerd": "",
                "/etc/containerd/config.toml": 'imports = ["/etc/containerd/conf.d/*.toml"]\n',
                "/etc/containerd/conf.d/99-nvidia.toml": NVIDIA_TOML,
            },
            Engine(name="containerd", runtimes=("nvidia",)),
        ),
    ],
)
def test_where_engines_are_configured(files: dict[str, str], engine: Engine) -> None:
    fake = Fake(files, variables={"HOME": "/home/al", "PATH": "/usr/bin:/snap/bin"})
    assert engines.read_engines(quiet(fake)[0], {}) == (engine,)


def test_a_client_alone_is_no_engine() -> None:
    assert engines.read_engines(quiet(Fake({"/usr/bin/docker": ""}))[0], {}) == ()


# People and hosts that are called like something else.


def redactor(user: str, host: str = "box7") -> Redactor:
    return Redactor({"USER": user, "HOME": f"/home/{user}"}, lambda _path: f"{host}\n")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/scratch/alice/venv/bin/python", "/scratch/$USER/venv/bin/python"),
        ("/scratch/alice_exp/venv", "/scratch/${USER}_exp/venv"),
        ("/scratch/team-alice/x", "/scratch/team-$USER/x"),
        ("run by alice on box7", "run by host on host"),
        ("/data/box7/x", "/data/host/x"),
        ("PATH=/opt/x: alice", "PATH=/opt/x: host"),
    ],
)
def test_a_path_outside_the_home_folder_can_still_be_typed(text: str, expected: str) -> None:
    assert redactor("alice")(text) == expected


def test_a_package_called_like_the_user_stays() -> None:
    package = Package(name="ray", version="2.9.0", location="/scratch/ray/site-packages")
    assert _without_identifiers(package, redactor("ray")) == Package(
        name="ray", version="2.9.0", location="/scratch/$USER/site-packages"
    )
    assert redactor("ray")('{"name": "ray", "user": "ray"}') == '{"name": "ray", "user": "host"}'


def test_a_distribution_called_like_the_host_stays(tmp_path: Path) -> None:
    system = Os(id="alpine", codename="noble", kernel="6.8.0-alpine")
    assert _without_identifiers(system, redactor("x", "alpine")) == Os(
        id="alpine", codename="noble", kernel="6.8.0-host"
    )
    release = "ID=alpine\nVERSION_ID=3.20\n"
    recorder = Recorder(Fake({"/etc/hostname": "alpine\n", "/etc/os-release": release}))
    snapshot = take_snapshot(recorder)
    recorder.save(str(tmp_path / "m"), snapshot)
    assert (tmp_path / "m/root/etc/os-release").read_text(encoding="utf-8") == release
    assert (tmp_path / "m/root/etc/hostname").read_text(encoding="utf-8") == "host\n"
