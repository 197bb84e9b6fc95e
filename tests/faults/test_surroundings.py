"""Poor surroundings: no /proc, no room, no memory, odd clocks and interpreters, traps."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

import envcheck
from tests.cli.runner import environment
from tests.faults.conftest import Ran, doctor

HOME = str(Path(envcheck.__file__).resolve().parents[1])


def namespace(script: str) -> tuple[str, ...]:
    """A program that runs another after a script, where mounts are its own.

    Skips where this user may not make one.
    """
    flags = ("-m",) if os.getuid() == 0 else ("-rm",)
    probe = subprocess.run(
        ["unshare", *flags, "sh", "-c", "mount -t tmpfs none /mnt"],
        capture_output=True,
        check=False,
    )
    if probe.returncode:
        pytest.skip(f"no mount namespaces here: {probe.stderr.decode().strip()}")
    return ("unshare", *flags, "sh", "-ec", f'{script}; exec "$@"', "sh")


@pytest.mark.parametrize(
    "script",
    [
        "mount -t tmpfs none /sys",
        "mount -t tmpfs none /proc",
        "mount -t tmpfs none /sys; mount -t tmpfs none /proc; mount -t tmpfs none /dev/shm",
    ],
    ids=["sys", "proc", "all"],
)
def test_kernel_folders_that_hold_nothing(script: str, undisturbed: Ran) -> None:
    ran = doctor(prefix=namespace(script))
    assert ran.report["verdict"] != "ok"
    # What is not seen is not said to be absent.
    alarms = {each["id"] for each in ran.report["findings"] if each["severity"] != "info"}
    assert alarms <= {each["id"] for each in undisturbed.report["findings"]}


def test_no_shared_memory(undisturbed: Ran) -> None:
    # A folder in its place: /dev itself may not be changed here.
    ran = doctor(prefix=namespace("mount -t tmpfs -o size=4k none /dev/shm"))
    assert ran.report["verdict"] == undisturbed.report["verdict"]
    assert ran.report["snapshot"]["host"]["shm_bytes"] == 4096


def test_a_full_disk_leaves_no_half_report(tmp_path: Path) -> None:
    """What stands there afterwards is the one line that says so, and no draft."""
    script = f"mount -t tmpfs -o size=4k none {tmp_path}"
    listing = f'"$@" || code=$?; ls -A {tmp_path}; cat {tmp_path}/r.json; exit $code'
    prefix = (*namespace(script)[:-2], f"{script}; {listing}", "sh")
    done = subprocess.run(
        [*prefix, sys.executable, "-m", "envcheck", "doctor", "--json", "-o", f"{tmp_path}/r.json"],
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
        env=environment(),
    )
    assert done.returncode == 2
    assert done.stderr == f"envcheck: cannot write {tmp_path}/r.json: No space left on device\n"
    names, _, text = done.stdout.partition("\n")
    assert names == "r.json"
    assert "No space left on device" in json.loads(text)["error"]["message"]


def test_a_root_that_cannot_be_written(undisturbed: Ran) -> None:
    prefix = namespace("mount -o remount,ro,bind /")
    assert doctor(prefix=prefix).report["verdict"] == undisturbed.report["verdict"]


def test_sixty_four_megabytes(undisturbed: Ran) -> None:
    """Threads do not fit beside everything else then: programs are asked one after the other."""
    ran = doctor(prefix=("prlimit", f"--as={64 << 20}"))
    if ran.report.get("error"):  # some builds of Python take more for themselves
        assert (ran.code, ran.stderr) == (3, "envcheck: out of memory\n")
    else:
        assert ran.report["verdict"] == undisturbed.report["verdict"]


def test_a_narrow_pipe_and_a_slow_reader() -> None:
    read, write = os.pipe()
    fcntl.fcntl(write, 1031, 4096)  # F_SETPIPE_SZ
    with subprocess.Popen(
        [sys.executable, "-m", "envcheck", "doctor", "--json"],
        stdout=write,
        stderr=subprocess.PIPE,
        cwd="/",
        env=environment(),
    ) as child:
        os.close(write)
        text = b""
        while chunk := os.read(read, 1000):
            text += chunk
            time.sleep(0.001)
        os.close(read)
        assert child.stderr is not None
        assert child.stderr.read() == b""
    assert len(text) > 4096
    assert json.loads(text)["schema_version"] == "1"


@pytest.mark.parametrize(
    "variables",
    [
        {"PATH": None, "HOME": None, "USER": None, "LOGNAME": None, "LANG": None},
        {"PATH": "/nonexistent:relative::.", "HOME": "/proc/nowhere", "TMPDIR": "/nonexistent"},
        {"HOME": "/dev/null", "XDG_CACHE_HOME": "/proc", "TMPDIR": "/proc", "LC_ALL": "xx_YY"},
    ],
    ids=["nothing", "nowhere", "unwritable"],
)
def test_no_path_and_no_home(variables: dict[str, str | None], undisturbed: Ran) -> None:
    ran = doctor(variables={"VIRTUAL_ENV": sys.prefix, **variables})
    assert ran.stderr == ""
    assert ran.report["verdict"] == undisturbed.report["verdict"]


def test_the_clock_says_1970(tmp_path: Path, undisturbed: Ran) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import time\n"
        "real = time.gmtime\n"
        "time.time = lambda: 86400.0\n"
        "time.gmtime = lambda at=None: real(86400.0 if at is None else at)\n",
        encoding="utf-8",
    )
    path = f"{tmp_path}:{environment().get('PYTHONPATH', '')}"
    ran = doctor(variables={"PYTHONPATH": path})
    assert ran.report["snapshot"]["taken_at"] == "1970-01-02T00:00:00Z"
    assert ran.report["verdict"] == undisturbed.report["verdict"]


@pytest.mark.parametrize("flag", ["-I", "-E", "-S", "-O", "-OO", "-B"])
def test_python_started_with(flag: str, undisturbed: Ran) -> None:
    paths = [HOME, *(each for each in sys.path if "site-packages" in each)]
    program = f"import sys; sys.path += {paths!r}; from envcheck.cli import main; sys.exit(main())"
    ran = doctor(python=(sys.executable, flag, "-c", program))
    assert ran.report["verdict"] == undisturbed.report["verdict"]


@pytest.mark.parametrize(
    "body", ["exit 1", "kill -SEGV $$", "sleep 60", "yes", "echo 'envcheck-json:{}'"]
)
def test_a_python_that_is_broken_is_named(tmp_path: Path, body: str) -> None:
    python = tmp_path / "python3"
    python.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    python.chmod(0o755)
    ran = doctor("--timeout", "1", "--python", str(python))
    assert str(python) in ran.report["snapshot"]["env"]["python"]["error"]
    assert ran.report["verdict"] != "ok"


OLD = [
    path
    for minor in (6, 7, 8)
    for path in sorted(Path.home().glob(f".pyenv/versions/3.{minor}.*/bin/python"))
]


@pytest.mark.parametrize("minor", [6, 8])
def test_an_old_python_is_judged(minor: int) -> None:
    found = [path for path in OLD if f"/3.{minor}." in str(path)]
    if not found:
        pytest.skip(f"there is no Python 3.{minor} on this machine")
    ran = doctor("--python", str(found[0]))
    python = ran.report["snapshot"]["env"]["python"]
    assert (python["error"], python["version"][:4]) == (None, f"3.{minor}.")


UNUSUAL = {
    "free-threaded": ("sysconfig.get_config_vars()['Py_GIL_DISABLED'] = 1", "{}{}t", "glibc"),
    "musl": ("os.confstr = no_such_name\nposix_lib.append('ld-musl-x86_64.so.1')", "{}{}", "musl"),
    "of-tomorrow": ("sys.version_info = (3, 99, 0, 'final', 0)", "399", "glibc"),
}
"""Name -> what makes an interpreter look so from inside, the end of its tag, and its C library."""


@pytest.mark.parametrize("name", UNUSUAL)
def test_an_interpreter_of_another_kind_is_judged(tmp_path: Path, name: str) -> None:
    change, tag, libc = UNUSUAL[name]
    python = tmp_path / "bin" / "python3"
    python.parent.mkdir()
    python.write_text(
        f"#!{sys.executable}\n"
        "import os, runpy, sys, sysconfig\n"
        "def no_such_name(name): raise ValueError('unrecognized configuration name')\n"
        "posix_lib, listdir = [], os.listdir\n"
        "os.listdir = lambda path='.': listdir(path) + (posix_lib if path == '/lib' else [])\n"
        f"{change}\n"
        "del sys.argv[0]\n"
        "runpy.run_path(sys.argv[0], run_name='__main__')\n",
        encoding="utf-8",
    )
    python.chmod(0o755)
    ran = doctor("--python", str(python))
    found = ran.report["snapshot"]["env"]["python"]
    assert found["error"] is None
    assert found["tag"] == "cp" + tag.format(*sys.version_info[:2])
    assert found["libc"].startswith(libc)
    # Without frameworks there is nothing that its kind could be wrong for.
    assert {each["id"] for each in ran.report["findings"]} <= {"no-gpu"}
    assert [each for each in ran.report["unknown"] if each["kind"] == "crashed"] == []


TRAPS = ("torch", "json", "ctypes", "pynvml", "distro", "packaging", "csv", "sitecustomize", "re")


@pytest.mark.parametrize("how", ["module", "script"])
def test_nothing_is_imported_from_the_working_folder(tmp_path: Path, how: str) -> None:
    sprung = tmp_path / "sprung"
    trap = tmp_path / "trap"
    trap.mkdir()
    for name in TRAPS:
        (trap / f"{name}.py").write_text(
            f"open({str(sprung)!r}, 'a').write('{name} ')\nraise SystemExit(99)\n", encoding="utf-8"
        )
    script = tmp_path / "bin" / "envcheck"
    script.parent.mkdir()
    script.write_text("import sys\nfrom envcheck.cli import main\nsys.exit(main())\n", "utf-8")
    python = ("-m", "envcheck") if how == "module" else (str(script),)
    ran = doctor("--deep", cwd=trap, python=(sys.executable, *python))
    assert not sprung.exists(), sprung.read_text(encoding="utf-8")
    assert ran.code in {0, 1}


def test_the_environment_of_another_user_under_sudo(tmp_path: Path) -> None:
    """Everything names somebody else's folders: they are read, and nothing in them is changed."""
    home = tmp_path / "home" / "al"
    site = home / "venv" / "lib" / "python3.12" / "site-packages"
    site.mkdir(parents=True)
    (home / "venv" / "bin").mkdir()
    (home / "venv" / "pyvenv.cfg").write_text("home = /usr/bin\nversion = 3.12.1\n", "utf-8")
    (home / "venv" / "bin" / "python").symlink_to("/nonexistent/python3.12")
    (site / "numpy-2.1.0.dist-info").mkdir()
    before = sorted(home.rglob("*"))
    ran = doctor(
        variables={
            "HOME": str(home),
            "USER": "root",
            "LOGNAME": "root",
            "SUDO_USER": "al",
            "SUDO_UID": "1000",
            "VIRTUAL_ENV": str(home / "venv"),
            "XDG_CACHE_HOME": str(home / ".cache"),
        }
    )
    env = ran.report["snapshot"]["env"]
    assert env["python"]["chosen_because"] == "VIRTUAL_ENV"
    assert [each["name"] for each in env["packages"]] == ["numpy"]
    assert sorted(home.rglob("*")) == before


SECCOMP = r"""
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>
int main(int argc, char **argv) {
    int number = atoi(argv[1]);
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {4, code};
    (void)argc;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) return 90;
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) return 90;
    execv(argv[2], argv + 2);
    return 91;
}
"""
REFUSED = {
    "epoll_create1": 291,
    "setsid": 112,
    "kill": 62,
    "statfs": 137,
    "readlink": 89,
    "pipe2": 293,
}


@pytest.fixture(scope="module")
def refusing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program that runs another one under a filter that refuses one system call."""
    if os.uname().machine != "x86_64" or shutil.which("gcc") is None:
        pytest.skip("needs gcc, and the numbers are those of x86_64")
    folder = tmp_path_factory.mktemp("seccomp")
    (folder / "refuse.c").write_text(SECCOMP, encoding="utf-8")
    subprocess.run(["gcc", "-o", folder / "refuse", folder / "refuse.c"], check=True)
    return folder / "refuse"


@pytest.mark.parametrize("call", list(REFUSED))
def test_a_system_call_that_is_refused(refusing: Path, call: str) -> None:
    ran = doctor(prefix=(str(refusing), str(REFUSED[call])))
    assert ran.code in {0, 1, 3}
    assert ran.report["verdict"] != "ok"
