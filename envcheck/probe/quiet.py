"""A source whose refusals are noted: collectors read on and never see an OSError."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.errors import NotRecordedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeVar

    from envcheck.probe.source import Source, Stat

    T = TypeVar("T")


class Quiet:
    """Wraps a source for the length of one probe."""

    def __init__(self, source: Source) -> None:
        """Take the source to ask; `refused` then tells which paths were refused, and why."""
        self._source = source
        self.refused: dict[str, str] = {}

    @property
    def variables(self) -> Mapping[str, str]:
        """Environment of the user's programs."""
        return self._source.variables

    @property
    def root(self) -> str:
        """Folder below which the files of the machine lie."""
        return self._source.root

    def read(self, path: str) -> str | None:
        """Text of a file, None when absent or refused."""
        return self._try(self._source.read, path)

    def list(self, path: str) -> tuple[str, ...] | None:
        """Names in a folder, None when absent or refused."""
        return self._try(self._source.list, path)

    def stat(self, path: str) -> Stat | None:
        """What a path is, None when absent or refused."""
        return self._try(self._source.stat, path)

    def _try(self, verb: Callable[[str], T | None], path: str) -> T | None:
        try:
            return verb(path)
        except NotRecordedError:
            # A recording of this very version must answer: that is a fault of ours, not of the
            # machine. Older recordings answer by an OSError instead.
            raise
        except OSError as error:
            self.refused[path] = error.strerror or str(error)
            return None
