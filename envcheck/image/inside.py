"""Runs the doctor in a container of an image, with the GPUs of this machine where it gives them."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

from envcheck.image.engine import CDI_DEVICE
from envcheck.model.base import model
from envcheck.model.codec import CodecError, decode
from envcheck.model.snapshot import Snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from envcheck.image.engine import Engine, EngineFacts, GpuRequest, Image

FOLDER = "opt/envcheck-check"
"""Where envcheck's files are put in a container that lacks them."""

VERSION_LABEL = "io.envcheck.version"
"""Label of images that hold envcheck, and of which release."""

TOO_OLD = 86
"""Status of a Python that is too old for envcheck."""

_START = f"""\
import sys
if sys.version_info < (3, 10): sys.exit({TOO_OLD})
sys.dont_write_bytecode = True
sys.path.insert(0, "/{FOLDER}")
from envcheck.cli import main
sys.exit(main(sys.argv[1:]))"""
_INTERPRETERS = ("python3", "python")
_ABSENT = ("executable file not found", "no such file or directory", "command not found")
_FLAGS = {"cdi": f"--device {CDI_DEVICE}", "runtime": "--runtime nvidia", "gpus": "--gpus all"}


@model
class Refusal:
    """A way of asking for GPUs that the engine refused, in its own words."""

    request: str
    words: str


@model
class Answer:
    """What came of running an image.

    Attributes:
        snapshot: what the doctor saw in it; None where it could not be run.
        reason: why it could not.
        request: how the GPUs of that container were asked for.
        refusals: ways that the engine refused before.
    """

    snapshot: Snapshot | None = None
    reason: str = ""
    request: GpuRequest = "none"
    refusals: tuple[Refusal, ...] = ()


def gpu_requests(engine: EngineFacts, cdi_kinds: tuple[str, ...]) -> tuple[GpuRequest, ...]:
    """Ways to ask this engine for GPUs, those that it is set up for first.

    Args:
        engine: what it says of itself.
        cdi_kinds: CDI devices that specifications of this machine name.
    """
    devices = engine.cdi_devices if engine.cdi_devices is not None else cdi_kinds
    if engine.name == "podman":
        # It takes --gpus and does nothing.
        return ("cdi",)
    found: list[GpuRequest] = []
    if engine.cdi_folders and CDI_DEVICE in devices:
        found.append("cdi")
    if "nvidia" in (engine.runtimes or ()):
        found.append("runtime")
    return (*found, "gpus")


def set_up(engine: EngineFacts, cdi_kinds: tuple[str, ...]) -> bool:
    """Whether somebody has set this engine up for NVIDIA's GPUs."""
    requests = gpu_requests(engine, cdi_kinds)
    return CDI_DEVICE in cdi_kinds if engine.name == "podman" else len(requests) > 1


def run_inside(
    engine: Engine,
    image: Image,
    flags: tuple[str, ...],
    *,
    requests: tuple[GpuRequest, ...],
    package: Package,
    timeout: float,
) -> Answer:
    """Run the doctor, with the first request for GPUs that is not refused, else without.

    Args:
        engine: has the image.
        image: which one.
        flags: of `envcheck doctor`.
        requests: ways to ask for GPUs, the best first.
        package: envcheck itself, for images without it.
        timeout: seconds for the whole run.
    """
    refusals: list[Refusal] = []
    for request in (*requests, "none"):
        answer = _attempt(engine, image, flags, request, package, timeout)
        if isinstance(answer, Refusal):
            refusals.append(answer)
            continue
        return Answer(
            snapshot=answer.snapshot,
            reason=answer.reason,
            request=answer.request,
            refusals=tuple(refusals),
        )
    words = refusals.pop().words
    return Answer(reason=words, refusals=tuple(refusals))


def _attempt(
    engine: Engine,
    image: Image,
    flags: tuple[str, ...],
    request: GpuRequest,
    package: Package,
    timeout: float,
) -> Answer | Refusal:
    own = dict(image.labels).get(VERSION_LABEL) == package.version
    starts: list[tuple[tuple[str, ...], bool]] = [(("envcheck",), False)] if own else []
    starts += [((name, "-c", _START), True) for name in _INTERPRETERS]
    reason = "it has no Python that could run envcheck"
    for start, filled in starts:
        ran = engine.run(
            image,
            (*start, "doctor", "--json", *flags),
            request=request,
            files=package.tar if filled else None,
            timeout=timeout,
        )
        said = ran.stderr.strip()
        if not ran.started or ran.code in {126, 127}:
            if any(each in said.lower() for each in _ABSENT) and start[0] in said:
                continue
            return Refusal(request=_FLAGS.get(request, ""), words=said)
        if ran.code is None:
            return Answer(request=request, reason=f"no answer within {timeout:g} s")
        if ran.code == TOO_OLD and filled:
            reason = "its Python is older than envcheck needs"
            continue
        snapshot, why = _parsed(ran.stdout)
        if snapshot is None and filled is False:
            continue
        last = said.splitlines()[-1] if said else f"exit status {ran.code}"
        return Answer(
            snapshot=snapshot,
            request=request,
            reason="" if snapshot is not None else f"{why}: {last}",
        )
    return Answer(request=request, reason=reason)


def _parsed(text: str) -> tuple[Snapshot | None, str]:
    """The snapshot in a report; entry points may have printed something before it."""
    start = text.find("{\n")
    try:
        data: Any = json.loads(text[start:]) if start >= 0 else {}
        if "error" in data:
            return None, str(data["error"].get("message"))
        return decode(Snapshot, data["snapshot"]), ""
    except (ValueError, KeyError, TypeError, CodecError, RecursionError):
        return None, "envcheck in it gave no report"


@model
class Package:
    """envcheck and what it imports, as a tar for the root of a container."""

    version: str
    tar: bytes


def package(version: str, files: Mapping[str, bytes]) -> Package:
    """Pack envcheck for a container.

    Args:
        version: of envcheck.
        files: envcheck's own, by path below a folder that Python imports from.
    """
    import tarfile

    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        done: set[str] = set()
        for path, content in sorted({**dict(_dependencies()), **files}.items()):
            full = f"{FOLDER}/{path}"
            parts = full.split("/")
            for length in range(1, len(parts)):
                folder = "/".join(parts[:length])
                if folder not in done:
                    done.add(folder)
                    head = tarfile.TarInfo(folder)
                    head.type, head.mode = tarfile.DIRTYPE, 0o755
                    archive.addfile(head)
            member = tarfile.TarInfo(full)
            member.size, member.mode = len(content), 0o644
            archive.addfile(member, io.BytesIO(content))
    return Package(version=version, tar=buffer.getvalue())


def _dependencies() -> Iterator[tuple[str, bytes]]:
    """The packages without compiled code that the doctor imports; those not here are left out."""
    import importlib.util
    from pathlib import Path

    for name in ("distro", "packaging", "pynvml"):
        found = importlib.util.find_spec(name)
        if found is None or found.origin is None:
            continue
        origin = Path(found.origin)
        if found.submodule_search_locations is None:
            yield origin.name, origin.read_bytes()
            continue
        for path in origin.parent.rglob("*.py"):
            yield f"{name}/{path.relative_to(origin.parent).as_posix()}", path.read_bytes()
