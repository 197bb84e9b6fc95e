"""Versions as NVIDIA prints them: parse, order, and the integer encodings of its libraries.

`packaging.version` refuses Debian revisions and prints `535.183.06` as `535.183.6`, so driver,
CUDA, cuDNN and NCCL versions are ordered here, and their text is kept as it was read.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

_LONGEST = 200
"""Characters of a version; Python refuses to read numbers of thousands of digits."""
_NUMBER = re.compile(r"\d+(?:\.\d+)*")


@functools.total_ordering
@dataclass(frozen=True, slots=True)
class Release:
    """A dotted number, ordered part by part with missing parts equal to zero.

    Attributes:
        text: as it was read, `535.183.06`.
        parts: its numbers, `(535, 183, 6)`.
    """

    text: str
    parts: tuple[int, ...]

    @classmethod
    def parse(cls, text: str) -> Release:
        """Read the first dotted number of a text (`1:535.183.06-0ubuntu1` needs the epoch cut off).

        Raises:
            ValueError: the text holds no number.
        """
        parsed = _parsed(text)
        if parsed is None:
            msg = f"not a version: {text!r}"
            raise ValueError(msg)
        return parsed

    @classmethod
    def maybe(cls, text: str | None) -> Release | None:
        """Like `parse`, with None for a text that is absent or holds no version."""
        return None if text is None else _parsed(text)

    @property
    def major(self) -> int:
        """First number: the branch of a driver, the major version of everything else."""
        return self.parts[0]

    @property
    def minor(self) -> int:
        """Second number, zero when absent."""
        return self.parts[1] if len(self.parts) > 1 else 0

    @property
    def series(self) -> str:
        """`major.minor`, which is how CUDA releases are named."""
        return f"{self.major}.{self.minor}"

    def _key(self) -> tuple[int, ...]:
        parts = self.parts
        while len(parts) > 1 and parts[-1] == 0:
            parts = parts[:-1]
        return parts

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, Release) else NotImplemented

    def __lt__(self, other: Release) -> bool:
        return self._key() < other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __str__(self) -> str:
        return self.text

    def starts_like(self, other: Release) -> bool:
        """Whether the shorter of both is a prefix: NVML prints `580.159` for `580.159.04`."""
        length = min(len(self.parts), len(other.parts))
        return self.parts[:length] == other.parts[:length]


@functools.lru_cache(maxsize=4096)
def _parsed(text: str) -> Release | None:
    """Remembered, since rules read the same few thousand versions of the tables over and over."""
    match = _NUMBER.match(text.strip().split(":", 1)[-1].lstrip("vV"))
    if match is None or len(match.group()) > _LONGEST:
        return None
    number = match.group()
    return Release(number, tuple(int(part) for part in number.split(".")))


def cuda_from_int(value: int) -> str:
    """CUDA's integer form: 12040 is `12.4`."""
    return f"{value // 1000}.{value % 1000 // 10}"


def cudnn_from_int(value: int) -> str:
    """cuDNN's integer form: 92400 is `9.24.0`; before 9 in thousands, 8907 is `8.9.7`."""
    if value >= 90000:
        return f"{value // 10000}.{value % 10000 // 100}.{value % 100}"
    return f"{value // 1000}.{value % 1000 // 100}.{value % 100}"


def nccl_from_int(value: int) -> str:
    """NCCL's integer form: 22809 is `2.28.9`; through 2.8 in thousands, 2708 is `2.7.8`."""
    if value >= 10000:
        return f"{value // 10000}.{value % 10000 // 100}.{value % 100}"
    return f"{value // 1000}.{value % 1000 // 100}.{value % 100}"
