"""The watched tree, on processes of this machine."""

from __future__ import annotations

import os
import subprocess
import sys
import time

from envcheck.watch.processes import Tree, has_context, read_stat

PARENT = (
    "import subprocess, sys\n"
    "busy = 'import time\\nend = time.time() + 20\\nwhile time.time() < end: pass'\n"
    "child = subprocess.Popen([sys.executable, '-c', busy])\n"
    "print(child.pid, flush=True)\n"
    "sys.stdin.read()\n"
    "child.kill()\n"
)


def test_a_tree_follows_children_and_their_cpu() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        tree = Tree((parent.pid,))
        tree.look_around()
        tree.usage(1.0)
        time.sleep(0.5)
        used = tree.usage(0.5)
        assert set(tree.processes) == {parent.pid, child}
        assert (used["procs"], used["gpu_cpu"]) == (2, 0.0)
        assert 0.0 < used["worker_cpu"] < 1.3  # less where others want the core too
        assert (tree.alive, tree.ever_context) == (True, False)
    assert not tree.alive


def test_this_process_holds_no_context() -> None:
    assert has_context(os.getpid()) is False
    assert has_context(2**30) is None


def test_a_name_with_brackets_and_spaces_is_read() -> None:
    code = "import ctypes; ctypes.CDLL(None).prctl(15, b'a) (b c', 0, 0, 0); input()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE) as child:
        until = time.monotonic() + 10
        while time.monotonic() < until:
            stat = read_stat(f"/proc/{child.pid}/stat")
            if stat is not None and stat.name == "a) (b c":
                break
            time.sleep(0.02)
        assert stat is not None
        assert (stat.name, stat.parent) == ("a) (b c", os.getpid())
        child.kill()
