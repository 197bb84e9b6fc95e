"""Which machine a command reads: this one, or one that was recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import Namespace

    from envcheck.probe.source import Source


def open_machine(args: Namespace) -> Source:
    """The source that `--machine` names, else this machine.

    Raises:
        RecordingError: the recording cannot be read.
    """
    if args.machine is not None:
        from envcheck.probe.record import Recorded

        return Recorded(args.machine)
    from envcheck.probe.live import Live

    return Live()
