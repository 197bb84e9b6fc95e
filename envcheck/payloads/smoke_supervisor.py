"""Runs one program and sees to it that nothing of it is left, however it or envcheck ends.

    python smoke_supervisor.py WATCHED_FD PROGRAM ARGUMENT...

It ends the program and all that descends from it - DataLoader workers, ranks of torchrun, which
lead sessions of their own - when the program ends, when SIGTERM comes, and when the other end of
the pipe WATCHED_FD closes: that is, when envcheck is done with it or has died in any way. Files
that they left in /dev/shm and the folder for temporary files that they were given go with them. The
last line says how the program ended.
"""

import contextlib
import ctypes
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

MARKER = "envcheck-json:"
PR_SET_CHILD_SUBREAPER = 36
SHARED = "/dev/shm"
LOOK = 0.2
"""Seconds between looks at what is new in shared memory."""
PATIENCE = 5.0
"""Seconds that killed processes are waited for; one in uninterruptible sleep never ends."""


def become_parent_of_orphans():
    """Whoever loses its parent below this process becomes its child, and stays findable."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def descendants():
    """Process ids of everything below this process."""
    parents = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open("/proc/%s/stat" % name, "rb") as file:
                    fields = file.read().rpartition(b")")[2].split()
            except OSError:
                continue
            if fields[:1] != [b"Z"]:
                parents[int(name)] = int(fields[1])
    found: "set[int]" = set()
    edge = {os.getpid()}
    while edge:
        edge = {pid for pid, parent in parents.items() if parent in edge} - found
        found |= edge
    return found


class SharedMemory:
    """Files in /dev/shm that the supervised processes made."""

    def __init__(self):
        """Remember what is there already."""
        self.before = self.names()
        self.unknown = set()
        self.ours = set()
        self.pids = set()

    def names(self):
        """Names of the files there."""
        try:
            return set(os.listdir(SHARED))
        except OSError:
            return set()

    def look(self):
        """Find out which of the new files these processes have open or mapped."""
        new = self.names() - self.before - self.ours
        if not new:
            return
        for pid in descendants():
            self.pids.add(pid)
            for name in new & self.used_by(pid):
                self.ours.add(name)

    def used_by(self, pid):
        """Files of shared memory that a process has mapped or open."""
        found = set()
        try:
            with open("/proc/%d/maps" % pid) as maps:
                for line in maps:
                    at = line.find(SHARED + "/")
                    if at > 0:
                        found.add(line[at + len(SHARED) + 1 :].split(" (deleted)")[0].strip())
            for descriptor in os.listdir("/proc/%d/fd" % pid):
                path = os.readlink("/proc/%d/fd/%s" % (pid, descriptor))
                if path.startswith(SHARED + "/"):
                    found.add(path[len(SHARED) + 1 :])
        except OSError:
            pass
        return found

    def remove(self):
        """Remove what is left of them, and nothing of anybody else."""
        for name in self.names() - self.before:
            named = any("_%d_" % pid in name for pid in self.pids)
            if name in self.ours or (named and name.startswith("torch_")):
                with contextlib.suppress(OSError):
                    os.unlink(os.path.join(SHARED, name))


def end_all():
    """Kill every descendant, until none is left or patience ends; the ids of those left."""
    deadline = time.monotonic() + PATIENCE
    while True:
        left = descendants()
        for pid in left:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        reap()
        if not left or time.monotonic() > deadline:
            return sorted(left)
        time.sleep(0.01)


def reap():
    """Collect children that have ended; their statuses by id."""
    ended: "dict[int, int]" = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if pid == 0:
            return ended
        ended[pid] = status


def code_of(status):
    """Exit status, or minus the number of the signal."""
    return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def supervise(watched, program):
    """Run a program; returns how it ended, None when it was ended here, and what is still there."""
    wake, woken = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    stop = []
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGTERM, lambda *_: stop.append(True))
    for each in (signal.SIGINT, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)
    shared = SharedMemory()
    code = None
    # Its own session: what it sends to its process group does not hit this process.
    child = subprocess.Popen(program, start_new_session=True)
    try:
        while not stop:
            ready, _, _ = select.select([watched, wake], [], [], LOOK)
            shared.look()
            if wake in ready:
                os.read(wake, 4096)
            ended = reap()
            if child.pid in ended:
                code = code_of(ended[child.pid])
                break
            if watched in ready:
                break
    finally:
        shared.look()
        left = end_all()
        shared.remove()
    child.returncode = 0  # collected above
    return code, left


def main(argv):
    """Supervise the program in argv."""
    watched, program = int(argv[1]), argv[2:]
    os.set_inheritable(watched, False)
    become_parent_of_orphans()
    folder = tempfile.mkdtemp(prefix="envcheck-")
    os.environ["TMPDIR"] = folder
    try:
        code, left = supervise(watched, program)
    except OSError as error:
        code, left = 127, []
        sys.stderr.write("%s: %s\n" % (program[0], error))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    end = json.dumps({"event": "end", "code": code, "left": left})
    with contextlib.suppress(OSError):  # perhaps nobody listens any more
        os.write(1, ("\n%s%s\n" % (MARKER, end)).encode())


if __name__ == "__main__":
    main(sys.argv)
