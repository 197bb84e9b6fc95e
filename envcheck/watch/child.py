"""Runs the command that is watched as if nobody watched: its streams, its signals, its end."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from subprocess import Popen

PASSED_ON = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
)

SENT_BY_KERNEL = 128
"""`si_code` of signals that the kernel sends, the terminal's among them."""

NOT_FOUND, NOT_EXECUTABLE, SIGNALLED = 127, 126, 128
"""Exit statuses as shells give them; a signal's number is added to the last."""


class CommandChild:
    """A command that runs in the foreground while this process stays in the background."""

    def __init__(self, argv: Sequence[str], variables: dict[str, str]) -> None:
        """Start it.

        Args:
            argv: program and arguments; looked for on PATH.
            variables: added to its environment.

        Raises:
            OSError: it cannot be started.
        """
        import subprocess

        # Blocked before it starts, so that no signal meets this process alone; and kept from the
        # child, which must be born as its caller would have started it.
        self._before = signal.pthread_sigmask(signal.SIG_BLOCK, (*PASSED_ON, signal.SIGCHLD))
        try:
            self._child: Popen[bytes] = subprocess.Popen(
                list(argv),
                env={**os.environ, **variables},
                preexec_fn=self._unblock,  # noqa: PLW1509 - before any thread is started
            )
        except BaseException:
            self._unblock()
            raise

    def _unblock(self) -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, self._before)

    @property
    def pid(self) -> int:
        """Of the command."""
        return self._child.pid

    def wait(self) -> int:
        """Wait for its end and pass signals on meanwhile; the exit status as a shell counts it."""
        while self._child.poll() is None:
            # What the terminal sends reaches the command by itself: both are in its foreground.
            got = signal.sigwaitinfo((*PASSED_ON, signal.SIGCHLD))
            if got.si_signo != signal.SIGCHLD and got.si_code != SENT_BY_KERNEL:
                self._child.send_signal(got.si_signo)
        code = self._child.returncode
        return SIGNALLED - code if code < 0 else code


def status_of(error: OSError) -> int:
    """The exit status of a command that cannot be started."""
    return NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE
