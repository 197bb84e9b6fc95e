"""The component table: what the machine is made of, one row per component, in words."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Literal

from envcheck.model.base import model
from envcheck.report.foreign import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from envcheck.model.environment import Framework, Library
    from envcheck.model.host import Engine, Gpu
    from envcheck.model.snapshot import Snapshot

State = Literal["found", "absent", "unknown"]


@model
class Row:
    """One component; `text` is complete without the state, which only chooses a colour."""

    name: str
    text: str
    state: State = "found"


def components(snapshot: Snapshot, tables: tuple[tuple[str, str], ...] = ()) -> tuple[Row, ...]:
    """Rows of the component table.

    Args:
        snapshot: the machine.
        tables: (table, date) pairs that it was judged by; no row for them when empty.
    """
    rows = (
        _os(snapshot),
        _driver(snapshot),
        _gpus(snapshot),
        _interface(snapshot),
        _toolkits(snapshot),
        _frameworks(snapshot),
        _library(snapshot, "cuDNN", "cudnn"),
        _library(snapshot, "NCCL", "nccl"),
        _python(snapshot),
        *_inside(snapshot),
        _engines(snapshot),
        *_tables(tables),
    )
    # That a pasted text does not speak of something is no news.
    of_text = snapshot.source == "report"
    return tuple(
        Row(name=row.name, text=one_line(row.text), state=row.state)
        for row in rows
        if not (of_text and row.state == "unknown")
    )


def _absent(name: str) -> Row:
    return Row(name=name, text="not found", state="absent")


def _unknown(name: str, snapshot: Snapshot, *paths: str) -> Row:
    reasons = (snapshot.gap(path) for path in paths)
    reason = next((each for each in reasons if each), "not read")
    return Row(name=name, text=f"unknown: {reason}", state="unknown")


def _join(parts: Iterable[str | None], separator: str = ", ") -> str:
    return separator.join(part for part in parts if part)


def _noted(text: str, *notes: str | None) -> str:
    """`text (note, note)`, without brackets when there is no note."""
    inside = _join(notes)
    return f"{text} ({inside})" if inside else text


def _os(snapshot: Snapshot) -> Row:
    os, host = snapshot.host.os, snapshot.host
    name = os.name or _join((os.id, os.version), " ")
    if not name and not os.kernel:
        return _unknown("OS", snapshot, "host.os")
    text = _join(
        (
            name or "unknown distribution",
            f"kernel {os.kernel}" if os.kernel else None,
            os.machine,
            f"glibc {os.glibc}" if os.glibc else None,
            f"WSL {host.wsl}" if host.wsl else None,
            f"Jetson Linux {host.jetson}" if host.jetson else None,
        )
    )
    return Row(name="OS", text=text)


def _driver(snapshot: Snapshot) -> Row:
    driver = snapshot.host.driver
    if driver.version is None:
        if driver.installed is False:
            return _absent("NVIDIA driver")
        row = _unknown("NVIDIA driver", snapshot, "host.driver.version", "host.driver")
        if driver.installed:
            text = f"installed, version {row.text}"
            return Row(name=row.name, text=text, state="unknown")
        return row
    flavour = {True: "open kernel module", False: "proprietary kernel module", None: None}
    differs = (
        driver.module_version is not None
        and driver.userspace_version is not None
        and driver.module_version != driver.userspace_version
    )
    text = _noted(
        driver.version,
        "kernel module not loaded"
        if driver.module_loaded is False
        else flavour[driver.open_module],
        f"module {driver.module_version}, libraries {driver.userspace_version}"
        if differs
        else None,
    )
    return Row(name="NVIDIA driver", text=text)


def _gpus(snapshot: Snapshot) -> Row:
    gpus, pci = snapshot.host.gpus, snapshot.host.pci
    if gpus:
        kinds = Counter(_gpu(each) for each in gpus)
        text = "; ".join(
            f"{count} x {kind}" if count > 1 else kind for kind, count in kinds.items()
        )
        return Row(name="GPUs", text=text)
    on_bus = [each for each in pci or () if (each.class_code or "").startswith("03")]
    if on_bus:
        names = Counter(each.name or f"device {each.device or 'unknown'}" for each in on_bus)
        shown = ", ".join(f"{count} x {n}" if count > 1 else n for n, count in names.items())
        text = f"on the PCI bus: {shown}; none through the driver"
        return Row(name="GPUs", text=text, state="absent" if gpus is not None else "unknown")
    if gpus is None:
        return _unknown("GPUs", snapshot, "host.gpus", "host.pci")
    return _absent("GPUs")


def _gpu(gpu: Gpu) -> str:
    memory = gpu.memory_total_bytes
    return _noted(
        gpu.name or "unnamed GPU",
        f"compute capability {gpu.arch}" if gpu.arch else None,
        f"{memory / 2**30:.1f} GiB" if memory else None,
        "MIG" if gpu.mig else None,
        f"error: {gpu.error}" if gpu.error else None,
    )


def _interface(snapshot: Snapshot) -> Row:
    name, driver = "CUDA driver API", snapshot.host.driver
    compat = (
        f"cuda-compat {driver.compat_version or 'of unknown version'} at {driver.compat_path}"
        if driver.compat_path
        else None
    )
    if driver.cuda is not None:
        return Row(name=name, text=_noted(driver.cuda, compat))
    if driver.version is None and driver.installed is False:
        return _absent(name)
    return _unknown(name, snapshot, "host.driver.cuda", "host.driver")


def _toolkits(snapshot: Snapshot) -> Row:
    toolkits = snapshot.env.toolkits
    if toolkits is None:
        return _unknown("CUDA toolkits", snapshot, "env.toolkits")
    if not toolkits:
        return _absent("CUDA toolkits")
    text = "; ".join(
        _noted(
            _join((each.version or "unknown version", each.root or None), " at "),
            "no nvcc" if each.nvcc is False else None,
            "in use" if each.on_path else None,
        )
        for each in toolkits
    )
    return Row(name="CUDA toolkits", text=text)


def _frameworks(snapshot: Snapshot) -> Row:
    frameworks = snapshot.env.frameworks
    if frameworks is None:
        return _unknown("Frameworks", snapshot, "env.frameworks", "env.packages", "env.python")
    if not frameworks:
        return _absent("Frameworks")
    text = "; ".join(f"{each.name} {_noted(each.version, *_build(each))}" for each in frameworks)
    return Row(name="Frameworks", text=text)


def _build(framework: Framework) -> tuple[str | None, ...]:
    if framework.cuda:
        target: str | None = f"CUDA {framework.cuda}"
    elif framework.hip:
        target = f"ROCm {framework.hip}"
    elif framework.xpu:
        target = f"XPU {framework.xpu}"
    elif framework.cpu_only:
        target = "CPU only"
    else:
        target = "CUDA build unknown"
    foreign = framework.origin not in ("index", "framework-index", "unknown")
    return target, f"from {framework.origin}" if foreign else None


def _library(snapshot: Snapshot, name: str, key: str) -> Row:
    libraries = snapshot.env.libraries
    copies = [each for each in libraries or () if each.name == key]
    if copies:
        shown = dict.fromkeys(_copy(each) for each in copies)
        return Row(name=name, text="; ".join(shown))
    pins = [
        f"{version} pinned by {each.name} {each.version}"
        for each in snapshot.env.frameworks or ()
        if (version := getattr(each, key))
    ]
    if libraries is None:
        row = _unknown(name, snapshot, "env.libraries", "env.python")
    else:
        row = _absent(name)
    return Row(name=name, text=_join((row.text, *pins), "; "), state=row.state)


def _copy(library: Library) -> str:
    users = f"used by {', '.join(library.wins_for)}" if library.wins_for else None
    place = library.package or f"{library.origin}: {library.path}"
    return _noted(library.version or "unknown version", place, users)


def _python(snapshot: Snapshot) -> Row:
    name, python = "Python", snapshot.env.python
    if python.version is None and python.executable is None and python.prefix is None:
        if python.error:
            return Row(name=name, text=f"unknown: {python.error}", state="unknown")
        return _unknown(name, snapshot, "env.python")
    text = _noted(
        _join((python.version or "unknown version", python.prefix or python.executable), " at "),
        python.kind if python.kind != "other" else None,
        f"packages by {python.manager}" if python.manager else None,
        f"chosen by {python.chosen_because}" if python.chosen_because else None,
    )
    problem = f"could not be read: {python.error}" if python.error else None
    state: State = "unknown" if problem else "found"
    return Row(name=name, text=_join((text, problem), "; "), state=state)


def _inside(snapshot: Snapshot) -> tuple[Row, ...]:
    """The container that this is, no row on a plain host."""
    container = snapshot.host.container
    if container.kind in (None, "none"):
        return ()
    text = _noted(
        f"inside {container.kind}" if container.kind != "unknown" else "inside one of unknown kind",
        f"NVIDIA_VISIBLE_DEVICES={container.visible_devices}"
        if container.visible_devices
        else None,
    )
    return (Row(name="Container", text=text),)


def _engines(snapshot: Snapshot) -> Row:
    name, host = "Container runtime", snapshot.host
    if host.engines is None:
        row = _unknown(name, snapshot, "host.engines")
    elif not host.engines:
        row = _absent(name)
    else:
        row = Row(name=name, text="; ".join(_engine(each) for each in host.engines))
    extras = (
        f"NVIDIA Container Toolkit {host.toolkit_version}" if host.toolkit_version else None,
        f"CDI: {', '.join(host.cdi.devices)}" if host.cdi and host.cdi.devices else None,
    )
    return Row(name=name, text=_join((row.text, *extras), "; "), state=row.state)


def _engine(engine: Engine) -> str:
    nvidia = engine.runtimes is not None and "nvidia" in engine.runtimes
    return _noted(
        _join((engine.name, engine.version), " "),
        "Docker Desktop" if engine.desktop else None,
        "rootless" if engine.rootless else None,
        "NVIDIA runtime" if nvidia else None,
    )


def _tables(tables: tuple[tuple[str, str], ...]) -> tuple[Row, ...]:
    if not tables:
        return ()
    dates = sorted({date for _, date in tables})
    span = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    return (Row(name="Judged by", text=f"tables of {span}"),)
