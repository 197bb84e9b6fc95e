"""`envcheck image` and `envcheck doctor --image`: images built, run, and judged by their files."""

from __future__ import annotations

import dataclasses
import re
import sys
from typing import TYPE_CHECKING

import envcheck
from envcheck.commands.output import emit, say
from envcheck.errors import UsageError
from envcheck.model.snapshot import Gap

if TYPE_CHECKING:
    from argparse import Namespace
    from pathlib import Path

    from envcheck.commands.doctor import Judgement
    from envcheck.image.engine import Engine, EngineFacts, GpuRequest, Image
    from envcheck.image.inside import Answer, Package
    from envcheck.model.finding import Fix, Report
    from envcheck.model.snapshot import Snapshot

RUN_SECONDS = 180.0
"""Seconds that a container gets to answer, and with a smoke test this and the next."""
SMOKE_SECONDS = 1800.0
_NOT_NEEDED = tuple(f"envcheck/_data/{name}/" for name in ("ansible", "containers", "matrices"))
"""Parts of envcheck that a doctor in a container does without; it reads the compiled tables."""
_INSTALLERS = ("pip ", "python", "uv ", "conda ", "mamba ", "poetry ", "pdm ")
"""Starts of commands that change an environment."""


def run(args: Namespace) -> int:
    """Run the action."""
    return {"build": _build, "check": _check}[args.action](args)


# -- judged by its files ---------------------------------------------------------------------------


def run_doctor(args: Namespace, form: str, judgement: Judgement) -> int:
    """`envcheck doctor --image`: judge an image on this machine without running it."""
    for flag in ("machine", "report", "smoke", "deep"):
        if getattr(args, flag):
            msg = f"--image reads the files of an image: give it without --{flag}"
            raise UsageError(msg)
    from envcheck.image.engine import open_engine
    from envcheck.image.trouble import EngineError

    engine = open_engine(reference=args.image)
    image = engine.image(args.image)
    if image is None:
        words = f"{args.image}: fetch it with {engine.name} pull {args.image}"
        raise EngineError("no-image", engine.name, words)
    snapshot = _by_files(engine, image, _host(args), args)
    return judgement.report(snapshot, form)


def _by_files(engine: Engine, image: Image, host: Snapshot, args: Namespace) -> Snapshot:
    from envcheck.image.join import joined
    from envcheck.image.read import read_image

    with _Progress() as progress:
        inside = read_image(
            engine, image, python=args.python, timeout=args.timeout, progress=progress.read
        )
    return joined(host, inside, image, engine.facts())


def _host(args: Namespace) -> Snapshot:
    from envcheck.probe.live import Live
    from envcheck.probe.snapshot import take_snapshot

    return take_snapshot(Live(), timeout=args.timeout)


def in_dockerfile(report: Report) -> Report:
    """The report on an image, its ways out of package trouble named as what they are there.

    What is typed into a running container is lost with it.
    """
    python = report.snapshot.env.python
    starts = tuple(each for each in (python.prefix, python.executable) if each)

    def meant(fix: Fix) -> Fix:
        own = any(
            each.startswith(_INSTALLERS) or each.split(" ")[0].startswith(starts)
            for each in fix.commands
        )
        return dataclasses.replace(fix, title=f"In the Dockerfile: {fix.title}") if own else fix

    findings = (
        dataclasses.replace(each, fix=tuple(map(meant, each.fix))) for each in report.findings
    )
    return dataclasses.replace(report, findings=tuple(findings))


# -- run -------------------------------------------------------------------------------------------


def _check(args: Namespace) -> int:
    from envcheck.commands.doctor import Judgement, wanted_format
    from envcheck.image.engine import open_engine
    from envcheck.image.trouble import EngineError

    form = wanted_format(args)
    judgement = Judgement(args)
    engine = open_engine(args.engine, args.image)
    image = engine.image(args.image)
    if image is None:
        say(f"{args.image} is not here: {engine.name} pull")
        engine.pull(args.image)
        image = engine.image(args.image)
    if image is None:
        raise EngineError("no-image", engine.name, args.image)
    facts = engine.facts()
    host = _with_cdi(_host(args), facts)
    answer = _run(engine, facts, image, host, args)
    if answer.snapshot is None:
        say(f"{args.image} was read and not run: {' '.join(answer.reason.split())}")
        snapshot = _by_files(engine, image, host, args)
    else:
        snapshot = _combined(answer.snapshot, answer.request, host, image, facts)
    expected = args.gpus == "all" or (_has_gpu(host) and _for_gpus(snapshot))
    snapshot = _with_refusals(snapshot, answer, judgement, engine.name, expected=expected)
    return judgement.report(snapshot, form)


def _run(
    engine: Engine, facts: EngineFacts, image: Image, host: Snapshot, args: Namespace
) -> Answer:
    from envcheck.image import inside

    devices = host.host.cdi.devices if host.host.cdi is not None else ()
    wanted = args.gpus == "all" or (
        args.gpus == "auto" and (_has_gpu(host) or inside.set_up(facts, devices))
    )
    flags = ["--timeout", f"{args.timeout:g}"]
    flags += ["--python", args.python] if args.python else []
    flags += ["--smoke"] if args.smoke else []
    return inside.run_inside(
        engine,
        image,
        tuple(flags),
        requests=inside.gpu_requests(facts, devices) if wanted else (),
        package=_package(),
        timeout=RUN_SECONDS + (SMOKE_SECONDS if args.smoke else 0.0),
    )


def _with_cdi(host: Snapshot, engine: EngineFacts) -> Snapshot:
    """The machine with the CDI specifications of the folders that an engine really looks into."""
    from envcheck.probe.engines import CDI_FOLDERS, read_cdi
    from envcheck.probe.live import Live
    from envcheck.probe.quiet import Quiet

    if not set(engine.cdi_folders) - set(CDI_FOLDERS):
        return host
    cdi = read_cdi(Quiet(Live()), engine.cdi_folders)
    return dataclasses.replace(host, host=dataclasses.replace(host.host, cdi=cdi))


def _has_gpu(host: Snapshot) -> bool:
    """Whether this machine has a GPU that containers could be given."""
    devices = [
        each
        for each in host.host.pci or ()
        if each.vendor == "10de" and (each.class_code or "")[:2] == "03"
    ]
    return bool(host.host.gpus or devices or host.host.jetson)


def _for_gpus(snapshot: Snapshot) -> bool:
    """Whether an image holds anything that was built for GPUs, as far as is known."""
    return any(not each.cpu_only for each in snapshot.env.frameworks or ())


def _package() -> Package:
    import io
    import zipfile

    from envcheck.commands.own_wheel import own_wheel
    from envcheck.image.inside import package

    _, wheel = own_wheel()
    with zipfile.ZipFile(io.BytesIO(wheel)) as archive:
        files = {
            name: archive.read(name)
            for name in archive.namelist()
            if not name.startswith(_NOT_NEEDED)
        }
    return package(envcheck.__version__, files)


def _combined(
    inside: Snapshot, request: GpuRequest, host: Snapshot, image: Image, facts: EngineFacts
) -> Snapshot:
    """What the container saw; where it got no GPU, its environment with this machine's driver."""
    from envcheck.image.join import from_inside, joined
    from envcheck.image.read import Inside

    if request != "none":
        return from_inside(inside, host, image, facts)
    gaps = tuple(each for each in inside.gaps if each.path.startswith("env"))
    both = joined(host, Inside(env=inside.env, os=inside.host.os, gaps=gaps), image, facts)
    return dataclasses.replace(both, smoke=inside.smoke, symptoms=inside.symptoms)


def _with_refusals(
    snapshot: Snapshot, answer: Answer, judgement: Judgement, engine: str, *, expected: bool
) -> Snapshot:
    """Add what the engine said where it gave no GPU: as a gap, and as messages that are known.

    An image for the CPU lacks nothing, and a machine without a GPU has none to give: then it is no
    fault of the engine, unless somebody says that there should be one.
    """
    from envcheck.symptoms.scan import scan

    if not answer.refusals or answer.request != "none":
        return snapshot
    last = answer.refusals[-1]
    words = " ".join(last.words.split())
    gap = Gap(path="host.container", reason=f"{engine} refused {last.request}: {words}")
    symptoms = scan(
        [line for each in answer.refusals for line in each.words.splitlines()],
        judgement.matrix,
        via=engine,
    )
    say(f"envcheck: {gap.reason}")
    return dataclasses.replace(
        snapshot,
        symptoms=(*snapshot.symptoms, *(symptoms if expected else ())),
        gaps=(*snapshot.gaps, gap),
    )


# -- built -----------------------------------------------------------------------------------------


def _build(args: Namespace) -> int:
    from pathlib import Path

    from envcheck.image.build import Failure, build, builder

    folder = Path(args.folder)
    if not folder.is_dir():
        msg = f"{args.folder}: no such folder"
        raise UsageError(msg)
    if not any((folder / name).is_file() for name in ("Dockerfile", "Containerfile")):
        msg = f"{args.folder}: no Dockerfile in it"
        raise UsageError(msg)
    for each in args.build_arg:
        if not re.match(r"[A-Za-z_]\w*=", each):
            msg = f"--build-arg {each}: not NAME=VALUE"
            raise UsageError(msg)
    tag = args.tag or _slug(folder.resolve().name)
    engine = builder(args.engine)
    log = _log_file(args.log, tag)
    options = tuple(word for each in args.build_arg for word in ("--build-arg", each))
    result = build(engine, folder, tag, options, log, say)
    if isinstance(result, Failure):
        lines = [f"envcheck: {engine.name} build failed: {result.title}"]
        lines += [f"  {line}" for line in dict.fromkeys(result.words)]
        lines += [
            f"  ({engine.name} ended with exit status {result.code}; everything it said: {log})"
        ]
        say("\n".join(lines))
        if args.json:
            _print(
                {
                    "built": False,
                    "engine": engine.name,
                    "kind": result.kind,
                    "reason": result.title,
                    "words": list(result.words),
                    "engine_exit_code": result.code,
                    "exit_code": 1,
                    "log": str(log),
                }
            )
        return 1
    size = result.image.size_bytes
    if args.json:
        _print(
            {
                "built": True,
                "engine": engine.name,
                "tag": tag,
                "id": result.image.id,
                "size_bytes": size,
                "seconds": round(result.seconds, 1),
                "exit_code": 0,
                "log": str(log),
            }
        )
    else:
        room = f", {size / 1e9:.2f} GB" if size else ""
        emit(f"built {tag}{room}, in {result.seconds:.0f} s; log: {log}\n", None)
    return 0


def _print(data: dict[str, object]) -> None:
    import json

    emit(json.dumps(data, indent=2) + "\n", None)


def _slug(name: str) -> str:
    """A folder's name as the name of an image."""
    text = re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip("-._")
    return text or "image"


def _log_file(path: str | None, tag: str) -> Path:
    import os
    from pathlib import Path

    if path is not None:
        place = Path(path)
        if place.is_dir() or not place.absolute().parent.is_dir():
            msg = f"--log {path}: cannot be written"
            raise UsageError(msg)
        return place
    home = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    folder = Path(home) / "envcheck"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        msg = f"cannot write {folder}: {error.strerror}: give --log FILE"
        raise UsageError(msg) from error
    return folder / f"build-{re.sub(r'[^A-Za-z0-9._-]+', '-', tag)}.log"


class _Progress:
    """One line on the screen that says how much was read; nothing where stderr is no terminal."""

    def __init__(self) -> None:
        try:
            self._shown = sys.stderr is not None and sys.stderr.isatty()
        except ValueError:
            self._shown = False
        self._last = 0

    def __enter__(self) -> _Progress:
        return self

    def read(self, size: int) -> None:
        """Show how many bytes were read, every hundred megabytes."""
        if self._shown and size - self._last > 100_000_000:
            self._last = size
            sys.stderr.write(f"\r\x1b[Kreading the image: {size / 1e9:.1f} GB ...")
            sys.stderr.flush()

    def __exit__(self, *_error: object) -> None:
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
