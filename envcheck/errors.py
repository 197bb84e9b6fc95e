"""Errors that end a run on purpose: one class per documented exit code.

Each carries one line that a person can act on; the command line prints it without a traceback.
"""


class EnvcheckError(Exception):
    """An expected state that ends the run with `exit_code` and a one-line message."""

    exit_code = 2


class UsageError(EnvcheckError):
    """The command line asks for something that cannot be done."""

    exit_code = 2


class UndeterminedError(EnvcheckError):
    """Nothing could be probed, so there is nothing to judge."""

    exit_code = 3


class TableError(EnvcheckError):
    """A compatibility table is damaged; the message names file, row and field."""

    exit_code = 4


class RecordingError(EnvcheckError):
    """A recorded machine or a saved snapshot cannot be read."""

    exit_code = 4


class NotRecordedError(RecordingError):
    """The probe asked a recording of its own version for something that it does not hold."""


class LockError(EnvcheckError):
    """A lock file is damaged or holds what no lock may hold; the message names the field."""

    exit_code = 4


class NoTextError(UndeterminedError):
    """A report is empty, or no text at all: there is nothing to read in it."""


class NoPlanError(EnvcheckError):
    """No stack of the tables meets a request."""

    exit_code = 5
