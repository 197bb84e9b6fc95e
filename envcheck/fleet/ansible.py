"""Asks the hosts of an inventory, through ansible-runner; every answer is handed on as it comes."""

from __future__ import annotations

import base64
import json
import os
import signal
import sys
import tempfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from envcheck.errors import UndeterminedError, UsageError
from envcheck.fleet.archive import build
from envcheck.model.base import model

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from envcheck.fleet.journal import Outcome

_PLAYBOOK = Path(__file__).parent / "playbook"
_LARGEST = 64 << 20
"""Bytes of one host's answer, unpacked."""
_WORDS = 500


@model
class Wanted:
    """What is to be asked, and how.

    Attributes:
        inventories: as Ansible's `-i` takes them.
        limit: as Ansible's `--limit` takes it.
        forks: hosts at the same time.
        options: what the probe takes.
        seconds: after how long a host's probe is ended.
    """

    inventories: tuple[str, ...]
    limit: str | None = None
    forks: int = 20
    options: tuple[tuple[str, Any], ...] = ()
    seconds: float = 300.0


class Heard(NamedTuple):
    """What came of a host."""

    host: str
    outcome: Outcome
    answers: dict[str, Any] | None
    """Of a host that is `ok`, as `fleet/host.py` takes them."""
    reason: str


def hosts_of(wanted: Wanted) -> tuple[str, ...]:
    """The hosts that an inventory names, limited as asked.

    Raises:
        UsageError: ansible is not installed, or names no host.
    """
    runner = _runner()
    limit = [] if wanted.limit is None else ["--limit", wanted.limit]
    with tempfile.TemporaryDirectory(prefix="envcheck-fleet-") as folder:
        stdout, stderr, code = runner.run_command(
            executable_cmd="ansible",
            cmdline_args=["all", *_inventories(wanted), *limit, "--list-hosts"],
            private_data_dir=folder,
            host_cwd=str(Path.cwd()),
            envvars=_variables(),
            runner_mode="subprocess",
            quiet=True,
        )
    lines = [line.strip() for line in stdout.splitlines()]
    at = next((i for i, line in enumerate(lines) if line.startswith("hosts (")), None)
    names = tuple(line for line in lines[at + 1 :] if line) if at is not None else ()
    if code or not names:
        said = [line for line in (stderr or stdout).splitlines() if line.strip()]
        reason = _joined(said) or "it names no host"
        msg = f"no host to ask in {', '.join(wanted.inventories)}: {reason}"
        raise UsageError(msg)
    return names


def ask(wanted: Wanted, hosts: Sequence[str], hear: Callable[[Heard], None]) -> bool:
    """Ask hosts.

    Args:
        wanted: what is asked.
        hosts: which of the inventory's.
        hear: told what came of each host, as soon as it is known.

    Returns:
        False when Ctrl-C ended it early; the hosts that were not heard of then were not asked.

    Raises:
        UndeterminedError: Ansible ended before it asked any host.
    """
    runner = _runner()
    heard: set[str] = set()
    interrupted = False

    def stop(_number: int, _frame: object) -> None:
        nonlocal interrupted
        interrupted = True

    def event(data: dict[str, Any]) -> bool:
        found = _heard(data)
        if found is not None and found.host not in heard:
            heard.add(found.host)
            hear(found)
        return False  # nothing is kept on disk

    with tempfile.TemporaryDirectory(prefix="envcheck-fleet-") as folder:
        playbook = _prepared(Path(folder))
        limit = Path(folder) / "hosts"
        limit.write_text("".join(f"{each}\n" for each in hosts), encoding="utf-8")
        run = runner.interface.init_runner(
            private_data_dir=folder,
            # Paths in inventories and settings are meant from where the user stands.
            project_dir=str(Path.cwd()),
            playbook=str(playbook),
            inventory=[_absolute(each) for each in wanted.inventories],
            limit=f"@{limit}",
            forks=wanted.forks,
            extravars={
                "envcheck_options": dict(wanted.options),
                "envcheck_seconds": wanted.seconds,
            },
            envvars=_variables(),
            settings={"pexpect_timeout": 1},
            event_handler=event,
            cancel_callback=lambda: interrupted,
            quiet=True,
        )
        # The runner turns the check of host keys off; whether it is on is for the user to say.
        if "ANSIBLE_HOST_KEY_CHECKING" not in os.environ:
            run.config.env.pop("ANSIBLE_HOST_KEY_CHECKING", None)
        before = signal.signal(signal.SIGINT, stop)
        try:
            run.run()
        finally:
            signal.signal(signal.SIGINT, before)
        if not heard and not interrupted:
            with run.stdout as stream:
                lines = [line.strip() for line in stream.read().splitlines() if line.strip()]
            msg = f"Ansible asked no host (status {run.rc}): {_joined(lines[-3:])}"
            raise UndeterminedError(msg)
    return not interrupted


def _prepared(folder: Path) -> Path:
    """The playbook beside its module, with the probe in it."""
    import shutil

    place = folder / "playbook"
    shutil.copytree(_PLAYBOOK, place, ignore=shutil.ignore_patterns("__pycache__"))
    module = place / "library" / "envcheck_probe.py"
    text = module.read_text(encoding="utf-8")
    archive = base64.b64encode(build()).decode("ascii")
    module.write_text(text.replace("@ARCHIVE@", archive), encoding="utf-8")
    return place / "probe.yml"


def _heard(event: dict[str, Any]) -> Heard | None:
    kind, data = event.get("event"), event.get("event_data") or {}
    host, result = str(data.get("host", "")), data.get("res") or {}
    if kind == "runner_on_ok":
        return _answer(host, result.get("answer"))
    if kind == "runner_on_unreachable":
        return Heard(host, "unreachable", None, _message(result))
    if kind == "runner_on_failed":
        return Heard(host, "failed", None, _message(result))
    return None


def _answer(host: str, answer: Any) -> Heard:
    try:
        packed = base64.b64decode(answer, validate=True)
        unpacker = zlib.decompressobj()
        data = json.loads(unpacker.decompress(packed, _LARGEST))
        return Heard(host, "ok", dict(data), "")
    except (ValueError, TypeError, KeyError, RecursionError, zlib.error) as error:
        return Heard(host, "failed", None, f"its answer is damaged: {type(error).__name__}")


def _message(result: dict[str, Any]) -> str:
    """In a line, why a host was not reached or failed."""
    stderr = [line.strip() for line in str(result.get("module_stderr", "")).splitlines()]
    said = [line for line in stderr if line]
    if any("SyntaxError" in line for line in said):
        return f"its Python is too old for Ansible's modules ({said[-1][:100]})"
    if said:
        # Of a traceback the last line says what happened, of other programs mostly the first.
        trace = any(line.startswith(("Traceback", 'File "')) for line in said)
        return said[-1 if trace else 0][:_WORDS]
    return _joined(str(result.get("msg", "")).splitlines()) or "no reason given"


def _joined(lines: Sequence[str]) -> str:
    return " ".join(line.strip() for line in lines if line.strip())[:_WORDS]


def _inventories(wanted: Wanted) -> list[str]:
    return [word for each in wanted.inventories for word in ("-i", _absolute(each))]


def _absolute(inventory: str) -> str:
    """A path as a whole; a list of hosts (`host1,host2,`) as it is."""
    return inventory if "," in inventory else str(Path(inventory).absolute())


def _variables() -> dict[str, str]:
    """The programs of Ansible that belong to the package in use come first."""
    folder = str(Path(sys.executable).parent)
    return {"PATH": os.pathsep.join((folder, os.environ.get("PATH", os.defpath)))}


def _runner() -> Any:
    try:
        import ansible_runner
        import ansible_runner.interface
    except ImportError as error:
        msg = "needs ansible-core and ansible-runner: pip install 'envcheck[fleet]'"
        raise UsageError(msg) from error
    return ansible_runner
