"""The machine that envcheck runs on."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from envcheck.probe.leftovers import MARK, end_marked, new_mark
from envcheck.probe.source import TOOL_FOLDERS, Command, Result, Stat

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from subprocess import Popen

    Children = list[tuple[Popen[bytes], str]]

Kind = Literal["file", "directory", "link", "char", "block", "other"]

READ_LIMIT = 16_000_000
"""Bytes of a file that are read; nothing that the probe asks for is larger."""

_POLL = 0.25
"""Seconds between looks at whether a silent child has ended."""

_GRACE = 1.0
"""Seconds that a killed child is waited for; one in uninterruptible sleep never ends."""

_RUN_FOLDERS = (*TOOL_FOLDERS, "/usr/lib/wsl/lib")
"""Folders that programs are run from; WSL's own nvidia-smi lies beside its libraries."""

_KEPT = ("PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "SYSTEMROOT")
_KEPT_PREFIXES = (
    "LD_",
    "CUDA_",
    "NVIDIA_",
    "NCCL_",
    "PYTHON",
    "PYENV_",
    "CONDA_",
    "VIRTUAL_ENV",
    "XDG_",
    "TORCH_",
    "PYTORCH_",
    "TF_",
    "XLA_",
    "JAX_",
)


_ABSENT = (FileNotFoundError, NotADirectoryError, IsADirectoryError, ValueError)
"""No such file. A path read out of somebody's file may also be one that no file can have."""


class Live:
    """Reads files and runs programs here; never through a shell, never longer than asked."""

    name = "live"
    root = "/"

    def __init__(self, variables: Mapping[str, str] | None = None) -> None:
        """Take the environment of this process, or another one for tests."""
        self._variables = dict(os.environ if variables is None else variables)

    @property
    def variables(self) -> Mapping[str, str]:
        """Environment of the user's programs."""
        return self._variables

    def read(self, path: str) -> str | None:
        """Text of a file; see `Source.read`."""
        try:
            # Not blocking: a pipe that nobody writes to would be waited on for ever.
            number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except _ABSENT:
            return None
        if _kind(os.fstat(number).st_mode) != "file":
            os.close(number)
            return None
        # Piece by piece: asked for all at once, room for the limit is taken for each small file.
        chunks = []
        size = 0
        with os.fdopen(number, "rb", buffering=0) as stream:
            while size < READ_LIMIT and (data := stream.read(65536)):
                chunks.append(data)
                size += len(data)
        return b"".join(chunks).decode("utf-8", "replace")

    def list(self, path: str) -> tuple[str, ...] | None:
        """Names in a folder; see `Source.list`."""
        try:
            return tuple(sorted(os.listdir(path)))  # noqa: PTH208 - names, not paths
        except _ABSENT:
            return None

    def stat(self, path: str) -> Stat | None:
        """What a path is; see `Source.stat`."""
        try:
            facts = os.lstat(path)
        except _ABSENT:
            return None
        kind = _kind(facts.st_mode)
        device = kind in {"char", "block"}
        size: int | None = None
        if kind == "directory":
            try:
                room = os.statvfs(path)
                size = room.f_blocks * room.f_frsize
            except OSError:
                size = None
        return Stat(
            kind=kind,
            mode=facts.st_mode & 0o7777,
            size=facts.st_size if kind == "file" else 0,
            target=str(Path(path).readlink()) if kind == "link" else None,
            major=os.major(facts.st_rdev) if device else None,
            minor=os.minor(facts.st_rdev) if device else None,
            readable=os.access(path, os.R_OK),
            writable=os.access(path, os.W_OK),
            executable=os.access(path, os.X_OK),
            filesystem_bytes=size,
        )

    def taken_at(self) -> str:
        """Now, in UTC."""
        import time

        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())

    def interpreter(self) -> str:
        """The interpreter that runs envcheck."""
        return sys.executable or "python3"

    def run(self, command: Command) -> Result:
        """Run one program; see `Source.run`."""
        return self.run_all((command,))[0]

    def run_all(self, commands: tuple[Command, ...]) -> tuple[Result, ...]:
        """Run programs side by side; see `Source.run_all`."""
        import atexit
        import threading

        results: list[Result | None] = [None] * len(commands)
        children: Children = []

        def work(at: int) -> None:
            try:
                results[at] = self._run(commands[at], children)
            except Exception as error:  # whatever is refused here, the other programs answer
                results[at] = Result(outcome="missing", error=f"could not be started: {error}")

        # Daemon threads: a child that not even SIGKILL ends must not keep envcheck from ending.
        threads = [
            threading.Thread(target=work, args=(at,), daemon=True) for at in range(len(commands))
        ]

        def end_all() -> None:
            running = [each for each in tuple(children) if each[0].returncode is None]
            for child, _ in running:
                _end_group(child, patience=0.0)
            if running:
                end_marked(tuple(mark for _, mark in running))

        # Ctrl-C does not reach the children, since each leads a group of its own; and it may be
        # another thread than this one that it ends.
        atexit.register(end_all)
        try:
            started = []
            for at, thread in enumerate(threads):
                try:
                    thread.start()
                except RuntimeError:
                    # Out of memory or of processes: one after the other, then.
                    work(at)
                else:
                    started.append((thread, commands[at]))
            for thread, command in started:
                thread.join(command.timeout + 3 * _GRACE)
        except BaseException:
            end_all()
            raise
        finally:
            atexit.unregister(end_all)
        return tuple(
            result
            or Result(outcome="timeout", seconds=command.timeout, error="the child did not end")
            for result, command in zip(results, commands, strict=True)
        )

    def _run(self, command: Command, children: Children) -> Result:
        import subprocess
        import time

        program = self._find(command.argv[0])
        if program is None:
            return Result(outcome="missing", error=f"{command.argv[0]}: not found")
        started = time.monotonic()
        mark = new_mark()
        try:
            child = subprocess.Popen(
                [program, *command.argv[1:]],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**self._child_variables(payload=command.payload), MARK: mark},
                start_new_session=True,
                cwd="/",
            )
        except OSError as error:
            return Result(outcome="missing", error=f"{program}: {error.strerror or error}")
        children.append((child, mark))
        try:
            result = _collect(child, mark, command, started)
        except BaseException:
            _end_group(child)
            raise
        return result if command.keep is None else _keep_lines(result, command.keep)

    def _find(self, program: str) -> str | None:
        if "/" in program:
            return program if os.access(program, os.X_OK) else None
        folders = self._variables.get("PATH", "").split(os.pathsep)
        for folder in (*folders, *_RUN_FOLDERS):
            # A relative entry names whatever lies in the working directory: never run that.
            if folder.startswith("/"):
                candidate = f"{folder.rstrip('/')}/{program}"
                if os.access(candidate, os.X_OK) and not Path(candidate).is_dir():
                    return candidate
        return None

    def _child_variables(self, *, payload: bool) -> dict[str, str]:
        kept = {
            name: value
            for name, value in self._variables.items()
            if name in _KEPT or (name.startswith(_KEPT_PREFIXES) and (payload or name[:3] == "LD_"))
        }
        if payload:
            # A look at a machine leaves no file behind, in the user's environment least of all.
            kept["PYTHONDONTWRITEBYTECODE"] = "1"
        else:
            # Tools are read by their English words.
            kept["LC_ALL"] = "C.UTF-8"
        kept.setdefault("PATH", ":".join(_RUN_FOLDERS))
        return kept


def _kind(mode: int) -> Kind:
    import stat

    tests: tuple[tuple[Callable[[int], bool], Kind], ...] = (
        (stat.S_ISREG, "file"),
        (stat.S_ISDIR, "directory"),
        (stat.S_ISLNK, "link"),
        (stat.S_ISCHR, "char"),
        (stat.S_ISBLK, "block"),
    )
    return next((name for test, name in tests if test(mode)), "other")


def _collect(child: Popen[bytes], mark: str, command: Command, started: float) -> Result:
    """Read both outputs until the child ends, floods or is out of time; end all that is left."""
    import selectors
    import subprocess
    import time

    chunks: dict[str, list[bytes]] = {"out": [], "err": []}
    size = 0
    deadline = started + command.timeout
    outcome: str = "ok"
    held = False
    with selectors.DefaultSelector() as selector:
        for stream, name in ((child.stdout, "out"), (child.stderr, "err")):
            if stream is not None:
                selector.register(stream, selectors.EVENT_READ, name)
        while selector.get_map():
            left = deadline - time.monotonic()
            if left <= 0:
                outcome = "timeout"
                break
            ready = selector.select(min(left, _POLL))
            # A daemon that the child started may hold its outputs open for ever.
            if not ready and child.poll() is not None:
                held = True
                break
            for key, _ in ready:
                data = os.read(key.fd, 65536)
                if not data:
                    selector.unregister(key.fileobj)
                    continue
                size += len(data)
                chunks[key.data].append(data)
            if size > command.limit_bytes:
                outcome = "flood"
                break
    code: int | None = None
    try:
        if outcome == "ok":
            code = child.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        outcome = "timeout"
    _end_group(child)
    if outcome != "ok" or held:
        end_marked((mark,))
    for stream in (child.stdout, child.stderr):
        if stream is not None:
            stream.close()
    seconds = time.monotonic() - started
    stdout, stderr = (b"".join(chunks[name]).decode("utf-8", "replace") for name in ("out", "err"))
    if outcome == "ok":
        crashed = code is not None and code < 0
        return Result(
            outcome="crash" if crashed else "ok",
            code=code,
            stdout=stdout,
            stderr=stderr,
            seconds=seconds,
        )
    error = (
        f"printed more than {command.limit_bytes} bytes and was stopped"
        if outcome == "flood"
        else f"did not answer within {command.timeout:g} s and was stopped"
    )
    return Result(outcome="timeout", stdout=stdout, stderr=stderr, seconds=seconds, error=error)


def _keep_lines(result: Result, pattern: str) -> Result:
    import dataclasses
    import re

    wanted = re.compile(pattern, re.I)
    lines = [line for line in result.stdout.splitlines() if wanted.search(line)]
    return dataclasses.replace(result, stdout="".join(f"{line}\n" for line in lines))


def _end_group(child: Popen[bytes], patience: float = _GRACE) -> None:
    """Kill what is left of a child's process group; give up on one that cannot be killed."""
    import contextlib
    import signal
    import subprocess

    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(patience)
