"""What a text says is wrong, in the words of a driver, a library or a framework."""

from __future__ import annotations

from envcheck.model.base import model

KERNEL_LOG = "kernel log"
"""Where a message was read that may be of long ago."""


@model
class Capture:
    """A piece of a message that says more than that it is there: a version, a library, a number."""

    name: str
    value: str


@model
class Symptom:
    """A message that the table of symptoms knows."""

    name: str
    """Its row in the table."""
    text: str
    """The line it was recognised in, shortened for display."""
    via: str = ""
    """Where it was read: `kernel log`, `traceback`, `docker`, `import torch`, ..."""
    captures: tuple[Capture, ...] = ()

    def capture(self, name: str) -> str | None:
        """A captured piece, None when this message does not carry it."""
        return next((each.value for each in self.captures if each.name == name), None)
