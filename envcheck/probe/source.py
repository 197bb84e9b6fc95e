"""What a machine is to the probe: files to read, folders to list, paths, programs to run.

Everything that comes back is text or small records, so that a recorded machine is a folder of files
and every collector works on live, recorded, container and remote machines alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol

from envcheck.model.base import model

if TYPE_CHECKING:
    from collections.abc import Mapping


TOOL_FOLDERS = (
    "/usr/local/nvidia/bin",
    "/usr/local/cuda/bin",
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
)
"""Where tools are looked for after the user's own PATH, which may lack the sbin folders."""


@model
class Command:
    """A program to run, known to recordings by its logical name and not by its arguments.

    Attributes:
        name: logical name, unique per question: `nvidia-smi-query`, `payload:query_nvml`.
        argv: program and arguments. The program is found on a vetted PATH, never through a shell.
        timeout: seconds after which the whole process group is killed.
        keep: pattern of the output lines that matter; the others are dropped at once, so that a
            kernel log never enters a recording as a whole.
        payload: the argv runs a payload script of envcheck in some interpreter.
        limit_bytes: output beyond this is cut off and the program is killed.
    """

    name: str
    argv: tuple[str, ...]
    timeout: float = 10.0
    keep: str | None = None
    payload: bool = False
    limit_bytes: int = 8_000_000


@model
class Result:
    """How a program ended.

    `outcome` is `ok` when it ended by itself, with whatever `code`; `missing` when there is no such
    program; `timeout` when it was killed; `crash` when a signal ended it (then `code` is negative).
    `error` holds the system's words when it could not be started.
    """

    outcome: Literal["ok", "missing", "timeout", "crash"]
    code: int | None = None
    stdout: str = ""
    stderr: str = ""
    seconds: float = 0.0
    error: str | None = None


@model
class Stat:
    """What a path is. Times and owners are left out, so that recordings do not differ by them."""

    kind: Literal["file", "directory", "link", "char", "block", "other"]
    mode: int = 0
    size: int = 0
    target: str | None = None
    """Of a link: its text."""
    major: int | None = None
    minor: int | None = None
    readable: bool | None = None
    writable: bool | None = None
    executable: bool | None = None
    """This user may run it, links followed."""
    filesystem_bytes: int | None = None
    """Size of the file system below a directory (statvfs)."""


class Source(Protocol):
    """A machine that can be asked."""

    @property
    def name(self) -> str:
        """`live`, `recorded:<folder>`, ..."""

    @property
    def root(self) -> str:
        """Folder below which the machine's files lie: `/` when live."""

    def taken_at(self) -> str:
        """When the facts are of: now, or when they were recorded (ISO 8601, UTC)."""

    @property
    def variables(self) -> Mapping[str, str]:
        """Environment of the user's programs; allow-listed when recorded."""

    def read(self, path: str) -> str | None:
        """Text of a file, undecodable bytes replaced; None when absent. OSError when refused."""

    def list(self, path: str) -> tuple[str, ...] | None:
        """Sorted names in a folder, None when absent. Raises OSError when refused."""

    def stat(self, path: str) -> Stat | None:
        """What a path is, a last link not followed; None when absent. OSError when refused."""

    def run(self, command: Command) -> Result:
        """Run a program to its end; never raises for what the program does."""

    def run_all(self, commands: tuple[Command, ...]) -> tuple[Result, ...]:
        """Run programs side by side; results in the order asked."""

    def interpreter(self) -> str:
        """Path of the interpreter that runs envcheck's own payloads, on that machine."""
