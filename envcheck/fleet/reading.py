"""Reports of `envcheck doctor --json` read one by one, each reduced to what a picture needs.

What is read came from other machines: it may be cut off, of another version, or made to mislead.
Only the fields in use are looked at, and each is checked.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast, get_args

from envcheck.fleet.model import Absent, Damaged, Mark, Node, Part
from envcheck.fleet.names import SUFFIX, host_name
from envcheck.fleet.stack import hardware_of, stack_of
from envcheck.model.codec import CodecError, decode
from envcheck.model.finding import SCHEMA_VERSION, Drift, Fix, Severity, VerdictName

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

LARGEST = 64 << 20
"""Bytes of one report; the largest real ones are below one million."""

_VERDICTS: tuple[str, ...] = get_args(VerdictName)
_SEVERITIES: tuple[str, ...] = get_args(Severity)


class Read(NamedTuple):
    """A report: what is kept, and what is looked at once and let go."""

    node: Node
    fixes: dict[Mark, list[Any]]
    """Ways out of each finding, as plain data."""
    snapshot: dict[str, Any]


class Reader:
    """Reads reports; equal parts of different reports are kept once."""

    def __init__(self) -> None:
        """Start with nothing kept."""
        self._stacks: dict[tuple[Part, ...], tuple[Part, ...]] = {}
        self._marks: dict[Mark, Mark] = {}

    def read(self, path: str, name: str) -> Read | Damaged | Absent:
        """One report.

        Args:
            path: the file.
            name: what its host is called.

        Returns:
            The report; or why there is none: the file is damaged, or it is the account of a run
            that failed before it could judge.
        """
        try:
            with Path(path).open("rb") as file:
                content = file.read(LARGEST + 1)
            if len(content) > LARGEST:
                return Damaged(path=path, reason=f"larger than {LARGEST >> 20} MiB")
            return self._reduced(_object(content), name)
        except OSError as error:
            reason = error.strerror or str(error)
        except RecursionError:
            reason = "nested too deeply"
        except (KeyError, TypeError, AttributeError) as error:
            reason = f"not a report of envcheck: {_words(error)}"
        except (ValueError, CodecError) as error:
            reason = str(error)
        return Damaged(path=path, reason=reason)

    def _reduced(self, data: dict[str, Any], name: str) -> Read | Absent:
        if "error" in data:
            return Absent(name=name, kind="failed", reason=str(data["error"]["message"]))
        fixes: dict[Mark, list[Any]] = {}
        for each in data["findings"]:
            mark = Mark(
                id=_text(each, "id"),
                severity=cast("Severity", _one_of(each, "severity", _SEVERITIES)),
                component=_text(each, "component"),
                title=_text(each, "title"),
            )
            fixes[self._marks.setdefault(mark, mark)] = each["fix"]
        snapshot = data["snapshot"]
        taken = snapshot["taken_at"]
        stack = stack_of(snapshot)
        node = Node(
            name=name,
            verdict=cast("VerdictName", _one_of(data, "verdict", _VERDICTS)),
            exit_code=int(data["exit_code"]),
            taken_at=None if taken is None else str(taken),
            hardware=hardware_of(snapshot),
            stack=self._stacks.setdefault(stack, stack),
            findings=tuple(fixes),
            unknown=tuple(dict.fromkeys(_text(each, "check") for each in data["unknown"])),
            drift=_drift(data.get("drift")),
        )
        return Read(node, fixes, snapshot)


def fixes_of(data: list[Any]) -> tuple[Fix, ...]:
    """Ways out of a finding; none where they are not what a report has."""
    try:
        return tuple(decode(Fix, each) for each in data)
    except (CodecError, TypeError):
        return ()


def _object(content: bytes) -> dict[str, Any]:
    if not content.strip():
        msg = "empty"
        raise ValueError(msg)
    try:
        data = json.loads(content)
    except UnicodeDecodeError as error:
        msg = f"not JSON: {error.reason} at byte {error.start}"
        raise ValueError(msg) from error
    except ValueError as error:
        msg = f"not JSON: {error}"
        raise ValueError(msg) from error
    if not isinstance(data, dict) or "schema_version" not in data:
        msg = "not a report of envcheck"
        raise ValueError(msg)
    version = data["schema_version"]
    if version != SCHEMA_VERSION:
        msg = f"of schema version {version!r}, and this envcheck reads {SCHEMA_VERSION!r}"
        raise ValueError(msg)
    return data


def _drift(data: Any) -> tuple[Drift, ...] | None:
    return None if data is None else tuple(decode(Drift, each, "$.drift[]") for each in data)


def _text(data: dict[str, Any], name: str) -> str:
    value = data[name]
    if not isinstance(value, str):
        msg = f"{name} is no text"
        raise TypeError(msg)
    return value


def _one_of(data: dict[str, Any], name: str, known: tuple[str, ...]) -> str:
    value = _text(data, name)
    if value not in known:
        msg = f"{name} is {value!r}"
        raise TypeError(msg)
    return value


def _words(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"{error.args[0]} is missing"
    return str(error)


def report_files(paths: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Files and the hosts that they are the reports of.

    Args:
        paths: folders of reports, or files. A folder's other files and hidden ones are passed over.

    Yields:
        Path and host name. Names that occur in several folders are told apart by the folder.

    Raises:
        FileNotFoundError: a path is not there.
        OSError: a folder cannot be read.
    """
    files = [each for path in paths for each in _files(Path(path))]
    seen: dict[str, int] = {}
    for each in dict.fromkeys(files):
        name = host_name(str(each))
        seen[name] = seen.get(name, 0) + 1
    for each in dict.fromkeys(files):
        name = host_name(str(each))
        yield str(each), name if seen[name] == 1 else f"{each.parent}/{name}"


def _files(place: Path) -> list[Path]:
    if place.is_dir():
        return sorted(
            each
            for each in place.iterdir()
            if each.suffix == SUFFIX and not each.name.startswith(".") and each.is_file()
        )
    if not place.exists():
        raise FileNotFoundError(2, "no such file or folder", str(place))
    return [place]
